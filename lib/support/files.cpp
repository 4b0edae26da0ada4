#include "lib/support/files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "lib/support/limits.h"

namespace fusec {
namespace {

/// Closes at the end of its scope.
struct File {
  int fd = -1;
  explicit File(int descriptor) : fd(descriptor) {}
  File(const File&) = delete;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

std::string why(int error) { return std::generic_category().message(error); }

/// errno, or 0 when all bytes are written.
int write_all(int fd, std::span<const std::string_view> pieces) {
  for (std::string_view bytes : pieces)
    while (!bytes.empty()) {
      const ssize_t n = write_some(fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  return 0;
}

/// A new file that no other process has: path.tmp.PID.N. Its mode follows the umask, as for any new file.
int open_temporary(const std::string& path, std::string& name) {
  for (int n = 0;; ++n) {
    name = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(n);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST || n > 1000) return fd;
  }
}

/// The rest of an open file. Of what is no regular file kMaxStreamBytes at most: /dev/zero gives any number.
Result<std::string> read_rest(int fd, const std::string& path) {
  const auto fail = [&](int error) { return input_error("cannot read " + path + ": " + why(error)); };
  struct stat info;
  if (::fstat(fd, &info) != 0) return fail(errno);
  if (S_ISDIR(info.st_mode)) return fail(EISDIR);
  const bool regular = S_ISREG(info.st_mode);
  try {
    // The size is a hint only: a pipe has none, and a file may grow while it is read.
    std::string bytes;
    size_t used = 0;
    bytes.resize(regular ? static_cast<size_t>(info.st_size) + 1 : 65536);
    for (;;) {
      const ssize_t n = ::read(fd, bytes.data() + used, bytes.size() - used);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno);
      if (n == 0) break;
      used += static_cast<size_t>(n);
      if (!regular && used > size_t{kMaxStreamBytes})
        return input_error("cannot read " + path + ": more than " + std::to_string(kMaxStreamBytes >> 20) + " MiB of what is no regular file");
      if (used == bytes.size()) bytes.resize(regular ? 2 * used : std::min(2 * used, size_t{kMaxStreamBytes} + 1));
    }
    bytes.resize(used);
    return bytes;
  } catch (const std::exception&) {
    return environment_error("cannot read " + path + ": not enough memory");
  }
}

}  // namespace

ssize_t write_some(int fd, const void* bytes, size_t size) {
  sigset_t limit, before, pending;
  ::sigemptyset(&limit);
  ::sigaddset(&limit, SIGXFSZ);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &limit, &before);
  const ssize_t n = ::write(fd, bytes, size);
  const int error = errno;
  const timespec now{};
  if (n < 0 && error == EFBIG && !::sigismember(&pending, SIGXFSZ))
    while (::sigtimedwait(&limit, nullptr, &now) < 0 && errno == EINTR) {}
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return n;
}

Result<std::string> read_file(const std::string& path) {
  const auto fail = [&](int error) { return input_error("cannot read " + path + ": " + why(error)); };
  if (path.find('\0') != std::string::npos) return fail(EINVAL);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return fail(errno);
  return read_rest(file.fd, path);
}

Result<std::string> read_standard_input() { return read_rest(STDIN_FILENO, "standard input"); }

Status write_file_atomically(const std::string& path, std::string_view bytes) { return write_file_atomically(path, std::span(&bytes, 1)); }

namespace {
Error cannot_write(const std::string& path, int error) { return environment_error("cannot write " + path + ": " + why(error)); }
}  // namespace

Status may_write(const std::string& path) {
  if (path.find('\0') != std::string::npos) return cannot_write(path, EINVAL);
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    const int error = S_ISDIR(info.st_mode) ? EISDIR : ::access(path.c_str(), W_OK) != 0 ? errno : 0;
    return error ? Status(cannot_write(path, error)) : Status(Done{});
  }
  std::string temporary;
  const File file(open_temporary(path, temporary));
  if (file.fd < 0) return cannot_write(path, errno);
  ::unlink(temporary.c_str());
  return Done{};
}

Status write_file_atomically(const std::string& path, std::span<const std::string_view> pieces) {
  const auto fail = [&](int error) { return cannot_write(path, error); };
  if (path.find('\0') != std::string::npos) return fail(EINVAL);
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) return fail(EISDIR);
    const File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const int error = file.fd < 0 ? errno : write_all(file.fd, pieces);
    return error ? Status(fail(error)) : Status(Done{});
  }
  std::string temporary;
  int error = 0;
  {
    const File file(open_temporary(path, temporary));
    if (file.fd < 0) return fail(errno);
    error = write_all(file.fd, pieces);
    if (!error && ::fsync(file.fd) != 0 && errno != EINVAL) error = errno;
  }
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return Done{};
  ::unlink(temporary.c_str());
  return fail(error);
}

}  // namespace fusec
