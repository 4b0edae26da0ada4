// Everything goes through the descriptor of the directory that was checked, so nobody can put another one in its place.

#include "runtime/cache_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <random>

#include "lib/support/files.h"
#include "lib/support/limits.h"
#include "runtime/log.h"

namespace fusec {
namespace {

constexpr std::string_view kSuffix = ".fusec", kTemporary = ".tmp-";
constexpr int64_t kForgotten = 3600;  // seconds after which a temporary file belongs to nobody any more

std::string reason() { return std::generic_category().message(errno); }

struct File {
  int fd;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

std::string file_name(const Digest& key) { return hex(key) + std::string(kSuffix); }

bool is_entry(std::string_view name) {
  return name.size() == 64 + kSuffix.size() && name.ends_with(kSuffix) &&
         name.substr(0, 64).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Digest> key_of(std::string_view name) {
  if (!is_entry(name)) return {};
  Digest key;
  for (size_t i = 0; i < key.size(); ++i) std::from_chars(name.data() + 2 * i, name.data() + 2 * i + 2, key[i], 16);
  return key;
}

/// A whole regular file of ours; nullopt for anything else. `missing` tells absence from a fault.
std::optional<std::string> slurp(int dir, const std::string& name, bool* missing) {
  // O_NONBLOCK: a pipe put in an entry's place must not hang us. O_NOFOLLOW: a link is not an entry.
  File file{::openat(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  *missing = file.fd < 0 && errno == ENOENT;
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return {};
  if (info.st_mode & 022 || info.st_size > kMaxArtifactBytes) return {};
  std::string text(info.st_size, '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::read(file.fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    at += n;
  }
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write_some(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

/// Whatever stands where an entry should be; a directory too.
Status remove_entry(int dir, const std::string& path, const std::string& name) {
  if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) return Done{};
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::path(path) / name;
  std::filesystem::remove_all(whole, error);
  return error ? Status(environment_error("cannot remove " + whole.string() + ": " + error.message())) : Status(Done{});
}

Status make(const std::string& path) {
  std::string part;
  for (size_t at = 0; at < path.size();) {
    at = std::min(path.find('/', at + 1), path.size());
    part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    struct stat info;
    const int error = errno;
    if (::stat(part.c_str(), &info) == 0) continue;  // a read-only parent that is there
    errno = error;
    return environment_error("cannot make the cache directory " + part + ": " + reason());
  }
  return Done{};
}

std::string unique_name() {
  static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string name = std::string(kTemporary) + std::to_string(::getpid()) + "-";
  for (int i = 0; i < 12; ++i) name += kDigits[random() % 36];
  return name;
}

}  // namespace

std::string CacheDir::default_path() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value && value[0] == '/' ? value : "";  // the XDG rule: a relative path is ignored
  };
  if (std::string path = variable("FUSEC_CACHE_DIR"); !path.empty()) return path;
  if (const char* text = std::getenv("FUSEC_CACHE_DIR"); text && *text) {
    static const bool kSaid = (log_warning("FUSEC_CACHE_DIR is ignored: '" + std::string(text) + "' is no absolute path"), true);
    (void)kSaid;
  }
  if (std::string path = variable("XDG_CACHE_HOME"); !path.empty()) return path + "/fusec";
  // A home that is not there is not ours to make.
  std::error_code ignored;
  if (std::string path = variable("HOME"); !path.empty() && std::filesystem::is_directory(path, ignored)) return path + "/.cache/fusec";
  return "";
}

std::string CacheDir::why_no_default() {
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return "no cache directory: HOME is " + std::string(home) + ", which is no directory, and neither FUSEC_CACHE_DIR nor XDG_CACHE_HOME is set";
  return "no cache directory: none of FUSEC_CACHE_DIR, XDG_CACHE_HOME and HOME is set to an absolute path";
}

uint64_t CacheDir::default_capacity() {
  uint64_t bytes = uint64_t{256} << 20;
  const char* text = std::getenv("FUSEC_CACHE_BYTES");
  if (!text || !*text) return bytes;
  uint64_t given = 0;
  const char* const end = text + std::strlen(text);
  if (const auto [at, error] = std::from_chars(text, end, given); error == std::errc() && at == end) return given;
  static const bool kSaid = (log_warning("FUSEC_CACHE_BYTES is ignored: '" + std::string(text) + "' is no number of bytes"), true);
  (void)kSaid;
  return bytes;
}

CacheDir::CacheDir(std::string path, int fd, uint64_t capacity) : path_(std::move(path)), fd_(fd), capacity_(capacity) {}
CacheDir::CacheDir(CacheDir&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), capacity_(other.capacity_) {}
CacheDir::~CacheDir() {
  if (fd_ >= 0) ::close(fd_);
}

Result<CacheDir> CacheDir::open(std::string path, uint64_t capacity) {
  if (path.empty()) return environment_error(why_no_default());
  if (Status made = make(path); !made) return made.error();
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return environment_error("cannot open the cache directory " + path + ": " + reason());
  CacheDir dir(path, fd, capacity);
  struct stat info;
  if (::fstat(fd, &info) != 0) return environment_error("cannot look at the cache directory " + path + ": " + reason());
  if (info.st_uid != ::geteuid())
    return environment_error("the cache directory " + path + " belongs to user " + std::to_string(info.st_uid) + ", not to " +
                             std::to_string(::geteuid()));
  if (info.st_mode & 022) return environment_error("others may write to the cache directory " + path + ": chmod 0700 it");
  return dir;
}

std::optional<Artifact> CacheDir::read(const Digest& key, bool* removed) const {
  const std::string name = file_name(key);
  bool missing = false;
  const std::optional<std::string> text = slurp(fd_, name, &missing);
  std::optional<Artifact> artifact = text ? from_file(key, *text) : std::nullopt;
  if (artifact) {
    ::utimensat(fd_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // now: least recently used is by modification time
    return artifact;
  }
  const bool went = !missing && remove_entry(fd_, path_, name);
  if (removed) *removed = went;
  return {};
}

Status CacheDir::write(const Digest& key, const Artifact& artifact) {
  const std::string text = to_file(key, artifact), name = file_name(key), temporary = unique_name();
  auto failed = [&](const char* what) -> Status {
    Error error = environment_error(std::string("cannot ") + what + " in the cache directory " + path_ + ": " + reason());
    ::unlinkat(fd_, temporary.c_str(), 0);
    return error;
  };
  {
    File file{::openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (file.fd < 0) return failed("make a file");
    if (!write_all(file.fd, text) || ::fsync(file.fd) != 0) return failed("write");
  }
  if (::renameat(fd_, temporary.c_str(), fd_, name.c_str()) != 0) {
    (void)remove_entry(fd_, path_, name);  // a directory in the entry's place
    if (::renameat(fd_, temporary.c_str(), fd_, name.c_str()) != 0) return failed("rename");
  }
  written_ += text.size();
  if (!looked_ || written_ > capacity_ / 16) trim();
  return Done{};
}

std::vector<CacheDir::Entry> CacheDir::list() const {
  std::vector<Entry> entries;
  // A descriptor of its own: readdir moves the position of the one it is given.
  DIR* dir = ::fdopendir(::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return entries;
  const int64_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(dir)) {
    struct stat info;
    const std::string_view name = entry->d_name;
    const bool temporary = name.starts_with(kTemporary);
    if ((!temporary && !is_entry(name)) || ::fstatat(fd_, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!temporary) entries.push_back({std::string(name), uint64_t(info.st_size), info.st_mtime});
    else if (now - info.st_mtime > kForgotten) ::unlinkat(fd_, entry->d_name, 0);  // its process died while writing
  }
  ::closedir(dir);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used != b.used ? a.used > b.used : a.name < b.name; });
  return entries;
}

std::optional<Artifact> CacheDir::inspect(const Entry& entry) const {
  bool missing = false;
  const std::optional<Digest> key = key_of(entry.name);
  const std::optional<std::string> text = key ? slurp(fd_, entry.name, &missing) : std::nullopt;
  return text ? from_file(*key, *text) : std::nullopt;
}

Status CacheDir::remove(const Entry& entry) const { return remove_entry(fd_, path_, entry.name); }

void CacheDir::trim() {
  looked_ = true;
  written_ = 0;
  uint64_t kept = 0;
  for (const Entry& entry : list()) {
    kept += entry.bytes;
    // A tenth below: the next few entries then cost no look at the directory.
    if (kept > capacity_ - capacity_ / 10) kept -= entry.bytes, (void)remove(entry);
  }
}

}  // namespace fusec
