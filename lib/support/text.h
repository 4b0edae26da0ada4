#pragma once
// Small text helpers, free of the locale: names with any bytes, and numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

/// Letters, digits, '_', '.', after a first letter or '_': what a name may be without quotes.
bool is_plain_name(std::string_view name);
/// Letters, digits and '_' after a first letter or '_': what a symbol may be without quotes.
bool is_plain_symbol(std::string_view name);

/// The bytes in double quotes: \" \\ \n, and \xNN for what is not printable ASCII or well-formed UTF-8.
std::string quoted(std::string_view bytes);
/// Reads a quoted name at the start of `text`; moves `text` behind it. nullopt when it is malformed or does not end.
std::optional<std::string> take_quoted(std::string_view& text);

/// Shortest decimal text that reads back as the same number: "0.1", "1e+30", "-0.0" never "-0"; "nan", "inf", "-inf".
std::string number_text(double value);
std::string number_text(float value);

/// A name in a message: as it is, or quoted where it is not plain, and not more than 80 bytes of it.
std::string brief(std::string_view name);
/// What is wrong with a name of more than 64 KB.
std::string too_long(std::string_view name);

/// "1, 2, 3" and "1 and 2" for messages.
std::string join(const std::string& separator, const std::string* begin, const std::string* end);

}  // namespace fusec
