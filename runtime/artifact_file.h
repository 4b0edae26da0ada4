#pragma once
// An Artifact as bytes: what one file of the cache holds. Little-endian, checksummed, self-describing enough to be refused.
//
//   magic  "FUSECART"   8
//   schema              4   kCacheSchema; another number is a miss
//   key                 32  digest that the file is named after
//   payload bytes       8
//   payload                 target, entries, code, slots, schedule, facts
//   checksum            32  SHA-256 of everything before

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/artifact.h"

namespace fusec {

/// Part of every key and file. Raise it when the meaning of a key, a file or the generated code changes.
inline constexpr uint32_t kCacheSchema = 1;

using Digest = std::array<uint8_t, 32>;
Digest sha256(std::string_view data);
/// 64 hexadecimal digits.
std::string hex(const Digest& digest);

std::string to_file(const Digest& key, const Artifact& artifact);
/// nullopt for anything but what to_file wrote for this key: truncated, damaged, of another schema or key.
std::optional<Artifact> from_file(const Digest& key, std::string_view file);

}  // namespace fusec
