#include "lib/import/onnx_mapping.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusec::onnx {

Mapping::~Mapping() {
  if (length_) munmap(base_, length_);
}

std::shared_ptr<const Mapping> Mapping::of(int fd, uint64_t offset, uint64_t size) {
  std::shared_ptr<Mapping> out(new Mapping);
  if (size == 0) return out;
  const uint64_t before = offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void* base = mmap(nullptr, before + size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset - before));
  if (base == MAP_FAILED) return nullptr;
  out->base_ = base;
  out->length_ = before + size;
  out->text_ = {static_cast<const char*>(base) + before, size};
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
  else if (!(out = Mapping::of(fd, 0, static_cast<uint64_t>(status.st_size)))) fault = "cannot be mapped";
  if (fd >= 0) close(fd);
  if (!fault.empty()) return input_error(path + ": " + fault);
  return out;
}

}  // namespace fusec::onnx
