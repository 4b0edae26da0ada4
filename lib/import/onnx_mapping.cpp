#include "lib/import/onnx_mapping.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusec::onnx {

Mapping::~Mapping() {
  if (!text_.empty()) munmap(const_cast<char*>(text_.data()), text_.size());
}

std::shared_ptr<const Mapping> Mapping::of(int fd, uint64_t size) {
  std::shared_ptr<Mapping> out(new Mapping);
  if (size == 0) return out;
  void* base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  out->text_ = {static_cast<const char*>(base), size};
  return out;
}

Result<std::shared_ptr<const Mapping>> map_model(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  std::shared_ptr<const Mapping> out;
  std::string fault;
  if (fd < 0 || fstat(fd, &status) != 0) fault = std::strerror(errno);
  else if (!S_ISREG(status.st_mode)) fault = "not a regular file";
  else if (status.st_size > int64_t{1} << 31) fault = "larger than 2 GiB";
  else if (!(out = Mapping::of(fd, static_cast<uint64_t>(status.st_size)))) fault = "cannot be mapped";
  if (fd >= 0) close(fd);
  if (!fault.empty()) return input_error(path + ": " + fault);
  return out;
}

}  // namespace fusec::onnx
