#pragma once
// What all functions of one kernel share while it is written: the argument block, what is computed in pairs or contracted, and the
// questions that a statement asks about its values.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "codegen/cuda/arguments.h"
#include "codegen/cuda/shape.h"

namespace fusec::cuda {

struct Writer {
  const View& view;
  const Schedule& schedule;
  Arguments args;
  unsigned V = 1;                                  // elements of a lane vector
  std::set<std::pair<Op, DType>> formulas;         // used, by their result's type
  void use_formula(Op op, DType type);
  std::set<unsigned> row_indices, element_indices; // axes whose index is asked for
  bool streamed = false;
  /// Rows in tiles: where a staged access finds the first element of a lane's vector in shared memory.
  std::map<Val, std::string> placed;
  /// Several vectors a lane: the number "t.e" of the lane's vector in a row in registers is "lane * 4" plus "s * 1024"; else "".
  std::string stepped, first_element, step_of_element;
  std::set<Val> reciprocals;                       // row values whose reciprocal stands in the row too, as "row.q…"

  Writer(const View& v, const Schedule& s);
  const Kernel& kernel() const { return view.kernel; }
  const Inst& inst(Val v) const { return view.kernel.values[v]; }
  const Operand& operand(Val access) const { return kernel().operands[inst(access).operand]; }
  const Access& access(Val v) const { return schedule.access[view.access_of[v]]; }
  std::string index_type() const { return schedule.wide_index ? "i64" : "i32"; }
  /// "t.i2": the index along an axis, of the lane's first element.
  std::string index(unsigned axis);
  /// Must the register be rounded to the value's narrow type? Not when only stores of that type read it: packing rounds.
  /// Nor when it is packed two at a time and unpacked again, half an instruction less.
  bool rounds(Val v) const { return inst(v).rounds && !packed_only[v] && !packs[v]; }
  std::vector<char> packed_only;
  /// Element values of f16 or bf16 that are computed two at a time, in the words that memory holds (narrow.cuh).
  std::vector<char> paired;
  /// Element values that are computed in f32, rounded two at a time, and kept as pairs.
  std::vector<char> packs;
  /// Products that only sums of elements read, into whose fma they go. Composites grant it (kContract).
  std::vector<char> contracted;
  /// Do the words of this type hold whole pairs?
  bool holds_pairs(DType type) const { return V % 2 == 0 && (type == DType::f16 || type == DType::bf16); }
  /// Fills `paired`, `packed_only`, `packs` and `contracted`; V and the view's flatness must be final.
  void choose_pairs();
  void choose_contractions();
  /// Values of constants alone, which the compiler may know.
  std::vector<char> known;
  bool all_known(const std::vector<Val>& values) const;
  /// The operand to hide from it: of an operation on f32 it must not know all, since a NaN of constants is a number to it (`opaque`, cells.cuh).
  std::optional<size_t> hidden(const Inst& inst) const;
  /// Loads of bytes that only casts to f32 read: they are unpacked to f32.
  std::vector<char> as_float;
  /// May this division of an element by a row value be a multiplication by the row's reciprocal? Composites grant it.
  bool by_reciprocal(Val v) const;
  /// A constant of a float type that is neither zero nor NaN: max and min with it are one instruction with the same bits.
  bool is_bound(Val v) const;
  /// Is x clamped to constants inside an integer type of up to 16 bits? Then its conversion need not saturate.
  bool lies_inside(Val x, DType type) const;
  /// Does it come from an integer of up to 16 bits?
  bool is_small(Val v) const;
  /// Is this a division of a lane's vector by one f32? Then the reciprocal is taken once (same bits: `over` in cells.cuh).
  bool divides_by_one(Val v) const;
  /// Is its f32 register a bf16, rounded in every mode?
  bool is_bf16(Val v) const;
  /// The same where all three are bf16: a product (same bits: `over_bf16` in cells.cuh).
  bool divides_bf16(Val v) const;
  /// Members of the space that a linear number walks (see emit.cpp): "t.r" and "t.e".
  std::string number(bool reduced) const { return reduced ? "t.e" : "t.r"; }
  /// Are the elements of a lane's vector neighbours in memory, in ascending order? Then they are fetched in pieces.
  bool contiguous(Val access) const;
  /// Does each element of the vector need its own address or its own guard?
  bool scattered(Val access) const;
  /// How the pieces of a load are fetched (prelude.cuh); memory that the kernel may write in place is not read-only.
  std::string fetch_kind(Val load, bool streamed) const;
  /// Pointwise, flat: is it contiguous along the vector axis, though not across the ends of its runs?
  bool runs_on(Val access) const;
  std::string words_type(Val access) const;
  /// Conditions that element e of a lane's vector exists, and that all of them do; "" when they always hold. Elements end at `n`;
  /// with aligned windows a row also begins inside its first vector.
  std::string valid() const;
  std::string whole() const;
  /// When a load may fetch its whole vector: where rows follow each other without gaps, an aligned window at the end of a row reads on
  /// into the neighbour's; only the last one of the tensor must not.
  std::string whole(Val load) const;
  /// Are they taken a word a lane step (window_of)?
  bool words() const { return by_words(view, schedule); }
  bool windows() const { return schedule.edges == Edges::window && !view.flat && schedule.skeleton != Template::column; }
};

}  // namespace fusec::cuda
