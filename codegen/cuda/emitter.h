#pragma once
// What emit() is made of; its parts are in emit.cpp and, for skeletons that move elements through shared memory, emit_copies.cpp; scans are in emit_scan.cpp.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/body.h"
#include "codegen/cuda/skeleton.h"
#include "codegen/cuda/softmax.h"
#include "codegen/cuda/states.h"
#include "codegen/cuda/words.h"
#include "lib/kernel/merge_sweeps.h"

namespace fusec::cuda {

inline std::string n(size_t i) { return std::to_string(i); }
/// A file of this folder or of templates/ (texts.h).
std::string text(const std::string& name);

class Emitter {
 public:
  Emitter(const Kernel& kernel, const Schedule& schedule)
      : k_(kernel), s_(schedule), view_(kernel, schedule.vector_axis), w_(view_, schedule) {
    view_.flat = s_.skeleton == Template::pointwise && s_.edges == Edges::window;
    w_.V = std::max<unsigned>(1, kernel.axes.empty() ? 1 : schedule.lane[schedule.vector_axis]);
    held_ = s_.skeleton == Template::rows && s_.keep != Keep::reload;
    copies_ = s_.skeleton == Template::ring && s_.slots > 0;
    tiled_ = s_.skeleton == Template::rows && s_.keep == Keep::registers && s_.slots > 0;
    column_ = k_.has_reductions() && !(k_.reduced_axes() >> s_.vector_axis & 1);
    folds_ = view_.folds();
    together_ = s_.skeleton == Template::ring;
    for (size_t s = 0; s < folds_; ++s) together_ &= folds_together(k_, s);
    w_.choose_pairs();
    if (s_.skeleton == Template::rows && s_.keep == Keep::registers && !tiled_ && s_.steps > 1 && (!w_.windows() || w_.words())) {
      w_.stepped = w_.number(true), w_.first_element = "lane * " + n(w_.V) + (w_.words() ? " - skew" : "");
      w_.step_of_element = "s * " + n(size_t(s_.lanes_per_row) * size_t(std::max<int>(1, s_.cluster)) * w_.V);
    } else if (s_.skeleton == Template::pointwise && s_.rows_in_flight > 1) {
      w_.stepped = w_.number(false), w_.first_element = "first", w_.step_of_element = "u * " + (s_.steps ? apart() : n(size_t(s_.threads) * w_.V));
    } else if (s_.skeleton == Template::column && s_.rows_in_flight > 1) {
      w_.stepped = w_.number(true), w_.first_element = "at", w_.step_of_element = "(Ix)u * " + n(size_t(s_.threads / s_.lanes_per_row));
    } else if (s_.skeleton == Template::ring && w_.windows()) {
      w_.stepped = w_.number(true), w_.first_element = "t.from", w_.step_of_element = "t.step";
    }
    find_row_values();
  }

  Code code();

 private:
  // Which values are where.
  void find_row_values();
  bool is_row(Val v) const { return view_.level(v) == Level::row; }
  std::vector<Val> targets(size_t pass) const;
  std::vector<Val> folded(const Body& fold, size_t pass) const;
  std::vector<Val> loads(const std::vector<Val>& targets) const;
  bool in_cut(Val v) const { return std::find(s_.cut.begin(), s_.cut.end(), v) != s_.cut.end(); }
  DType kept_type(Val v) const { return cuda::kept_type(k_, v); }
  std::string kept_words(Val v) const;
  unsigned lanes() const { return column_ ? w_.V : 1; }
  bool exact() const;
  size_t fills() const;
  bool asks() const;
  bool shifted() const;
  bool adds_rows() const;

  // Parts of K.
  Body body(int indent) {
    Body out(w_, indent);
    for (Val v : row_values_) out.have(v, "row.v" + n(v));
    return out;
  }
  void choose_exchange();
  void have_kept(Body& body, size_t pass) const;
  void have_raw(Body& body, size_t pass) const;
  std::string row_members();
  std::string row_stage(size_t stage, std::string* results);
  std::string row_at(bool reduced);
  std::string decompose(const std::vector<unsigned>& axes, const std::set<unsigned>& wanted);
  void tiles();
  std::string slot_offset(Val v) const, column_offset(Val v) const, column_fetch(Val v);
  size_t phase_size() const, phases() const;
  bool stores_where() const;
  std::string lead(Body& body, Val v);
  bool loads_ahead(size_t pass, Val v) const;
  bool stays(Val load) const { return s_.skeleton == Template::pointwise && s_.steps && is_parameter(view_, load); }
  std::string apart(), group();
  std::string taken(const std::vector<Val>& list, const std::vector<Val>& from) const;
  std::string copies();
  void place();
  std::string runs();
  void passes();
  void held();
  void scan();
  void finishes();
  void stores();

  /// A function of K, and statements that a filled skeleton asks for by its name and pass: "fold0".
  void function(const std::string& head, const std::string& statements) {
    functions_ += "  D void " + head + " {\n" + statements + "  }\n";
    const size_t open = head.find('('), pass = head.compare(open, 5, "(Int<") == 0 ? open + 5 : open;
    bodies_[head.substr(0, open) + (pass == open ? "" : head.substr(pass, head.find('>') - pass))] = statements;
  }
  std::string entry() const;
  std::vector<std::string> skeletons() const;

  // The two ways to a text: K beside a template, or a skeleton that is filled in (emit_filled.cpp).
  std::string product(bool reduced);
  std::string skew() { return "(Ix)((u32)t.r * (u32)columns(a) & " + n(size_t(window_of(view_, s_) - 1)) + "u)"; }  // of a row in aligned windows
  size_t state_bytes() const;
  std::string structs_of_k(const std::string& indent), text_of_k(const std::string& tile_members);
  std::string filled_skeleton() const;  // its text, or ""
  std::string structs_of_kernel(), with_sizes(const std::string& text);
  Parts parts();
  std::string raw_head(size_t pass) const { return filled_skeleton().empty() ? "template <> struct RawOf<" + n(pass) + ">" : "struct Raw" + n(pass); }
  std::string kept_member(Val v) const { return (cuts_ ? "keep.k" : "keep.l") + n(v); }

  const Kernel& k_;
  const Schedule& s_;
  View view_;
  Writer w_;
  // Rows in registers: after this pass, whatever follows needs only this value of each element, and it takes the place of the word kept.
  // Softmax keeps exp(x - max) once the sum has it, and no later sweep takes it again.
  size_t exchange_pass_ = ~size_t{0};
  Val exchanged_ = kNoVal;
  bool held_, column_, copies_, tiled_, together_;
  unsigned columns_of_ = 0;             // ring: passes that find parameters in slots, a bit each
  bool loads_ahead_ = false;            // ring: parameters that lanes load are asked for a slice ahead
  long warmed_ = 0;  // rows_held: bytes of an element of the widest parameter that is brought into the L1
  bool holds_ = false;                  // ring: or once, and registers hold all of them
  bool early_ = false, hides_ = false;  // rows_held: are parameters loaded with the row, and are words hidden between sweeps?
  size_t folds_;
  std::optional<Softmax> softmax_;      // ring: max and sum of one sweep
  std::vector<Val> row_values_;
  std::vector<char> crosses_;           // row values that are read behind the stage that computes them: members of Row
  bool cuts_ = true;                    // rows_held: is what is kept another thing than the words that were loaded?
  std::string structs_, functions_, keep_, late_;
  std::map<std::string, std::string> bodies_;
  Parts more_;                          // transpose: of its tiles
};

}  // namespace fusec::cuda
