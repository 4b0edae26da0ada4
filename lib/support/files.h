#pragma once
// Whole files, read and written at once.

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "fusec/result.h"

namespace fusec {

/// The bytes of a file, pipe or device. Input errors: it is not there, is a directory, cannot be read, or is no regular file and
/// gives more than kMaxStreamBytes (limits.h); environment error: it does not fit into memory.
Result<std::string> read_file(const std::string& path);
/// The same of what is left of standard input.
Result<std::string> read_standard_input();

/// write(2), but that a limit on the size of files (RLIMIT_FSIZE) is EFBIG and no signal, whatever this process does with signals.
ssize_t write_some(int fd, const void* bytes, size_t size);

/// Replaces a file in one step: a temporary file beside it, synced, then renamed, so that no reader ever sees half of it and a
/// failure leaves the old one and nothing else. What is no regular file (/dev/stdout, a pipe) is written directly.
Status write_file_atomically(const std::string& path, std::string_view bytes);
/// The same of bytes that lie in several places.
Status write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);
/// Whether write_file_atomically() could begin, with its errors: for what takes minutes before it writes. Leaves nothing.
Status may_write(const std::string& path);

}  // namespace fusec
