#pragma once
// Prints the statements of one body function: what a few target values need, in order, given what is at hand already.
//
// A value that varies along the vector axis is an array of V; consecutive ones share one unrolled loop over e. Others are scalars.

#include <map>
#include <string>

#include "codegen/cuda/writer.h"

namespace fusec::cuda {

class Body {
 public:
  Body(Writer& writer, int indent) : w_(writer), indent_(indent) {}

  /// Values at hand: expression of a value; wide ones are arrays.
  void have(Val v, const std::string& text) { have_[v] = text; }
  /// Words of a load (or of a packed value of the cut) that were fetched before, and the type they hold.
  void have_words(Val v, const std::string& text, DType storage) { words_[v] = {text, storage}; }
  /// The text of a load's words, where they were fetched before.
  std::optional<std::string> words(Val v) const {
    const auto found = words_.find(v);
    return found == words_.end() ? std::nullopt : std::optional(found->second.first);
  }
  /// Is there a variable `policy` for streamed loads?
  void have_policy() { policy_ = true; }
  /// Stores whole vectors, or where this expression is false none: what comes before them stands in no branch.
  void store_where(const std::string& there) { where_ = there; }
  /// Emits what the targets need.
  void need(const std::vector<Val>& targets);
  /// Emits the fetch of a load into `words`, with its guard; `n` valid elements. Guards and extras must be at hand.
  void fetch(Val load, const std::string& words);
  /// What a fetch or store of `access` reads besides its data: extras and guard.
  static std::vector<Val> inputs_of_map(const Inst& inst);
  /// Emits what brings the sector with the first of the lane's elements into the L1.
  void warm(Val load);
  /// Emits the fetch of 16 bytes of a staged load along `axis`, `n` valid elements.
  void fetch_along(Val load, unsigned axis, const std::string& words);
  void store(Val store);
  /// Emits `to = ` the words of a value as `type`.
  void pack(Val v, DType type, const std::string& to);

  /// Elements from the access's first one to element `e` ("" = 0) of the lane's vector.
  std::string offset(Val access, const std::string& e);
  /// Where its vector begins, as an expression of a pointer.
  std::string address(Val access);
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
  std::string where_;
  std::map<Val, std::string> have_;
  std::map<Val, std::pair<std::string, DType>> words_;
  std::map<Val, std::string> pairs_;  // words that hold a value's pairs
};

}  // namespace fusec::cuda
