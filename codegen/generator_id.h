#pragma once

#include <string_view>

namespace fusec {

/// Digest of the sources that decide what code a kernel becomes (codegen, formulas, the kernel description): part of every cache
/// key, so that a build never takes code which another build's generator wrote. Computed when fusec is built.
std::string_view generator_id();

}  // namespace fusec
