// Kernel + Schedule → text. The skeletons (templates/*.cuh) own lanes, masks, barriers and shared memory; the body is statements that they
// ask for by name, where they are filled in (skeleton.h, emit_filled.cpp), or call as functions of a struct, where they are templates:
//
//   struct K { Ix, V, Args; At, Row; Raw<S>, Keep, Late, Acc<S>;
//     rows, columns, policy;  row_at, element_at: from numbers to indices;
//     row: row values known before the first sweep;  load<S>: loads only;  cut: loads to what is kept;  early;  hide;
//     fold<S>, finish<S>: one sweep;  store;  row_store };
//
// Passes: S < Folds are the folding sweeps, S = Folds is the stores. A held row has Raw<0> and Keep, a looped one Raw<S> each.

#include <algorithm>

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/prune.h"
#include "codegen/cuda/texts.h"

namespace fusec::cuda {
namespace {

/// The sections of the prelude that a kernel may need.
const Library& prelude(bool narrow, bool folds) {
  auto made = [](bool narrow, bool folds) {
    return Library(text("prelude.cuh") + text("cells.cuh") + text("casts.cuh") + (narrow ? text("narrow.cuh") : "") + (folds ? text("reduce.cuh") : ""));
  };
  static const Library kOf[] = {made(false, false), made(true, false), made(false, true), made(true, true)};
  return kOf[narrow + 2 * folds];
}

}  // namespace

std::string text(const std::string& name) {
  for (const Text* t = kTexts; t->name; ++t)
    if (name == t->name) return t->text;
  return "#error missing " + name + "\n";
}

void Emitter::find_row_values() {
  std::vector<Val> all = view_.element_stores();
  for (Val v : view_.row_stores()) all.push_back(v);
  for (size_t i = 0; i < folds_; ++i)
    for (Val v : view_.fold_inputs(i)) all.push_back(v);
  for (Val v : view_.needed(all, [](Val) { return false; })) {
    if (w_.by_reciprocal(v)) w_.reciprocals.insert(k_.values[v].args[1]);
    if (is_row(v) && k_.values[v].kind != Kind::store) row_values_.push_back(v);
  }
  crosses_ = outlives_stage(view_);
  for (Val v : w_.reciprocals) crosses_[v] = 1;
}

std::vector<Val> Emitter::targets(size_t pass) const {
  if (pass < folds_) return view_.fold_inputs(pass);
  std::vector<Val> out;
  for (Val store : view_.element_stores()) each_operand(k_.values[store], [&](Val v) { out.push_back(v); });
  return out;
}

/// Inputs of a sweep that its fold has to find as values.
std::vector<Val> Emitter::folded(const Body& fold, size_t pass) const {
  std::vector<Val> out;
  for (uint16_t j : k_.sweeps[pass].reductions) {
    const Reduction& r = k_.reductions[j];
    if (together_ && folded_bytes(w_, r) != kNoVal) continue;
    if (together_ || lanes() > 1 || !added_words(w_, fold, r)) out.insert(out.end(), r.inputs.begin(), r.inputs.end());
  }
  return out;
}

std::vector<Val> Emitter::loads(const std::vector<Val>& targets) const {
  std::vector<Val> out = view_.needed(targets, [&](Val v) { return view_.level(v) != Level::element; });
  std::erase_if(out, [&](Val v) { return k_.values[v].kind != Kind::load; });
  return out;
}

/// Column: do all vectors of elements come out of two aligned pieces?
bool Emitter::shifted() const {
  bool any = false;
  for (Val v : view_.accesses) {
    if (k_.values[v].kind != Kind::load || is_row(v) || !view_.wide(v)) continue;
    if (!w_.access(v).staged) return false;
    any = true;
  }
  return any && s_.skeleton == Template::column;
}

/// Column: are bytes of several positions added as whole numbers, before they go to the running sums?
bool Emitter::adds_rows() const {
  const bool adds = s_.skeleton == Template::column && sums_bytes(k_) && s_.rows_in_flight > 1 && w_.V % 4 == 0;
  return adds && s_.edges != Edges::tail;  // where loads are shifted into place, how many are together depends on the call
}

std::string Emitter::kept_words(Val v) const { return "Words<" + n(bytes(kept_type(v)) * (view_.wide(v) ? w_.V : 1)) + ">"; }

void Emitter::choose_exchange() {
  if (s_.keep != Keep::registers || s_.cut.size() != 1) return;
  const Val kept = s_.cut[0];
  auto stop = [&](Val v) { return view_.level(v) != Level::element; };
  for (size_t pass = 0; pass < folds_ && exchanged_ == kNoVal; ++pass) {
    std::vector<Val> later;
    for (size_t p = pass + 1; p <= folds_; ++p)
      for (Val v : targets(p)) later.push_back(v);
    for (Val v : view_.needed(targets(pass), [&](Val v) { return stop(v) || v == kept; })) {
      const bool fits = k_.values[v].kind == Kind::compute && view_.wide(v) && !w_.contracted[v] && bytes(kept_type(v)) == bytes(kept_type(kept));
      if (!fits) continue;
      const std::vector<Val> rest = view_.needed(later, stop, [&](Val x) { return x == v; });
      if (std::count(rest.begin(), rest.end(), v) && !std::count(rest.begin(), rest.end(), kept)) exchange_pass_ = pass, exchanged_ = v;
    }
  }
}

// What a pass finds in the registers of a row.
void Emitter::have_kept(Body& body, size_t pass) const {
  if (pass > exchange_pass_) return body.have_words(exchanged_, kept_member(s_.cut[0]), kept_type(exchanged_));
  for (Val v : s_.cut) body.have_words(v, kept_member(v), kept_type(v));
}

void Emitter::have_raw(Body& body, size_t pass) const {
  for (Val v : loads(targets(pass))) body.have_words(v, (stays(v) ? "beside.l" : "raw.l") + n(v), k_.operands[k_.values[v].operand].type);
}

std::string Emitter::row_members() {
  std::string out;
  for (Val v : row_values_)
    for (const char* name : {" v", " q"})
      if (crosses_[v] && (*(name + 1) == 'v' || w_.reciprocals.count(v)))
        out += "    " + (w_.as_float[v] ? "f32" : c_type(compute_type(k_.values[v].type))) + name + n(v) + (view_.wide(v) ? "[" + n(w_.V) + "]" : "") + ";\n";
  if (softmax_) out += "    RowExp p;\n";
  return out;
}

// Row values that become known at a stage. Results of reductions come first, from `acc`.
std::string Emitter::row_stage(size_t stage, std::string*) {
  Body out(w_, 4);
  std::vector<Val> now;
  for (Val v : row_values_) {
    if (view_.stages[v] == stage) now.push_back(v);
    else if (view_.stages[v] < stage) out.have(v, "row.v" + n(v));
  }
  auto keep = [&](Val v, const std::string& value) {
    if (!crosses_[v]) {
      out.close_loop();
      out.line("const " + c_type(compute_type(k_.values[v].type)) + " v" + n(v) + " = " + value + ";");
      return out.have(v, "v" + n(v));
    }
    const std::string e = view_.wide(v) ? "[e]" : "", at = n(v) + e;
    if (view_.wide(v)) out.open_loop();
    else out.close_loop();
    out.line("row.v" + at + " = " + value + ";");
    if (w_.reciprocals.count(v)) out.line("row.q" + at + " = " + cell(Op::reciprocal, compute_type(k_.values[v].type), {"row.v" + at}) + ";");
    out.have(v, "row.v" + n(v));
  };
  for (Val v : now)
    if (k_.values[v].kind == Kind::result) {
      std::string value = result_text(w_, k_.values[v], stage - 1, state_layout(k_, stage - 1, lanes()));
      if (!view_.wide(v) && lanes() > 1)
        for (size_t at; (at = value.find("[e]")) != std::string::npos;) value.replace(at, 3, "[0]");
      keep(v, value);
    }
  std::vector<Val> computed;
  for (Val v : now)
    if (k_.values[v].kind != Kind::result) computed.push_back(v);
  out.close_loop();
  out.need(computed);
  out.close_loop();
  for (Val v : computed) {
    if (!crosses_[v]) continue;
    const std::string value = out.at(v);
    keep(v, value);
  }
  return out.take();
}

// Indices along the axes of one space from a linear number; only those that something asked for.
std::string Emitter::row_at(bool reduced) {
  const std::vector<unsigned> axes = view_.space(reduced);
  const std::string x = reduced ? "e" : "r";
  const std::set<unsigned>& wanted = reduced ? w_.element_indices : w_.row_indices;
  const std::string out = "    t." + x + " = " + x + ";\n";
  std::vector<unsigned> real;
  for (unsigned axis : axes)
    if (!k_.axes[axis].extent.is(1)) real.push_back(axis);
  const std::string indices = decompose(real, wanted);
  return indices.empty() ? out : out + "    " + w_.index_type() + " q = " + x + ";\n" + indices;
}

// From the linear number q over `real` axes, outermost first, the wanted indices.
std::string Emitter::decompose(const std::vector<unsigned>& real, const std::set<unsigned>& wanted) {
  std::string out;
  size_t outermost = 0;  // no axis further out is wanted
  while (outermost < real.size() && !wanted.count(real[outermost])) ++outermost;
  if (outermost == real.size()) return out;
  for (size_t i = real.size(); i-- > outermost;) {
    const unsigned axis = real[i];
    const Dim& extent = k_.axes[axis].extent;
    if (i == 0) {
      if (wanted.count(axis)) out += "    t.i" + n(axis) + " = q;\n";
      break;
    }
    const std::string u = s_.wide_index ? "u64" : "u32", ix = w_.index_type();
    std::string quotient, size;
    if (extent.is_constant()) {
      size = w_.args.dim(extent);
      quotient = "(" + ix + ")((" + u + ")q / (" + u + ")" + size + ")";
    } else {
      size = w_.args.field(Slot::extent, axis);
      quotient = "divide(q, " + w_.args.field(Slot::magic, axis) + ", " + w_.args.field(Slot::shift, axis) + ")";
    }
    if (i == outermost && !wanted.count(axis)) break;
    out += "    { const " + ix + " p = " + quotient + ";";
    if (wanted.count(axis)) out += " t.i" + n(axis) + " = q - p * " + size + ";";
    out += " q = p; }\n";
  }
  return out;
}

/// Ring: a word of each piece that comes out of a slot, all in one.
std::string Emitter::taken(const std::vector<Val>& list, const std::vector<Val>& from) const {
  std::string out = "0u";
  for (Val v : list) {
    if (!std::count(from.begin(), from.end(), v)) continue;
    const size_t words = (bytes(w_.operand(v).type) * w_.V + 3) / 4, step = std::max<size_t>(1, w_.access(v).bytes / 4);
    for (size_t w = 0; w < words; w += step) out += " | raw.l" + n(v) + ".w[" + n(w) + "]";
  }
  return out;
}

/// Ring: is it a parameter of the columns that the lanes load themselves, with the stores?
bool Emitter::loads_ahead(size_t pass, Val v) const {
  const Inst& inst = k_.values[v];
  return copies_ && pass == folds_ && (!w_.windows() || w_.words()) && !w_.access(v).staged && !(inst.varies & view_.row_axes) && !is_computed(inst) && inst.map.guard == kNoVal;
}

// Pointwise: elements from one vector of a lane to the next, where they are rows apart; the group of rows that a number `at` is in.
std::string Emitter::apart() {
  const Dim& extent = k_.axes[s_.vector_axis].extent;
  if (extent.is_constant()) return n(size_t(extent.constant()) * s_.steps);
  return "(" + n(s_.steps) + " * " + w_.args.field(Slot::extent, s_.vector_axis) + ")";
}

std::string Emitter::group() {
  const std::string u = s_.wide_index ? "u64" : "u32", ix = w_.index_type();
  if (k_.axes[s_.vector_axis].extent.is_constant()) return "(" + ix + ")((" + u + ")at / (" + u + ")" + apart() + ")";
  const std::string row = "divide(at, " + w_.args.field(Slot::magic, s_.vector_axis) + ", " + w_.args.field(Slot::shift, s_.vector_axis) + ")";
  return "(" + ix + ")((" + u + ")" + row + " / " + n(s_.steps) + "u)";
}

// Loads and folds of each pass, straight from memory.
void Emitter::passes() {
  holds_ = s_.skeleton == Template::ring && std::any_of(s_.access.begin(), s_.access.end(), [](const Access& a) { return a.early; });
  for (size_t pass = 0; pass <= folds_; ++pass) {
    const std::vector<Val> list = loads(targets(pass));
    std::vector<Val> besides;  // out of the slots of parameters
    std::string members, beside, held, staying;
    bool any_ahead = false;
    Body load = body(4), ahead = body(4), once = body(4);
    if (!copies_) load.have_policy();
    for (Val v : list) {
      if (stays(v)) {
        staying += "  " + w_.words_type(v) + " l" + n(v) + ";\n";
        once.fetch(v, "beside.l" + n(v));
        continue;
      }
      members += "  " + w_.words_type(v) + " l" + n(v) + ";\n";
      if (copies_ && in_cut(v)) {
        load.close_loop();
        const size_t size = bytes(w_.operand(v).type);
        load.line(fetch(std::min<size_t>(w_.access(v).bytes, w_.V * size), w_.V * size, "kPlain", "raw.l" + n(v),
                        "slot + (" + slot_offset(v) + " + at * " + n(size) + lead(load, v) + ")", "0"));
        load.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
        continue;
      }
      if (copies_ && w_.access(v).staged) {
        beside += column_fetch(v);
        besides.push_back(v);
        load.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
        continue;
      }
      if (loads_ahead(pass, v)) {
        ahead.fetch(v, "raw.l" + n(v));
        if (holds_) {
          held += "    raw.l" + n(v) + " = from.l" + n(v) + ";\n";
          // Or ptxas keeps them unpacked, twice the registers.
          if (bytes(w_.operand(v).type) < 4) held += "    hide_words(raw.l" + n(v) + ", " + w_.args.field(Slot::zero) + ");\n";
        }
        load.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
        any_ahead = true;
        continue;
      }
      if (w_.access(v).staged && s_.skeleton == Template::transpose) continue;  // from the tile
      load.need(Body::inputs_of_map(k_.values[v]));
      load.fetch(v, "raw.l" + n(v));
      load.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
    }
    structs_ += raw_head(pass) + " {\n" + members + "};\n";
    if (!staying.empty()) structs_ += "struct Beside {\n" + staying + "};\n", bodies_["beside"] = once.take();
    if (copies_) functions_ += "  D u32 taken(Int<" + n(pass) + ">, const Raw<" + n(pass) + ">& raw) { return " + taken(list, s_.cut) + "; }\n";
    if (any_ahead) {
      loads_ahead_ = true;
      function("ahead(Int<" + n(pass) + ">, const Args& a, const At& t, int n, Raw<" + n(pass) + ">& raw)", ahead.take());
    }
    if (!held.empty()) {
      functions_ += "  D void beside(Int<" + n(pass) + ">, const Args& a, const Raw<" + n(pass) + ">& from, Raw<" + n(pass) + ">& raw) {\n" + held + "  }\n";
    }
    if (!besides.empty()) {
      columns_of_ |= 1u << pass;
      functions_ += "  D u32 taken_beside(Int<" + n(pass) + ">, const Raw<" + n(pass) + ">& raw) { return " + taken(list, besides) + "; }\n";
      functions_ += "  template <int Q>";
      function("beside(Int<" + n(pass) + ">, Int<Q>, const Args& a, const At& t, int n, const char* columns_at, Ix slice, Ix at, Raw<" + n(pass) + ">& raw)", beside);
    }
    function("load(Int<" + n(pass) + ">, const Args& a, const At& t, int n, " + (copies_ ? "const char* slot, Ix slice, Ix at" : "u64 policy") +
                 ", const Row& row, Raw<" + n(pass) + ">& raw)", load.take());
    if (pass == folds_) break;
    Body fold = body(4);
    have_raw(fold, pass);
    fold.need(folded(fold, pass));
    if (together_) {
      structs_ += lane_text(w_, pass);
      take_text(w_, fold, pass);
      function("take(Int<" + n(pass) + ">, const Args& a, const At& t, int n, const Raw<" + n(pass) + ">& raw, const Row& row, LaneOf<" + n(pass) +
                   ">& lane)", fold.take());
      continue;
    }
    if (adds_rows()) {
      std::string rows;
      for (uint16_t j : k_.sweeps[pass].reductions) {
        const Val v = summed_bytes(k_, k_.reductions[j]);
        rows += "    add_rows<" + std::string(k_.values[v].type == DType::i8 ? "true" : "false") + ">(raw, &Raw" + n(pass) + "::l" + n(v) + ", acc.q" + n(j) + ");\n";
      }
      bodies_["folds" + n(pass)] = rows;
    }
    fold_text(w_, fold, pass, state_layout(k_, pass, lanes()));
    function("fold(Int<" + n(pass) + ">, const Args& a, const At& t, int n, const Raw<" + n(pass) + ">& raw, const Row& row, Acc<" +
                 n(pass) + ">& acc)", fold.take());
  }
}

// A row that stays on chip: loads of the cut, the cut, folds from what was kept.
void Emitter::held() {
  choose_exchange();
  std::vector<Val> list = loads(s_.cut), late, warm;
  for (size_t pass = 0; pass <= folds_; ++pass)
    for (Val v : view_.needed(targets(pass), [&](Val v) { return view_.level(v) != Level::element || in_cut(v); }))
      if (k_.values[v].kind == Kind::load) {
        if (w_.access(v).early) late.push_back(v);
        if (w_.access(v).prefetch && w_.access(v).bytes >= 4 && !(k_.values[v].varies & view_.row_axes)) warm.push_back(v);
      }
  for (std::vector<Val>* some : {&late, &warm}) {
    std::sort(some->begin(), some->end());
    some->erase(std::unique(some->begin(), some->end()), some->end());
  }

  // What is only loaded stays in the words that it came in; a template would have to know.
  cuts_ = filled_skeleton().empty() || std::set<Val>(list.begin(), list.end()) != std::set<Val>(s_.cut.begin(), s_.cut.end());
  std::string raw_members, keep_members, late_members;
  Body load = body(4), cut = body(4), early = body(4);
  load.have_policy();
  for (Val v : list) {
    raw_members += "  " + w_.words_type(v) + " l" + n(v) + ";\n";
    load.need(Body::inputs_of_map(k_.values[v]));
    load.fetch(v, "raw.l" + n(v));
    load.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
    cut.have_words(v, "raw.l" + n(v), k_.operands[k_.values[v].operand].type);
  }
  std::vector<Val> computed;
  std::string hide;
  const bool hidden = unpacks_again(view_, s_);
  for (Val v : s_.cut) {
    keep_members += "    " + kept_words(v) + " k" + n(v) + ";\n";
    if (hidden) hide += "    hide_words(" + kept_member(v) + ", " + w_.args.field(Slot::zero) + ");\n";
    if (k_.values[v].kind == Kind::load) cut.line("keep.k" + n(v) + " = raw.l" + n(v) + ";");
    else computed.push_back(v);
  }
  cut.need(computed);
  for (Val v : computed) cut.pack(v, kept_type(v), "keep.k" + n(v));
  for (Val v : late) {
    late_members += "    " + w_.words_type(v) + " l" + n(v) + ";\n";
    early.need(Body::inputs_of_map(k_.values[v]));
    early.fetch(v, "late.l" + n(v));
  }
  Body warming = body(4);
  for (Val v : warm) {
    warming.warm(v);
    warmed_ = std::max<long>(warmed_, long(bytes(k_.operands[k_.values[v].operand].type)));
  }
  bodies_["warm"] = warming.take();
  early_ = !late.empty(), hides_ = !hide.empty();
  structs_ += raw_head(0) + " {\n" + raw_members + "};\n";
  keep_ = keep_members, late_ = late_members;
  functions_ += "  struct Keep {\n" + keep_members + "  };\n  struct Late {\n" + late_members + "  };\n";
  function("load(Int<0>, const Args& a, const At& t, int n, u64 policy, const Row& row, Raw<0>& raw)", load.take());
  function("cut(const Args& a, const At& t, const Raw<0>& raw, const Row& row, Keep& keep)", cut.take());
  function("early(const Args& a, const At& t, int n, const Row& row, Late& late)", early.take());
  function("hide(const Args& a, Keep& keep)", hide);
  for (size_t pass = 0; pass < folds_; ++pass) {
    Body fold = body(4);
    have_kept(fold, pass);
    fold.need(folded(fold, pass));
    fold_text(w_, fold, pass, state_layout(k_, pass, 1));
    const bool exchanges = pass == exchange_pass_;
    if (exchanges) fold.pack(exchanged_, kept_type(exchanged_), kept_member(s_.cut[0]));
    function("fold(Int<" + n(pass) + ">, const Args& a, const At& t, int n, " + (exchanges ? "" : "const ") + "Keep& keep, const Row& row, Acc<" + n(pass) +
                 ">& acc)", fold.take());
  }
  Body store = body(4);
  have_kept(store, folds_);
  for (Val v : late) store.have_words(v, "late.l" + n(v), k_.operands[k_.values[v].operand].type);
  store.need(targets(folds_));
  for (Val v : view_.element_stores()) store.store(v);
  function("store(const Args& a, const At& t, int n, const Keep& keep, const Late& late, const Row& row)", store.take());
}

void Emitter::finishes() {
  function("row(const Args& a, const At& t, int n, Row& row)", row_stage(0, nullptr));
  if (together_) softmax_ = softmax_of(w_);
  for (size_t s = 0; s < folds_; ++s) {
    structs_ += state_text(w_, s, state_layout(k_, s, lanes()), together_ ? together_text(w_, s) : "");
    function("finish(Int<" + n(s) + ">, const Args& a, const At& t, int n, const Acc<" + n(s) + ">& acc, Row& row)", row_stage(s + 1, nullptr) + (softmax_ && view_.stages[softmax_->sum] == s + 1 ? softmax_row_text(w_, *softmax_) : ""));
  }
}

void Emitter::stores() {
  if (!held_) {
    auto store = [&](const std::string& name, const std::string& which, const std::string& where) {
      Body out = body(4);
      have_raw(out, folds_);
      if (softmax_) probabilities_text(w_, out, *softmax_);
      out.store_where(where);
      out.need(targets(folds_));
      for (Val v : view_.element_stores()) out.store(v);
      function(name + "(const Args& a, const At& t, " + which + ", const Raw<" + n(folds_) + ">& raw, const Row& row)", out.take());
    };
    store("store", "int n", "");
    if (stores_where()) store("store_where", "bool there", "there");
  }
  Body rows = body(4);
  for (Val v : view_.row_stores()) rows.store(v);
  function("row_store(const Args& a, const At& t, int n, const Row& row)", rows.take());
}

std::string Emitter::entry() const {
  const std::string threads = n(s_.threads), in_flight = n(std::max<int>(1, s_.rows_in_flight));
  switch (s_.skeleton) {
    case Template::pointwise: return "pointwise<K, " + threads + ", " + in_flight + ">(a);";
    case Template::rows:
      if (s_.keep == Keep::shared || s_.keep == Keep::cluster)
        return "rows_shared<K, " + threads + ", " + in_flight + ", " + n(std::max<int>(1, s_.cluster)) + ">(a);";
      if (tiled_)
        return "rows_tiled<K, " + n(s_.lanes_per_row) + ", " + n(s_.steps) + ", " + threads + ", " + in_flight + ", " + n(s_.slots) + ">(a);";
      if (held_)
        return "rows_held<K, " + n(s_.lanes_per_row) + ", " + n(s_.steps) + ", " + threads + ", " + in_flight + ", " + n(std::max<int>(1, s_.cluster)) + ">(a);";
      return "rows_looped<K, " + threads + ", " + in_flight + ">(a);";
    case Template::column:
      return "column<K, " + n(s_.lanes_per_row) + ", " + n(s_.threads / s_.lanes_per_row) + ", " + in_flight + ", " +
             (s_.finish == Finish::last_block ? "true" : "false") + ">(a);";
    case Template::split: return "split<K, " + threads + ", " + in_flight + ">(a);";
    case Template::transpose: return "transpose<K, " + threads + ", " + n(s_.block[s_.vector_axis]) + ">(a);";
    case Template::ring:
      return "ring<K, " + threads + ", " + n(std::max<int>(1, s_.cluster)) + ", " + n(std::max<int>(1, s_.steps)) + ", " +
             n(std::max<int>(1, s_.slots)) + ", " + n(std::max<int>(1, s_.slices)) + ", " + n(s_.ahead) + ", " + n(std::max<int>(1, s_.column_slots)) + ", " +
             n(std::max<int>(1, s_.team)) + ">(a);";
    case Template::scan:
      if (s_.finish == Finish::last_block && column_) return "scan_column_parts<K, " + n(s_.lanes_per_row) + ", " + n(s_.steps) + ", " + threads + ">(a);";
      if (s_.finish == Finish::last_block) return "scan_parts<K, " + n(s_.steps) + ", " + threads + ">(a);";
      return std::string(column_ ? "scan_columns<K, " : "scan_rows<K, ") + n(s_.lanes_per_row) + ", " + n(s_.steps) + ", " + threads + ">(a);";
    case Template::cpu_flat: case Template::cpu_rows: case Template::cpu_column: case Template::cpu_tile: break;
  }
  return "static_assert(false, \"no such skeleton\");";
}

std::vector<std::string> Emitter::skeletons() const {
  switch (s_.skeleton) {
    case Template::pointwise: return {"pointwise.cuh"};
    case Template::rows:
      if (tiled_) return {"held_sweeps.cuh", "rows_tiled.cuh"};
      if (s_.keep == Keep::registers && s_.cluster > 1) return {"cluster.cuh", "async.cuh", "meeting.cuh", "rows_held.cuh"};
      if (s_.keep == Keep::registers) return {"rows_held.cuh"};
      if (s_.keep == Keep::reload) return {"rows_looped.cuh"};
      return {"cluster.cuh", "rows_shared.cuh"};
    case Template::column: return {"column.cuh"};
    case Template::split: return {"split.cuh"};
    case Template::transpose: return {"transpose.cuh"};
    case Template::ring: return {"cluster.cuh", "async.cuh", "team.cuh", "ring.cuh"};
    case Template::scan:
      if (s_.finish == Finish::last_block) return {"scan.cuh", "scan_parts.cuh"};
      return {"scan.cuh"};
    case Template::cpu_flat: case Template::cpu_rows:
    case Template::cpu_column: case Template::cpu_tile: break;
  }
  return {};
}

// Is it known in the text that there is no short tile, or that a row fills its lanes?
bool Emitter::exact() const {
  if (s_.skeleton != Template::pointwise) return s_.block[s_.vector_axis] != 0;
  if (s_.steps) return false;
  Dim rows = 1;
  for (const Axis& axis : k_.axes) rows = rows * axis.extent;
  const int64_t tile = int64_t(s_.threads) * w_.V * std::max<int>(1, s_.rows_in_flight);
  return rows.is_constant() && rows.constant() % tile == 0;
}

std::string Emitter::product(bool reduced) {
  Dim out = 1;
  for (const Axis& axis : k_.axes)
    if (axis.reduced == reduced) out = out * axis.extent;
  return out.is_constant() ? w_.args.dim(out) : w_.args.field(reduced ? Slot::columns : Slot::rows);
}

size_t Emitter::state_bytes() const {
  size_t out = 16;
  for (size_t s = 0; s < folds_; ++s) out = std::max(out, state_layout(k_, s, lanes()).bytes);
  return out;
}

// Everything is written by now: what was asked for is known. `indent` is that of the structs.
std::string Emitter::structs_of_k(const std::string& indent) {
  std::string at = indent + "struct At {\n" + indent + "  Ix r, e;\n";
  if (w_.windows() && s_.skeleton == Template::ring) at += indent + "  Ix from;\n" + indent + "  i64 step;  // from + step = e\n";
  if (tiled_) at += indent + "  char* tile;\n" + indent + "  Ix first, at;  // the tile's first element, and where the row begins behind it\n";
  std::set<unsigned> indices = w_.row_indices;
  indices.insert(w_.element_indices.begin(), w_.element_indices.end());
  for (unsigned axis : indices) at += indent + "  Ix i" + n(axis) + ";\n";
  at += indent + "};\n";
  std::vector<std::string> pointers;
  for (Val v : view_.accesses)
    pointers.push_back((k_.values[v].kind == Kind::load ? "const " : "") + bits_type(k_.operands[k_.values[v].operand].type) + "* ");
  return indent + "struct Args {\n" + w_.args.members(pointers, indent + "  ") + indent + "};\n" + at;
}

std::string Emitter::text_of_k(const std::string& tile_members) {
  std::string k = "struct K {\n  typedef " + w_.index_type() + " Ix;\n";
  // An enumeration: constants of a class would become variables of the module.
  k += "  enum { V = " + n(w_.V) + ", Folds = " + n(folds_) + ", AccBytes = " + n(state_bytes()) + ", Full = " + n(s_.edges == Edges::full || w_.V == 1) +
       ", Exact = " + n(exact()) + ", Stores = " + n(!view_.element_stores().empty()) + ", Windows = " +
       n(w_.windows()) + ", Window = " + n(size_t(window_of(view_, s_))) + ", Shifted = " + n(shifted()) + ", Early = " + n(early_) + ", Hides = " + n(hides_) + ", RowStores = " + n(!view_.row_stores().empty()) + (k_.scans() ? ", Reverse = " + n(k_.reductions[0].reverse) : "") + " };\n";
  std::string number = "  D Ix rows(const Args& a) { return " + product(false) + "; }\n";
  number += "  D Ix columns(const Args& a) { return " + product(true) + "; }\n";
  number += "  D Ix skew(const Args& a, const At& t) { return " + (w_.windows() ? skew() : std::string("0")) + "; }\n";
  number += "  D u64 policy(const Args& a) { return " + (w_.streamed ? "make_policy(" + w_.args.field(Slot::policy) + ")" : std::string("0")) + "; }\n";
  if (s_.finish == Finish::last_block) {
    number += "  D u32 splits(const Args& a) { return " + w_.args.field(Slot::splits) + "; }\n";
    number += "  D u32* counters(const Args& a) { return " + w_.args.field(Slot::counters) + "; }\n";
    number += "  D char* states(const Args& a) { return " + w_.args.field(Slot::states) + "; }\n";
  }
  const std::string row_at_text = row_at(false), element_at_text = row_at(true);
  k += structs_of_k("  ") + "  struct Row {\n" + row_members() + "  };\n";
  const bool lanes_apart = s_.skeleton == Template::ring || s_.skeleton == Template::scan;
  k += "  template <int S> using Raw = RawOf<S>;\n  template <int S> using Acc = AccOf<S>;\n" +
       std::string(lanes_apart ? "  template <int S> using Lane = LaneOf<S>;\n" : "") + number + tile_members;
  k += "  D void row_at(const Args& a, Ix r, At& t) {\n" + row_at_text + "  }\n";
  const bool apart = w_.windows() && s_.skeleton == Template::ring;
  k += "  D void element_at(const Args& a, Ix e, At& t) {\n" + element_at_text + (apart ? "    t.from = e;\n    t.step = 0;\n" : "") + "  }\n";
  if (apart) k += "  D void element_at(const Args& a, Ix from, Ix step, At& t) {\n    element_at(a, from + step, t);\n    t.from = from;\n    t.step = step;\n  }\n";
  return "template <int S> struct RawOf;\ntemplate <int S> struct AccOf;\n" + std::string(lanes_apart ? "template <int S> struct LaneOf;\n" : "") + structs_ + k + functions_ +
         "};\n";
}

Code Emitter::code() {
  if (tiled_) place();
  if (s_.skeleton == Template::scan) scan();
  else if (held_) held();
  else passes();
  if (s_.skeleton == Template::transpose) tiles();
  const std::string tile_members = s_.skeleton == Template::ring ? copies() : tiled_ ? runs() : "";
  if (s_.skeleton != Template::scan) finishes(), stores();

  Code out;
  out.entry = "fusec_kernel";
  out.schedule = s_;
  const std::string filled = filled_skeleton();
  std::string body = filled.empty() ? text_of_k(tile_members) : "", statements = "  " + entry() + "\n";
  if (!filled.empty()) {
    const Filled kernel = fill(filled, parts());
    body = structs_of_kernel() + kernel.before, statements = with_sizes(kernel.kernel);
  }
  out.slots = w_.args.slots();
  for (const std::string& name : skeletons())
    if (!is_filled(text(name))) out.text += text(name);
  for (auto [op, type] : w_.formulas) out.text += formula_text(op, type);
  out.text += body + "extern \"C\" __global__ void __launch_bounds__(" + n(size_t(block_threads(s_))) + ", " + n(s_.min_blocks) + ") fusec_kernel(const __grid_constant__ " +
              (filled.empty() ? "K::" : "") + "Args a) {\n" + (s_.dependent_launch ? "  wait_for_kernel_in_front();\n" : "") + statements + "}\n";
  bool narrow = false;
  for (const Operand& o : k_.operands) narrow |= is_narrow(o.type);
  for (const Inst& inst : k_.values) narrow |= is_narrow(inst.type);
  out.text.insert(0, prelude(narrow, folds_ > 0).reached_from(out.text));
  return out;
}

Code emit(const Kernel& kernel, const Schedule& schedule) {
  if (!schedule.merged) return Emitter(kernel, schedule).code();
  const Kernel paired = merge_sweeps(kernel);
  return Emitter(paired, schedule).code();
}

}  // namespace fusec::cuda
