// Every read is bounded by what is left: a damaged length can neither read outside nor reserve more than the file holds.

#include "runtime/artifact_file.h"

#include <openssl/evp.h>

#include <cstring>

namespace fusec {
namespace {

constexpr std::string_view kMagic = "FUSECART";
constexpr size_t kHeader = 8 + 4 + 32 + 8, kChecksum = 32;

struct Writer {
  std::string out;
  void number(uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(n >> (8 * i)));
  }
  void text(std::string_view s) { number(s.size(), 8), out.append(s); }
};

struct Reader {
  std::string_view left;
  bool good = true;

  uint64_t number(int bytes) {
    if (left.size() < size_t(bytes)) return good = false, 0;
    uint64_t n = 0;
    for (int i = 0; i < bytes; ++i) n |= uint64_t(uint8_t(left[i])) << (8 * i);
    left.remove_prefix(bytes);
    return n;
  }
  std::string_view text() {
    const uint64_t size = number(8);
    if (!good || size > left.size()) return good = false, std::string_view{};
    std::string_view s = left.substr(0, size);
    left.remove_prefix(size);
    return s;
  }
  /// A count of things of at least `bytes` each.
  uint64_t count(uint64_t bytes) {
    const uint64_t n = number(8);
    return n <= left.size() / bytes ? n : (good = false, 0);
  }
};

void write(Writer& w, const Slot& slot) {
  w.number(slot.kind, 1), w.number(slot.bytes, 1), w.number(slot.a, 4), w.number(slot.b, 4), w.text(slot.size.text());
}

Slot read_slot(Reader& r) {
  Slot slot{};
  slot.kind = static_cast<Slot::Kind>(r.number(1));
  slot.bytes = r.number(1), slot.a = r.number(4), slot.b = r.number(4);
  const std::optional<Dim> size = Dim::parse(r.text());
  r.good = r.good && size && slot.kind <= Slot::shift && (slot.bytes == 4 || slot.bytes == 8);
  if (r.good) slot.size = *size;
  return slot;
}

}  // namespace

Digest sha256(std::string_view data) {
  Digest out{};
  unsigned size = out.size();
  EVP_Digest(data.data(), data.size(), out.data(), &size, EVP_sha256(), nullptr);
  return out;
}

std::string hex(const Digest& digest) {
  std::string out;
  for (uint8_t byte : digest) out += "0123456789abcdef"[byte >> 4], out += "0123456789abcdef"[byte & 15];
  return out;
}

std::string to_file(const Digest& key, const Artifact& artifact) {
  Writer payload;
  payload.text(artifact.target), payload.text(artifact.entry), payload.text(artifact.finish_entry);
  payload.text({reinterpret_cast<const char*>(artifact.bytes.data()), artifact.bytes.size()});
  payload.number(artifact.slots.size(), 8);
  for (const Slot& slot : artifact.slots) write(payload, slot);
  payload.text(bytes(artifact.schedule));
  payload.number(artifact.facts.size(), 8);
  for (const auto& [name, value] : artifact.facts) payload.text(name), payload.number(value, 8);

  Writer file;
  file.out = kMagic;
  file.number(kCacheSchema, 4);
  file.out.append(reinterpret_cast<const char*>(key.data()), key.size());
  file.text(payload.out);
  const Digest checksum = sha256(file.out);
  file.out.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
  return file.out;
}

std::optional<Artifact> from_file(const Digest& key, std::string_view file) {
  if (file.size() < kHeader + kChecksum || file.substr(0, 8) != kMagic) return {};
  const Digest checksum = sha256(file.substr(0, file.size() - kChecksum));
  if (std::memcmp(checksum.data(), file.data() + file.size() - kChecksum, kChecksum) != 0) return {};
  Reader header{file.substr(8, file.size() - kChecksum - 8)};
  if (header.number(4) != kCacheSchema || std::memcmp(header.left.data(), key.data(), key.size()) != 0) return {};
  header.left.remove_prefix(key.size());
  Reader r{header.text()};
  if (!header.good || !header.left.empty()) return {};

  Artifact out;
  out.target = r.text(), out.entry = r.text(), out.finish_entry = r.text();
  const std::string_view code = r.text();
  out.bytes.assign(code.begin(), code.end());
  for (uint64_t n = r.count(18); r.good && n > 0; --n) out.slots.push_back(read_slot(r));
  std::optional<Schedule> schedule = parse_schedule(r.text());
  if (!schedule) return {};
  out.schedule = std::move(*schedule);
  for (uint64_t n = r.count(16); r.good && n > 0; --n) {
    std::string name(r.text());
    out.facts[name] = static_cast<int64_t>(r.number(8));
  }
  if (!r.good || !r.left.empty()) return {};
  return out;
}

}  // namespace fusec
