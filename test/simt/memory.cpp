#include "test/simt/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace fusec::simt {
namespace {

// Room on both sides of a buffer that no other buffer gets: address space, not memory.
constexpr size_t kZone = size_t{1} << 20, kPage = 4096;

}  // namespace

Memory::~Memory() {
  for (Buffer& buffer : buffers_) release(buffer);
}

void Memory::release(Buffer& buffer) {
  if (buffer.shadow) give_cells(buffer.shadow);
  if (buffer.owned) munmap(buffer.zone_begin, buffer.zone_end - buffer.zone_begin);
}

void Memory::insert(Buffer buffer) {
  auto at = std::upper_bound(buffers_.begin(), buffers_.end(), buffer.begin,
                             [](char* p, const Buffer& b) { return p < b.begin; });
  buffers_.insert(at, std::move(buffer));
  last_ = 0;
}

void* Memory::allocate(uint64_t bytes, const std::string& name, bool unwritten) {
  size_t pages = (bytes + kPage - 1) / kPage * kPage, all = pages + 2 * kZone;
  void* map = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  Buffer buffer;
  buffer.name = name;
  buffer.owned = true;
  buffer.zone_begin = static_cast<char*>(map);
  buffer.zone_end = buffer.zone_begin + all;
  buffer.begin = buffer.zone_begin + kZone;
  buffer.end = buffer.begin + bytes;
  if (pages && mprotect(buffer.begin, pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::memset(buffer.begin, 0xff, pages);
  if (unwritten) buffer.written.assign(bytes, 0);
  char* begin = buffer.begin;
  insert(std::move(buffer));
  return begin;
}

void Memory::add(void* begin, uint64_t bytes, const std::string& name, bool unwritten) {
  Buffer buffer;
  buffer.name = name;
  buffer.begin = static_cast<char*>(begin);
  buffer.end = buffer.begin + bytes;
  for (size_t i = 0; i < buffers_.size();) {
    Buffer& old = buffers_[i];
    if (buffer.begin >= old.begin && buffer.end <= old.end) return;
    if (buffer.begin >= old.end || old.begin >= buffer.end || old.owned) {
      i++;
      continue;
    }
    buffer.begin = std::min(buffer.begin, old.begin);
    buffer.end = std::max(buffer.end, old.end);
    if (old.name != name) buffer.name += "/" + old.name;
    unwritten = unwritten && !old.written.empty();
    release(old);
    buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(i));
    i = 0;  // the joined range may reach others
  }
  buffer.zone_begin = buffer.begin;
  buffer.zone_end = buffer.end;
  if (unwritten) buffer.written.assign(buffer.end - buffer.begin, 0);
  insert(std::move(buffer));
}

bool Memory::remove(void* begin) {
  for (auto buffer = buffers_.begin(); buffer != buffers_.end(); ++buffer) {
    if (buffer->begin != begin) continue;
    release(*buffer);
    buffers_.erase(buffer);
    last_ = 0;
    return true;
  }
  return false;
}

Buffer* Memory::find(const void* at, bool zones) {
  const char* p = static_cast<const char*>(at);
  if (!zones && last_ < buffers_.size() && p >= buffers_[last_].begin && p < buffers_[last_].end)
    return &buffers_[last_];
  for (size_t i = std::upper_bound(buffers_.begin(), buffers_.end(), p,
                                   [](const char*q, const Buffer&b) { return q < b.begin; }) -
                  buffers_.begin(),
              tries = 0;
       tries < 2; tries++, i--) {
    // the buffer that begins behind the address (its front zone may hold it), then the one before
    if (i < buffers_.size()) {
      Buffer& b = buffers_[i];
      if (zones ? p >= b.zone_begin && p < b.zone_end : p >= b.begin && p < b.end) {
        last_ = i;
        return &b;
      }
    }
    if (i == 0) break;
  }
  return nullptr;
}

Cell* Memory::shadow(Buffer& buffer) {
  if (!buffer.shadow) buffer.shadow = take_cells((buffer.end - buffer.begin) / 4 + 2);
  return buffer.shadow;
}

}  // namespace fusec::simt
