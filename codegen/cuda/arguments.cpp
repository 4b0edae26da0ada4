#include "codegen/cuda/arguments.h"

#include <algorithm>
#include <cstdint>

namespace fusec::cuda {
namespace {

// 8-byte fields first, so that the block has no holes; otherwise in the order in which they were asked for.
template <class T> std::vector<T> ordered(std::vector<T> fields) {
  std::stable_partition(fields.begin(), fields.end(), [](const T& f) { return f.slot.bytes == 8; });
  return fields;
}

}  // namespace

std::string Arguments::field(Slot::Kind kind, uint32_t a, uint32_t b) {
  for (const Field& f : fields_)
    if (f.slot.kind == kind && f.slot.a == a && f.slot.b == b && kind != Slot::dim) return "a." + f.name;
  Slot slot{};
  slot.kind = kind, slot.a = a, slot.b = b;
  std::string name;
  const std::string x = std::to_string(a), y = std::to_string(b);
  slot.bytes = index_bytes_;
  switch (kind) {
    case Slot::pointer: name = "p" + x, slot.bytes = 8; break;
    case Slot::step: name = "t" + x + "_" + y; break;
    case Slot::stride: name = "b" + x + "_" + y; break;
    case Slot::extent: name = "x" + x; break;
    case Slot::dim: break;  // dim()
    case Slot::rows: name = "rows"; break;
    case Slot::columns: name = "columns"; break;
    case Slot::states: name = "states", slot.bytes = 8; break;
    case Slot::counters: name = "counters", slot.bytes = 8; break;
    case Slot::splits: name = "splits", slot.bytes = 4; break;
    case Slot::zero: name = "zero", slot.bytes = 4; break;
    case Slot::policy: name = "policy", slot.bytes = 4; break;
    case Slot::magic: name = "m" + x; break;
    case Slot::shift: name = "h" + x, slot.bytes = 4; break;
  }
  fields_.push_back({slot, name});
  return "a." + name;
}

std::string Arguments::dim(const Dim& dim, uint8_t bytes) {
  if (dim.is_constant()) {
    // A literal of the type that arithmetic on it has to have: as wide as the index.
    const int64_t n = dim.constant();
    if (bytes == 4 && n >= 0 && n <= INT32_MAX) return std::to_string(n);
    return std::string(bytes == 8 ? "(i64)(" : "(i32)(") + std::to_string(n) + ")";
  }
  size_t count = 0;
  for (const Field& f : fields_) {
    if (f.slot.kind != Slot::dim) continue;
    if (f.slot.size == dim && f.slot.bytes == bytes) return "a." + f.name;
    ++count;
  }
  Slot slot{};
  slot.kind = Slot::dim, slot.bytes = bytes, slot.size = dim;
  fields_.push_back({slot, "d" + std::to_string(count)});
  return "a." + fields_.back().name;
}

std::string Arguments::members(const std::vector<std::string>& pointer_types, const std::string& indent) const {
  std::string out;
  for (const Field& f : ordered(fields_)) {
    std::string type = f.slot.bytes == 8 ? "i64 " : "i32 ";
    switch (f.slot.kind) {
      case Slot::pointer: type = pointer_types[f.slot.a]; break;
      case Slot::states: type = "char* "; break;
      case Slot::counters: type = "u32* "; break;
      case Slot::magic: type = f.slot.bytes == 8 ? "u64 " : "u32 "; break;
      case Slot::shift: case Slot::splits: case Slot::zero: case Slot::policy: type = "u32 "; break;
      case Slot::step: case Slot::stride: case Slot::extent: case Slot::dim: case Slot::rows: case Slot::columns: break;
    }
    out += indent + type + f.name + ";\n";
  }
  return out;
}

std::vector<Slot> Arguments::slots() const {
  std::vector<Slot> out;
  for (const Field& f : ordered(fields_)) out.push_back(f.slot);
  return out;
}

}  // namespace fusec::cuda
