// .npz: a zip archive of .npy files, stored or deflated, with 64-bit sizes where numpy writes them.
// APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.16 (its end), 4.5.3 (64-bit sizes).

#include <zlib.h>

#include <algorithm>

#include "tools/fusec/tensor_file.h"

namespace fusec::cli {
namespace {

uint64_t number(std::string_view s, size_t at, int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes && at + i < s.size(); ++i) n |= uint64_t(uint8_t(s[at + i])) << (8 * i);
  return n;
}

void put(std::string& out, uint64_t n, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(char(n >> (8 * i)));
}

Result<std::string> inflate_all(std::string_view from, size_t size) {
  // A deflated byte gives at most 1032: no archive makes us reserve more than that.
  if (size / 1032 > from.size() + 1) return input_error(".npz: a size that the data cannot have");
  std::string out(size, '\0');
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return environment_error("zlib does not start");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t in = from.size(), room = size;
  int status = Z_OK;
  while (status == Z_OK) {  // zlib counts in 32 bits
    const uInt some_in = uInt(std::min<size_t>(in, 1u << 30)), some_out = uInt(std::min<size_t>(room, 1u << 30));
    z.avail_in = some_in, z.avail_out = some_out;
    status = inflate(&z, Z_NO_FLUSH);
    in -= some_in - z.avail_in, room -= some_out - z.avail_out;
    if (status == Z_OK && some_in == z.avail_in && some_out == z.avail_out) break;
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END || room != 0) return input_error(".npz: damaged compressed data");
  return out;
}

uint32_t checksum(std::string_view s) {
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < s.size(); at += 1u << 30)
    crc = crc32(crc, reinterpret_cast<const Bytef*>(s.data() + at), uInt(std::min<size_t>(s.size() - at, 1u << 30)));
  return uint32_t(crc);
}

}  // namespace

Result<Tensors> parse_npz(std::string_view file, std::optional<DType> wanted) {
  const size_t end = file.rfind("PK\5\6");
  if (end == file.npos || file.size() - end < 22) return input_error("not an .npz file");
  uint64_t count = number(file, end + 10, 2), at = number(file, end + 16, 4);
  if (const size_t end64 = file.rfind("PK\6\6", end); at == 0xffffffff && end64 != file.npos)
    count = number(file, end64 + 32, 8), at = number(file, end64 + 48, 8);
  Tensors out;
  uint64_t taken = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > file.size() || file.size() - at < 46 || !file.substr(at).starts_with("PK\1\2")) return input_error(".npz: a damaged directory");
    const uint64_t method = number(file, at + 10, 2), crc = number(file, at + 16, 4);
    uint64_t packed = number(file, at + 20, 4), size = number(file, at + 24, 4), local = number(file, at + 42, 4);
    const uint64_t name_size = number(file, at + 28, 2), extra_size = number(file, at + 30, 2), comment = number(file, at + 32, 2);
    if (file.size() - at - 46 < name_size + extra_size + comment) return input_error(".npz: a damaged directory");
    std::string name(file.substr(at + 46, name_size));
    std::string_view extra = file.substr(at + 46 + name_size, extra_size);
    while (extra.size() >= 4) {
      const uint64_t id = number(extra, 0, 2), length = std::min<uint64_t>(number(extra, 2, 2), extra.size() - 4);
      size_t field = 4;
      auto wide = [&](uint64_t& n) {
        if (id == 1 && n == 0xffffffff) n = number(extra, field, 8), field += 8;
      };
      wide(size), wide(packed), wide(local);
      extra.remove_prefix(4 + length);
    }
    at += 46 + name_size + extra_size + comment;
    if (local > file.size() || file.size() - local < 30) return input_error(".npz: a damaged directory");
    const uint64_t start = local + 30 + number(file, local + 26, 2) + number(file, local + 28, 2);
    if (start > file.size() || packed > file.size() - start) return input_error(".npz: " + name + " is cut off");
    // Entries share no bytes: no archive unfolds to more than 1032 times its size.
    if ((taken += packed) > file.size()) return input_error(".npz: " + name + " overlaps another entry");
    const std::string_view data = file.substr(start, packed);
    if (method != 0 && method != 8) return input_error(".npz: " + name + " is compressed in a way that is not supported");
    Result<std::string> whole = method == 0 ? Result<std::string>(std::string(data)) : inflate_all(data, size);
    if (!whole) return whole.error().note("in " + name);
    if (checksum(*whole) != crc) return input_error(".npz: the checksum of " + name + " does not fit");
    Result<Tensor> tensor = parse_npy(*whole, wanted);
    if (!tensor) return tensor.error().note("in " + name);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    out[name] = std::move(*tensor);
  }
  return out;
}

std::string npz_bytes(const Tensors& tensors) {
  std::string out, directory;
  for (const auto& [name, tensor] : tensors) {
    const std::string data = npy_bytes(tensor), file = name + ".npy";
    const uint64_t at = out.size();
    std::string common;  // version, flags (UTF-8 names), stored, a fixed date: the same bytes every time
    put(common, 45, 2), put(common, 0x800, 2), put(common, 0, 2), put(common, 0, 2), put(common, 0x21, 2), put(common, checksum(data), 4);
    put(common, 0xffffffff, 4), put(common, 0xffffffff, 4), put(common, file.size(), 2);
    out += "PK\3\4" + common;
    put(out, 20, 2), out += file, put(out, 1, 2), put(out, 16, 2), put(out, data.size(), 8), put(out, data.size(), 8);
    out += data;
    directory += "PK\1\2";
    put(directory, 45, 2), directory += common, put(directory, 28, 2);
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, 0xffffffff, 4);
    directory += file, put(directory, 1, 2), put(directory, 24, 2);
    put(directory, data.size(), 8), put(directory, data.size(), 8), put(directory, at, 8);
  }
  const uint64_t start = out.size(), count = tensors.size();
  out += directory;
  const uint64_t end64 = out.size();
  out += "PK\6\6", put(out, 44, 8), put(out, 45, 2), put(out, 45, 2), put(out, 0, 4), put(out, 0, 4);
  put(out, count, 8), put(out, count, 8), put(out, directory.size(), 8), put(out, start, 8);
  out += "PK\6\7", put(out, 0, 4), put(out, end64, 8), put(out, 1, 4);
  out += "PK\5\6", put(out, 0, 4), put(out, std::min<uint64_t>(count, 0xffff), 2), put(out, std::min<uint64_t>(count, 0xffff), 2);
  put(out, std::min<uint64_t>(directory.size(), 0xffffffff), 4), put(out, 0xffffffff, 4), put(out, 0, 2);
  return out;
}

}  // namespace fusec::cli
