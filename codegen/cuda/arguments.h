#pragma once
// The argument block while a kernel is written: a field is made when its name is first asked for, equal fields are one.

#include <map>
#include <string>
#include <vector>

#include "codegen/artifact.h"

namespace fusec::cuda {

class Arguments {
 public:
  explicit Arguments(bool wide) : index_bytes_(wide ? 8 : 4) {}
  /// "a.p3" …: text of the field. Index-like kinds are as wide as the kernel's index arithmetic.
  std::string field(Slot::Kind kind, uint32_t a = 0, uint32_t b = 0);
  /// The value of a Dim: a literal, or a field of `bytes`.
  std::string dim(const Dim& dim, uint8_t bytes);
  std::string dim(const Dim& d) { return dim(d, index_bytes_); }

  /// Members of `struct Args`, in the order of slots(). Types of pointers are given by access.
  std::string members(const std::vector<std::string>& pointer_types, const std::string& indent) const;
  std::vector<Slot> slots() const;

 private:
  struct Field {
    Slot slot;
    std::string name;
  };
  uint8_t index_bytes_;
  std::vector<Field> fields_;
};

}  // namespace fusec::cuda
