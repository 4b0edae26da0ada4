#pragma once
// The few lines that fusec says on its own: to stderr, from level FUSEC_LOG (off, error, warn, info, debug; default warn).
// What a caller needs to know travels as an Error, never through here.

#include <string_view>

namespace fusec {

void log_warning(std::string_view text);
void log_info(std::string_view text);
void log_debug(std::string_view text);

}  // namespace fusec
