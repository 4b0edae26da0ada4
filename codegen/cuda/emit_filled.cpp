// What a skeleton that is filled in (skeleton.h) is filled with: numbers of the schedule, texts of sizes and arguments, the emitter's statements.

#include "codegen/cuda/emitter.h"

namespace fusec::cuda {
namespace {

/// Does the text call a function of that name?
bool calls(const std::map<std::string, std::string>& bodies, const std::string& function) {
  return std::any_of(bodies.begin(), bodies.end(), [&](const auto& body) { return body.second.find(function + "(a, ") != std::string::npos; });
}

/// Members of a struct inside of K, as those of one outside of it.
std::string outdented(const std::string& members) {
  std::string out;
  for (size_t at = 0; at < members.size(); at = members.find('\n', at) + 1) out += members.substr(at + 2, members.find('\n', at) - at - 1);
  return out;
}

}  // namespace

std::string Emitter::filled_skeleton() const {
  const std::string skeleton = text(skeletons().back());
  return is_filled(skeleton) ? skeleton : "";
}

// Sizes are called for by name; here they are numbers or arguments.
std::string Emitter::with_sizes(const std::string& text) {
  std::string out = text;
  for (const bool reduced : {false, true}) {
    const std::string call = reduced ? "columns(a)" : "rows(a)", size = product(reduced);
    for (size_t at = 0; (at = out.find(call, at)) != std::string::npos; at += size.size()) out.replace(at, call.size(), size);
  }
  return out;
}

Parts Emitter::parts() {
  const long threads = s_.threads, of_row = s_.lanes_per_row > 0 ? s_.lanes_per_row : s_.threads;
  const long R = std::max<int>(1, s_.rows_in_flight), cluster = std::max<int>(1, s_.cluster);
  const bool held = s_.skeleton == Template::rows && s_.keep == Keep::registers;
  const long lanes = held ? of_row : threads, bytes = long(state_bytes());
  const long gap = column_ && bytes % 32 == 0 && threads / 2 * (bytes + 16) <= 40 * 1024 ? 16 : 0;  // between states in shared memory
  Parts out;
  out.numbers = {{"V", w_.V}, {"Folds", long(folds_)}, {"AccBytes", bytes}, {"Gap", gap}, {"Full", s_.edges == Edges::full || w_.V == 1},
                 {"Exact", exact()}, {"Stores", !view_.element_stores().empty()}, {"Windows", w_.windows()}, {"Words", w_.words()},
                 {"Window", long(window_of(view_, s_))}, {"Shifted", shifted() && !slides(view_, s_)}, {"Slides", slides(view_, s_)}, {"Halo", s_.skeleton == Template::column && s_.edges == Edges::window},
                 {"Own", of_row - (s_.edges == Edges::window)}, {"Batch", column_ && R > 1 && view_.element_stores().empty() && !takes_formulas(view_) && s_.finish != Finish::last_block && (!shifted() || slides(view_, s_))}, {"Bytes", adds_rows()},
                 {"Early", early_}, {"RowStores", !view_.row_stores().empty()}, {"Wide", s_.wide_index}, {"Streamed", w_.streamed},
                 {"Split", s_.finish == Finish::last_block}, {"Cuts", cuts_}, {"RowValues", !row_members().empty()},
                 {"RowBefore", !bodies_["row"].empty()}, {"Loads", !bodies_["load0"].empty()},
                 {"Threads", threads}, {"Lanes", lanes}, {"WarpLanes", std::min<long>(lanes, 32)}, {"Steps", std::max<int>(1, s_.steps)}, {"R", R}, {"U", R}, {"RowsApart", s_.skeleton == Template::pointwise ? s_.steps : 0},
                 {"Cluster", cluster}, {"Group", threads / lanes}, {"Apart", held && lanes < 32 ? R : 1}, {"Together", held && lanes >= 32 ? R : 1},
                 {"Lates", w_.windows() ? R : 1}, {"X", of_row}, {"Y", threads / of_row},
                 {"Ahead", shifted() && !slides(view_, s_) ? 1 : bytes <= 32 ? 4 : bytes <= 64 ? 2 : 1}};  // (shifted pieces leave no registers)
  bool settles = false;
  for (const Reduction& r : k_.reductions) settles |= r.fold == Fold::welford;
  out.numbers["Settles"] = settles;
  const long sector = warmed_ ? 32 / warmed_ : 0, columns = s_.block[s_.vector_axis];  // elements
  out.numbers["Warm"] = exact() ? sector : 0;
  out.numbers["Turns"] = sector ? (columns + threads * sector - 1) / (threads * sector) : 0;
  out.numbers["Rest"] = sector ? columns % (threads * sector) : 0;
  for (size_t s = 0; s < folds_; ++s) out.numbers["Meets" + n(s)] = keeps_rest(k_, s_, s);
  out.texts = {{"rows", product(false)}, {"columns", product(true)}};
  if (out.numbers["RowsApart"]) out.texts["apart"] = apart(), out.texts["group"] = group();
  if (w_.streamed) out.texts["policy"] = "make_policy(" + w_.args.field(Slot::policy) + ")";
  if (s_.finish == Finish::last_block)
    out.texts.insert({{"splits", w_.args.field(Slot::splits)}, {"counters", w_.args.field(Slot::counters)}, {"states", w_.args.field(Slot::states)}});
  if (hides_)
    for (size_t pass = 1; pass <= folds_; ++pass) bodies_[pass < folds_ ? "fold" + n(pass) : "store"].insert(0, bodies_["hide"]);
  out.bodies = bodies_;
  out.bodies["row_at"] = row_at(false), out.bodies["element_at"] = row_at(true);
  // By words: is a step certainly whole?
  const std::string span = n(size_t(lanes * cluster) * w_.V);
  const std::string inside = w_.words() && s_.steps > 1 ? "(s * " + span + " >= " + n(size_t(window_of(view_, s_))) + " && (s + 1) * " + span + " <= columns)" : "false";
  out.texts["inside"] = inside;
  out.bodies["length"] = out.numbers["Full"] ? "" : "    const int n = " + (w_.words() ? inside + " || " : "") + "left >= " + n(w_.V) + " ? " + n(w_.V) + " : (int)left;\n";
  if (w_.words() && w_.V > 1 && s_.steps > 1) out.bodies["element_at"] += "    if " + inside + " __builtin_assume(t.e >= 0);\n";
  out.bodies["skew"] = w_.windows() ? "    const Ix skew = " + skew() + ";\n" : "";
  out.numbers.insert(more_.numbers.begin(), more_.numbers.end());
  out.texts.insert(more_.texts.begin(), more_.texts.end());
  out.file = text;
  return out;
}

std::string Emitter::structs_of_kernel() {
  const std::string row_at_text = row_at(false), rows = row_members();
  std::string out = "typedef " + w_.index_type() + " Ix;\n" + (folds_ ? "template <int S> struct AccOf;\n" : "") + structs_ + structs_of_k("");
  auto add = [&](const char* name, const std::string& members) {
    if (!members.empty()) out += "struct " + std::string(name) + " {\n" + outdented(members) + "};\n";
  };
  add("Row", rows);
  if (cuts_) add("Keep", keep_);
  add("Late", late_);
  if (calls(bodies_, "row_at")) out += "D void row_at(const Args& a, Ix r, At& t) {\n" + with_sizes(row_at_text) + "}\n";
  return out;
}

}  // namespace fusec::cuda
