// External data: the one place where a file's contents name another file, so the location is treated as an attack.
//
// Checks on the text alone would miss links, and a check on the resolved path alone could race with a rename: the
// resolved path is opened without following a last link, and what was opened must be the regular file.

#include "lib/import/onnx_external.h"

#include <charconv>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/import/onnx_model.h"

namespace fusec::onnx {
namespace {

namespace fs = std::filesystem;

struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

std::optional<uint64_t> decimal(const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >> 63) return std::nullopt;
  return value;
}

/// The location's path with all links resolved, inside the folder.
Result<std::string> resolve(const std::string& location, const std::string& folder) {
  const std::string named = "external data " + quote(location);
  if (location.empty()) return input_error("external data without a location");
  if (location.find('\0') != std::string::npos) return input_error(named + ": a NUL in the location");
  if (folder.empty()) return input_error(named + ": the model was given as bytes, so there is no folder to look in");
  const fs::path relative(location);
  if (relative.is_absolute()) return input_error(named + ": an absolute location");
  for (const fs::path& part : relative)
    if (part == "..") return input_error(named + ": a location outside the model's folder");
  std::error_code error;
  const fs::path base = fs::canonical(folder, error);
  if (error) return input_error(named + ": the model's folder: " + error.message());
  const fs::path path = fs::canonical(base / relative, error);
  if (error) return input_error(named + ": " + error.message());
  const fs::path inside = path.lexically_relative(base);
  if (inside.empty() || *inside.begin() == ".." || inside == ".")
    return input_error(named + ": leads outside the model's folder");
  return path.string();
}

}  // namespace

Result<std::shared_ptr<const Mapping>> DataFiles::open(const std::string& location) {
  const std::string named = "external data " + quote(location);
  Result<std::string> path = resolve(location, folder_);
  if (!path) return path.error();
  std::shared_ptr<const Mapping>& mapping = files_[*path];
  if (mapping) return mapping;
  const File file{::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat status{};
  if (file.fd < 0 || fstat(file.fd, &status) != 0) return input_error(named + ": cannot be opened");
  if (!S_ISREG(status.st_mode)) return input_error(named + ": not a regular file");
  mapping = Mapping::of(file.fd, static_cast<uint64_t>(status.st_size));
  if (!mapping) return input_error(named + ": cannot be mapped");
  return mapping;
}

Result<std::span<const std::byte>> DataFiles::find(const ExternalData& data, uint64_t bytes, std::shared_ptr<const void>& keeper) {
  const std::string named = "external data " + quote(data.location);
  const std::optional<uint64_t> offset = data.offset ? decimal(*data.offset) : 0;
  if (!offset) return input_error(named + ": offset " + quote(*data.offset) + " is no number below 2^63");
  if (data.length) {
    const std::optional<uint64_t> length = decimal(*data.length);
    if (!length) return input_error(named + ": length " + quote(*data.length) + " is no number below 2^63");
    if (*length != bytes)
      return input_error(named + ": length " + *data.length + ", but the tensor's type and dims need " + std::to_string(bytes));
  }
  Result<std::shared_ptr<const Mapping>> file = open(data.location);
  if (!file) return file.error();
  const std::string_view text = (*file)->text();
  if (*offset > text.size() || bytes > text.size() - *offset)
    return input_error(named + ": bytes " + std::to_string(*offset) + " to " + std::to_string(*offset) + " + " +
                       std::to_string(bytes) + " of a file of " + std::to_string(text.size()));
  keeper = *file;
  return std::span(reinterpret_cast<const std::byte*>(text.data()) + *offset, bytes);
}

}  // namespace fusec::onnx
