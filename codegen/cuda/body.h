#pragma once
// Prints the statements of one body function: what a few target values need, in order, given what is at hand already.
//
// A value that varies along the vector axis is an array of V; consecutive ones share one unrolled loop over e. Others are scalars.

#include <functional>
#include <map>
#include <set>
#include <string>

#include "codegen/cuda/arguments.h"
#include "codegen/cuda/shape.h"

namespace fusec::cuda {

/// What all functions of one kernel share while it is written.
struct Writer {
  const View& view;
  const Schedule& schedule;
  Arguments args;
  unsigned V = 1;                                  // elements of a lane vector
  std::set<std::pair<Op, DType>> formulas;         // used, by their result's type
  void use_formula(Op op, DType type);
  std::set<unsigned> row_indices, element_indices; // axes whose index is asked for
  bool streamed = false;
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
  /// Members of the space that a linear number walks (see emit.cpp): "t.r" and "t.e".
  std::string number(bool reduced) const { return reduced ? "t.e" : "t.r"; }
  /// Are the elements of a lane's vector neighbours in memory, in ascending order? Then they are fetched in pieces.
  bool contiguous(Val access) const;
  /// Does each element of the vector need its own address or its own guard?
  bool scattered(Val access) const;
  /// How the pieces of a load are fetched (prelude.cuh); memory that the kernel may write in place is not read-only.
  std::string fetch_kind(Val load, bool streamed) const;
  std::string words_type(Val access) const;
  /// Conditions that element e of a lane's vector exists, and that all of them do; "" when they always hold. Elements end at `n`;
  /// with aligned windows a row also begins inside its first vector.
  std::string valid() const;
  std::string whole() const;
  /// When a load may fetch its whole vector: where rows follow each other without gaps, an aligned window at the end of a row reads on
  /// into the neighbour's; only the last one of the tensor must not.
  std::string whole(Val load) const;
  bool windows() const { return schedule.edges == Edges::window && !view.flat; }
};

class Body {
 public:
  Body(Writer& writer, int indent) : w_(writer), indent_(indent) {}

  /// Values at hand: expression of a value; wide ones are arrays.
  void have(Val v, const std::string& text) { have_[v] = text; }
  /// Words of a load (or of a packed value of the cut) that were fetched before, and the type they hold.
  void have_words(Val v, const std::string& text, DType storage) { words_[v] = {text, storage}; }
  /// Is there a variable `policy` for streamed loads?
  void have_policy() { policy_ = true; }
  /// Emits what the targets need.
  void need(const std::vector<Val>& targets);
  /// Emits the fetch of a load into `words`, with its guard; `n` valid elements. Guards and extras must be at hand.
  void fetch(Val load, const std::string& words);
  /// What a fetch or store of `access` reads besides its data: extras and guard.
  static std::vector<Val> inputs_of_map(const Inst& inst);
  /// Emits the fetch of 16 bytes of a staged load along `axis`, `n` valid elements.
  void fetch_along(Val load, unsigned axis, const std::string& words);
  void store(Val store);
  /// Emits `to = ` the words of a value as `type`.
  void pack(Val v, DType type, const std::string& to);

  /// Elements from the access's first one to element `e` ("" = 0) of the lane's vector.
  std::string offset(Val access, const std::string& e);
  /// Expression of a value: of element e inside a loop over e, else only for scalars.
  std::string at(Val v, const std::string& e = "e");
  void line(const std::string& text);
  void hoist(const std::string& text);
  void open_loop();   // for each element e; statements until close_loop are inside
  void close_loop();
  std::string take() { close_loop(); return std::move(out_); }

 private:
  void value(Val v);
  void define(Val v, const std::string& expression);
  std::string compute(Val v);
  std::string pairs(Val v);
  void pair_value(Val v);

  Writer& w_;
  std::string out_;
  int indent_;
  bool loop_ = false, policy_ = false;
  std::map<Val, std::string> have_;
  std::map<Val, std::pair<std::string, DType>> words_;
  std::map<Val, std::string> pairs_;  // words that hold a value's pairs
};

}  // namespace fusec::cuda
