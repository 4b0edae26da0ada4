// Each reducer is a row: its fields, its zero, how elements fold and how two states merge. Order never depends on who asks.
// Online softmax states after Milakov & Gimelshein (arXiv:1805.02867); states of mean and squared deviations merge after Chan, Golub &
// LeVeque (Algorithms for computing the sample variance, 1983). A lane adds deviations and their squares about a pivot, the mean of its
// first vector, without a division an element; `settle` makes that the lane's mean and squares before lanes merge. What cancels there
// is n (pivot - mean)^2, at most n / k of the squares, k elements of the lane's n being the pivot's own.
// Lanes of a row in registers that are alike meet by sums about the mean of the first of them, and keep what the rounding of a mean left
// (result 2, which a composite asks for) beside it: a mean of 1e4 and a spread of 1e-2 cost nothing. What cancels there is at most as many
// times the squares as lanes or warps meet; of the ring's, whose counts differ, as all elements are more than those of the first that has some.

#include "codegen/cuda/states.h"

#include <algorithm>

#include "codegen/cuda/shape.h"
#include "codegen/cuda/softmax.h"
#include "codegen/cuda/words.h"

namespace fusec::cuda {
namespace {

std::string n(size_t i) { return std::to_string(i); }
bool is_arg(Op op) { return op == Op::argmax || op == Op::argmin; }

struct Reducer {
  Op op;
  const char* function;  // of two values
  const char* tree;
  const char* zero;      // of type T
};
const Reducer kReducers[] = {
    {Op::sum, "fusec_add", "tree_add", "(T)0"},          {Op::prod, "fusec_mul", "tree_mul", "(T)1"},
    {Op::reduce_min, "least", "tree_min", "highest<T>()"}, {Op::reduce_max, "greatest", "tree_max", "lowest<T>()"},
    {Op::any, "fusec_or", "tree_or", "(T)0"},            {Op::all, "fusec_and", "tree_and", "(T)1"},
};
const Reducer& reducer(Op op) {
  for (const Reducer& r : kReducers)
    if (r.op == op) return r;
  return kReducers[0];
}

/// Of two values, as an operator where it is one.
std::string of_two(Op op, DType type, const std::string& x, const std::string& y) {
  const bool sum = op == Op::sum, plain = type == DType::f32 || type == DType::f64;
  if (plain && (sum || op == Op::prod)) return x + (sum ? " + " : " * ") + y;
  return std::string(reducer(op).function) + "(" + x + ", " + y + ")";
}

/// The pairwise tree over the V elements of an array, written out where they are few: a function that unrolls it costs the compiler more.
std::string tree_text(Op op, DType type, const std::string& array, unsigned V) {
  if (V > 8 || (V & (V - 1))) return std::string(reducer(op).tree) + "(" + array + ")";
  std::vector<std::string> x;
  for (unsigned e = 0; e < V; ++e) x.push_back(array + "[" + n(e) + "]");
  for (; x.size() > 1; x.resize(x.size() / 2))
    for (size_t e = 0; 2 * e < x.size(); ++e) {
      const std::string two = of_two(op, type, x[2 * e], x[2 * e + 1]);
      x[e] = two.starts_with(reducer(op).function) ? two : "(" + two + ")";
    }
  return x[0];
}
/// The same of their squares.
std::string squares_text(DType type, const std::string& array, unsigned V) {
  if (V > 8 || V < 2 || (V & (V - 1))) return "tree_squares(" + array + ")";
  std::vector<std::string> x;
  for (unsigned e = 0; e < V; e += 2) {
    const std::string one = array + "[" + n(e) + "]", two = array + "[" + n(e + 1) + "]";
    x.push_back(cell(Op::fma, type, {one, one, two + " * " + two}));
  }
  for (; x.size() > 1; x.resize(x.size() / 2))
    for (size_t e = 0; 2 * e < x.size(); ++e) x[e] = "(" + x[2 * e] + " + " + x[2 * e + 1] + ")";
  return x[0];
}

std::string with_type(std::string text, const std::string& type) {
  for (size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, type);
  return text;
}

std::string zero_of(const Reduction& r) { return with_type(reducer(r.op).zero, c_type(compute_type(r.accumulate))); }
/// What an element that is not there contributes to a tree; of lifted bytes all are more than 0.
std::string identity_of(const Writer& w, const Reduction& r) {
  if (w.schedule.skeleton == Template::ring && folded_bytes(w, r) != kNoVal) return "0.0f";
  const std::string t = c_type(compute_type(r.accumulate));
  return r.fold == Fold::op ? zero_of(r) : r.fold == Fold::online ? "lowest<" + t + ">()" : "(" + t + ")0";
}
/// May the exp of an online state have fewer terms (cells.cuh)? A composite grants it. The sum is then one of 2^(x L - m L), with
/// m L rounded and x L not: an fma and one instruction an element. All states of a row round alike, and result_text takes out what
/// the rounding of m L did.
bool grants(const Kernel& kernel, const Reduction& r, Relax what) {
  for (Val v : r.results)
    if (v != kNoVal && compute_type(r.accumulate) == DType::f32 && (kernel.values[v].relax & what)) return true;  // a maximum that nobody reads is none
  return false;
}
bool few_terms(const Kernel& kernel, const Reduction& r) { return grants(kernel, r, kFewerTerms); }
/// e^(x - m) of an online state, for an element x; and the factor from one maximum to another.
std::string exp_of(Writer& w, const Reduction& r, const std::string& x, const std::string& m) {
  if (few_terms(w.kernel(), r)) return "exp2_few(fmaf(" + x + ", log2e_at(" + m + "), -scaled(" + m + ")))";
  if (grants(w.kernel(), r, kNear)) return "exp_near(" + x + " - " + m + ")";
  const DType type = compute_type(r.accumulate);
  w.use_formula(Op::exp, type);
  return formula_name(Op::exp, type) + "(" + x + " - " + m + ")";
}
std::string rescale(Writer& w, const Reduction& r, const std::string& from, const std::string& to) {
  if (few_terms(w.kernel(), r)) return "exp2_few(" + from + " * log2e_at(" + to + ") - scaled(" + to + "))";
  return exp_of(w, r, from, to);
}

/// All lanes' states of max and sum, met at once.
std::string online_meet_text(Writer& w, const Reduction& r, size_t j) {
  const std::string t = c_type(compute_type(r.accumulate)), m = "m" + n(j), s = "s" + n(j);
  const std::string lanes = "_Pragma(\"unroll\") for (int mask = 1; mask < Lanes; mask *= 2) ";
  return "    {\n      " + t + " top = " + m + ";\n      " + lanes + "top = greatest(top, ::peer(top, mask));\n      " + s + " = " + s + " * (" + m +
         " == top ? (" + t + ")1 : " + rescale(w, r, m, "top") + ");\n      " + lanes + s + " = " + s + " + ::peer(" + s + ", mask);\n      " + m + " = top;\n    }\n";
}
/// Vectors of lifted bytes: the sums of 2^h and of h 2^h, of which e^(x - m) is made once a slice (RowExp in cells.cuh).
std::string bytes_fold_text(Writer& w, const Reduction& r, size_t j, const std::string& lift) {
  const std::string f = "x[j].x" + n(j), m = "m" + n(j), s = "s" + n(j), V = n(w.V);
  const std::string vectors = "_Pragma(\"unroll\") for (int j = 0; j < N; ++j) ", elements = "_Pragma(\"unroll\") for (int e = 0; e < " + V + "; ++e) ";
  std::string out = "    {\n      f32 top = " + m + " + " + lift + ", sums[" + V + "], rests[" + V + "];\n      " + vectors + "top = greatest(top, tree_max(" + f + "));\n";
  out += "      const RowExp row = bytes_of_row(top, 1.0f);\n      " + elements + "sums[e] = rests[e] = 0.0f;\n      " + vectors + elements + "{\n";
  out += "        const f32 h = fmaf(" + f + "[e], kLog2eOfBytes, -row.shift), y = exp2_few(h);\n        sums[e] = sums[e] + y;\n        rests[e] = fmaf(h, y, rests[e]);\n      }\n";
  out += "      top = top < " + lift_of(DType::u8) + " ? lowest<f32>() : top - " + lift + ";\n";
  out += "      " + s + " = " + s + " * (" + m + " == top ? 1.0f : " + rescale(w, r, m, "top") + ") + fmaf(tree_add(rests), row.slope, tree_add(sums) * row.level);\n";
  return out + "      " + m + " = top;\n    }\n";
}

std::string beats(const Reduction& r) {
  return std::string("beats<") + (r.op == Op::argmax ? "true, " : "false, ") + (r.last ? "true>" : "false>");
}

/// Sums over neighbouring lanes about the mean of the first, a: what a lane's mean is from there.
std::string meet_text(const Kernel& kernel, size_t j) {
  const std::string t = c_type(compute_type(kernel.reductions[j].accumulate)), id = n(j), c = "n" + id, m = "m" + id, s = "s" + id, d = "d" + id;
  std::string out = "    const " + t + " base = __shfl_sync(0xffffffffu, " + m + ", 0, Lanes);\n";
  out += "    " + t + " a = (" + m + " - base) + " + d + ";\n    " + s + " = fusec_fma(" + c + " * a, a, " + s + ");\n";
  out += "    _Pragma(\"unroll\") for (int mask = 1; mask < Lanes; mask *= 2) a = a + ::peer(a, mask), " + s + " = " + s + " + ::peer(" + s + ", mask);\n";
  out += "    " + c + " = " + c + " * (" + t + ")Lanes;\n    const " + t + " shift = a * ((" + t + ")1 / (" + t + ")Lanes), mean = base + shift;\n";
  out += "    " + s + " = fusec_fma(-" + c + " * shift, shift, " + s + ");\n    " + s + " = " + s + " < (" + t + ")0 ? (" + t + ")0 : " + s + ";\n";
  return out + "    " + d + " = shift - (mean - base);\n    " + m + " = mean;\n";
}

std::string inverse_text(const std::string& t, const std::string& x) { return t == "f32" ? "rcp_plain(" + x + ")" : "((" + t + ")1 / " + x + ")"; }

/// The same for lanes of any counts, `Equal` ones included, at once: about the mean of the first that has elements, so that equal means stay.
std::string lanes_meet_text(const std::string& t, const std::string& c, const std::string& m, const std::string& s) {
  const std::string lanes = "_Pragma(\"unroll\") for (int mask = 1; mask < Lanes; mask *= 2) ";
  std::string out = "    {\n      const u32 some = Equal ? 1u : __ballot_sync(0xffffffffu, " + c + " != (" + t + ")0);\n";
  out += "      const " + t + " base = __shfl_sync(0xffffffffu, " + m + ", some ? __ffs(some) - 1 : 0);\n";
  out += "      " + t + " count = Equal ? " + c + " * (" + t + ")Lanes : " + c + ", sum = " + c + " * (" + m + " - base), squares = fusec_fma(sum, " + m + " - base, " + s + ");\n";
  out += "      " + lanes + "{\n        if (!Equal) count = count + ::peer(count, mask);\n        sum = sum + ::peer(sum, mask), squares = squares + ::peer(squares, mask);\n      }\n";
  out += "      const " + t + " shift = count == (" + t + ")0 ? count : sum * " + inverse_text(t, "count") + ", rest = fusec_fma(-sum, shift, squares);\n";
  // Where squares are infinite, so may sum * shift be.
  return out + "      " + c + " = count;\n      " + m + " = base + shift;\n      " + s + " = !(squares < highest<" + t + ">()) ? squares : rest < (" + t + ")0 ? (" + t + ")0 : rest;\n    }\n";
}

}  // namespace

bool alike(const Schedule& s) {
  return s.skeleton == Template::rows && s.keep == Keep::registers && s.edges == Edges::full && s.block[s.vector_axis] != 0;
}

bool keeps_rest(const Kernel& kernel, const Schedule& s, size_t sweep) {
  const std::vector<uint16_t>& all = kernel.sweeps[sweep].reductions;
  return alike(s) && all.size() == 1 && kernel.reductions[all[0]].fold == Fold::welford;
}

StateLayout state_layout(const Kernel& kernel, size_t sweep, unsigned lanes) {
  StateLayout out;
  out.lanes = lanes;
  for (uint16_t j : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[j];
    const DType type = compute_type(r.accumulate);
    if (r.fold == Fold::op && is_arg(r.op)) {
      out.fields.push_back({DType::i64, "at" + n(j)});  // not "i": an i32 would hide the type
      out.fields.push_back({compute_type(kernel.values[r.inputs[0]].type), "q" + n(j)});
    } else if (r.fold == Fold::op) {
      out.fields.push_back({type, "q" + n(j)});
    } else if (r.fold == Fold::online) {
      out.fields.push_back({type, "m" + n(j)});
      out.fields.push_back({type, "s" + n(j)});
    } else {
      for (const char* field : {"n", "m", "s", "d"}) out.fields.push_back({type, field + n(j)});
    }
  }
  // Wide fields first: no holes that a copy would read uninitialised.
  std::stable_sort(out.fields.begin(), out.fields.end(),
                   [](const auto& a, const auto& b) { return bytes(a.type) > bytes(b.type); });
  size_t size = 0;
  for (const auto& f : out.fields) size += bytes(f.type) * lanes;
  out.bytes = std::max<size_t>(8, (size + 7) / 8 * 8);
  return out;
}

std::string state_text(Writer& w, size_t sweep, const StateLayout& layout, const std::string& more) {
  const Kernel& kernel = w.kernel();
  const bool many = layout.lanes > 1;
  const std::string x = many ? "[e]" : "", self = "AccOf<" + n(sweep) + ">";
  const std::string loop = many ? "    " + each_begin(layout.lanes) + "\n" : "";
  const std::string end = many ? "    " + each_end(layout.lanes) + "\n" : "";
  size_t words = 0, behind = 0;  // of 32 bits, up to the last field that travels
  const bool equal = alike(w.schedule), rest = keeps_rest(kernel, w.schedule, sweep);
  std::string members, zero, merge, settle, peer, fresh, put, get, place;
  for (const auto& f : layout.fields) {
    behind += bytes(f.type) * layout.lanes;
    if (f.name[0] != 'd') words = (behind + 3) / 4;
    members += "  " + c_type(f.type) + " " + f.name + (many ? "[" + n(layout.lanes) + "]" : "") + ";\n";
    if (f.name[0] == 'd' && !rest) {  // 0 once a lane has settled: it does not travel
      peer += "    out." + f.name + x + " = 0;\n";
      get += "    " + f.name + x + " = 0;\n";
      fresh += "    " + f.name + x + " = 0;\n";
      continue;
    }
    if (f.name[0] == 'n' && equal) {
      peer += "    out." + f.name + x + " = " + f.name + x + ";\n";
      continue;
    }
    peer += "    out." + f.name + x + " = ::peer(" + f.name + x + ", mask);\n";
    put += "    to->" + f.name + x + " = " + f.name + x + ";\n";
    place += "      to[c / " + n(layout.lanes) + "]." + f.name + "[c % " + n(layout.lanes) + "] = " + f.name + x + ";\n";
    get += "    " + f.name + x + " = from->" + f.name + x + ";\n";
    fresh += "    " + f.name + x + " = *(const volatile " + c_type(f.type) + "*)&from->" + f.name + x + ";\n";
  }
  for (uint16_t j : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[j];
    const DType type = compute_type(r.accumulate);
    const std::string t = c_type(type), q = "q" + n(j) + x, i = "at" + n(j) + x, m = "m" + n(j) + x, s = "s" + n(j) + x, c = "n" + n(j) + x;
    if (r.fold == Fold::op && is_arg(r.op)) {
      const std::string value = c_type(compute_type(kernel.values[r.inputs[0]].type));
      zero += "    " + q + " = " + (r.op == Op::argmax ? "lowest<" : "highest<") + value + ">();\n";
      zero += "    " + i + " = " + (r.last ? "-1" : "highest<i64>()") + ";\n";
      merge += "    if (" + beats(r) + "(o." + q + ", o." + i + ", " + q + ", " + i + ")) { " + q + " = o." + q + "; " + i + " = o." + i + "; }\n";
    } else if (r.fold == Fold::op) {
      zero += "    " + q + " = " + zero_of(r) + ";\n";
      merge += "    " + q + " = " + of_two(r.op, type, q, "o." + q) + ";\n";
    } else if (r.fold == Fold::online) {
      zero += "    " + m + " = lowest<" + t + ">();\n    " + s + " = (" + t + ")0;\n";
      merge += "    {\n      const " + t + " top = greatest(" + m + ", o." + m + ");\n";
      merge += "      const " + t + " f = " + m + " == top ? (" + t + ")1 : " + rescale(w, r, m, "top") + ", g = o." + m + " == top ? (" + t +
               ")1 : " + rescale(w, r, "o." + m, "top") + ";\n";
      merge += "      " + s + " = " + s + " * f + o." + s + " * g;\n      " + m + " = top;\n    }\n";
    } else {
      const std::string d = "d" + n(j) + x;
      zero += "    " + c + " = " + m + " = " + s + " = " + d + " = (" + t + ")0;\n";
      settle += "    if (" + c + " != (" + t + ")0) {\n      const " + t + " shift = " + d + " / " + c + ", rest = fusec_fma(-" + d + ", shift, " + s +
                ");\n      const " + t + " mean = " + m + " + shift;\n      " + s + " = rest < (" + t + ")0 ? (" + t + ")0 : rest;\n      " + d + " = " +
                (rest ? "shift - (mean - " + m + ")" : "(" + t + ")0") + ";\n      " + m + " = mean;\n    }\n";
      // Lanes of equal counts, the usual case, need no division. A side without elements leaves the other as it is.
      merge += "    if (" + c + " == o." + c + ") {\n      const " + t + " d = o." + m + " - " + m + ";\n      " + s + " = (" + s + " + o." + s +
               ") + (d * d) * (" + c + " * (" + t + ")0.5);\n      " + m + " = " + m + " * (" + t + ")0.5 + o." + m + " * (" + t + ")0.5;\n      " + c +
               " = " + c + " + o." + c + ";\n    } else if (" + c + " == (" + t + ")0) {\n      " + c + " = o." + c + "; " + m + " = o." + m + "; " + s +
               " = o." + s + ";\n    } else if (o." + c + " != (" + t + ")0) {\n      const " + t + " count = " + c + " + o." + c + ", r = (" + t +
               ")1 / count, d = o." + m + " - " + m + ";\n      " + s + " = (" + s + " + o." + s + ") + (d * d) * (" + c + " * o." + c + " * r);\n      " + m +
               " = " + m + " + d * (o." + c + " * r);\n      " + c + " = count;\n    }\n";
    }
  }
  std::string out = "template <> struct __align__(8) " + self + " {\n  enum { Meets = " + n(rest) + ", Words = " + n(words) + " };\n" + members;
  const std::string inl = "  __device__ __forceinline__ ";
  if (rest) out += "  template <int Lanes>" + inl.substr(1) + "void meet() {\n" + meet_text(kernel, kernel.sweeps[sweep].reductions[0]) + "  }\n";
  out += inl + "void zero() {\n" + loop + zero + end + "  }\n";
  out += inl + "void settle() {\n" + (settle.empty() ? "" : loop + settle + end) + "  }\n";
  out += inl + "void merge(const AccOf& o) {\n" + loop + merge + end + "  }\n";
  out += inl + "AccOf peer(int mask) const {\n    AccOf out;\n" + loop + peer + end + "    return out;\n  }\n";
  // Of columns that begin with number `first`, to where they belong; those that are not there, behind the last one.
  if (slides(w.view, w.schedule))
    out += "  template <class At>" + inl.substr(1) + "void place(At* to, int first, int columns) const {\n" + loop + "      const u32 c = first + e < 0 ? first + e + columns : first + e;\n" + place + end + "  }\n";
  // Field by field: holes of the struct are never read.
  out += inl + "void put(AccOf* to) const {\n" + loop + put + end + "  }\n";
  out += inl + "void get(const AccOf* from) {\n" + loop + get + end + "  }\n";
  out += inl + "void fresh(const AccOf* from) {\n" + loop + fresh + end + "  }\n";
  return out + more + "};\n";
}

std::optional<std::string> added_words(const Writer& w, const Body& body, const Reduction& r) {
  const Val bytes = summed_bytes(w.kernel(), r);
  return bytes != kNoVal && w.V % 4 == 0 && w.view.wide(bytes) ? body.words(bytes) : std::nullopt;
}

void fold_text(Writer& w, Body& body, size_t sweep, const StateLayout& layout) {
  const Kernel& kernel = w.kernel();
  const std::string valid = w.valid();
  const bool many = layout.lanes > 1, tail = !valid.empty();
  const std::string x = many ? "[e]" : "";
  body.close_loop();
  for (uint16_t j : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[j];
    const DType type = compute_type(r.accumulate), from = kernel.values[r.inputs[0]].type;
    const std::string t = c_type(type), id = n(j), q = "acc.q" + id + x, i = "acc.at" + id + x;
    const std::string m = "acc.m" + id + x, s = "acc.s" + id + x, c = "acc.n" + id + x;
    const std::string V = n(w.V);
    std::string f = "x" + id;
    if (r.fold == Fold::op && is_arg(r.op)) {
      body.open_loop();
      const std::string value = body.at(r.inputs[0]), index = body.at(r.inputs[1]);
      body.line(std::string(tail && !many ? "if (" + valid + " && " : "if (") + beats(r) + "(" + value + ", (i64)" + index + ", " + q + ", " + i + ")) { " + q + " = " + value +
                "; " + i + " = " + index + "; }");
      body.close_loop();
      continue;
    }
    if (const std::optional<std::string> words = many ? std::nullopt : added_words(w, body, r)) {
      const std::string sign = kernel.values[summed_bytes(kernel, r)].type == DType::i8 ? "true" : "false";
      const std::string there = !tail ? "" : w.windows() ? ", t.e < 0 ? (int)-t.e : 0, n" : ", 0, n";
      body.line(q + " = " + q + " + sum_bytes<" + sign + ">(" + *words + there + ");");
      continue;
    }
    const std::string value = cast(from, r.accumulate, body.at(r.inputs[0]));
    if (many) {
      body.open_loop();
      if (r.fold == Fold::op) {
        body.line(q + " = " + of_two(r.op, type, q, value) + ";");
      } else if (r.fold == Fold::online) {
        body.line("{");
        body.line("  const " + t + " x = " + value + ", top = greatest(" + m + ", x);");
        body.line("  const " + t + " base = top == lowest<" + t + ">() ? (" + t + ")0 : top;");
        body.line("  " + s + " = " + s + " * (" + m + " == top ? (" + t + ")1 : " + rescale(w, r, m, "top") + ") + " + exp_of(w, r, "x", "base") + ";");
        body.line("  " + m + " = top;");
        body.line("}");
      } else {
        body.line("{");
        body.line("  const " + t + " x = " + value + ";");
        body.line("  if (" + c + " == (" + t + ")0) " + m + " = x;");
        body.line("  const " + t + " d = x - " + m + ";");
        body.line("  acc.d" + id + x + " = acc.d" + id + x + " + d;");
        body.line("  " + s + " = fusec_fma(d, d, " + s + ");");
        body.line("  " + c + " = " + c + " + (" + t + ")1;");
        body.line("}");
      }
      body.close_loop();
      continue;
    }
    // The lane's vector, with the identity from `n` on, goes through a pairwise tree; an array that is there goes as it is.
    const std::optional<std::string> array = tail || r.fold != Fold::op ? std::nullopt : whole_array(value);
    if (array) {
      f = *array;
    } else {
      body.line(t + " " + f + "[" + V + "];");
      body.open_loop();
      const std::string zero = identity_of(w, r);
      body.line(f + "[e] = " + (tail ? valid + " ? " + value + " : " + zero : value) + ";");
    }
    body.close_loop();
    if (r.fold == Fold::op) {
      body.line(q + " = " + of_two(r.op, type, q, tree_text(r.op, type, f, w.V)) + ";");
    } else if (r.fold == Fold::online) {
      body.line("{");
      body.line("  const " + t + " top = greatest(" + m + ", " + tree_text(Op::reduce_max, type, f, w.V) + ");");
      // Elements that are not there, and -inf, come out as 0; -inf - -inf never enters.
      body.line("  const " + t + " base = top == lowest<" + t + ">() ? (" + t + ")0 : top;");
      body.line("  " + each(w.V, f + "[e] = " + exp_of(w, r, f + "[e]", "base") + ";"));
      body.line("  " + s + " = " + s + " * (" + m + " == top ? (" + t + ")1 : " + rescale(w, r, m, "top") + ") + " + tree_text(Op::sum, type, f, w.V) + ";");
      body.line("  " + m + " = top;");
      body.line("}");
    } else {
      const std::string count = !tail ? "(" + t + ")" + V : w.windows() ? "(" + t + ")(n - (t.e < 0 ? (int)-t.e : 0))" : "(" + t + ")n";
      body.line("{");
      body.line("  const " + t + " count = " + count + ";");
      body.line("  if (" + c + " == (" + t + ")0) " + m + " = " + tree_text(Op::sum, type, f, w.V) + " / count;");
      body.line("  " + each(w.V, f + "[e] = " + (tail ? valid + " ? " + f + "[e] - " + m + " : (" + t + ")0;" : f + "[e] - " + m + ";")));
      body.line("  acc.d" + id + " = acc.d" + id + " + " + tree_text(Op::sum, type, f, w.V) + ";");
      body.line("  " + s + " = " + s + " + " + squares_text(type, f, w.V) + ";");
      body.line("  " + c + " = " + c + " + count;");
      body.line("}");
    }
  }
}

bool folds_together(const Kernel& kernel, size_t sweep) {
  for (uint16_t j : kernel.sweeps[sweep].reductions)
    if (kernel.reductions[j].fold == Fold::op && is_arg(kernel.reductions[j].op)) return false;
  return true;
}

std::string lane_text(const Writer& w, size_t sweep) {
  const Kernel& kernel = w.kernel();
  const unsigned V = w.V;
  std::string members, none;
  for (uint16_t j : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[j];
    members += "  " + c_type(compute_type(r.accumulate)) + " x" + n(j) + "[" + n(V) + "];\n";
    none += "      x" + n(j) + "[e] = " + identity_of(w, r) + ";\n";
  }
  return "template <> struct LaneOf<" + n(sweep) + "> {\n" + members + "  u32 have;  // a bit an element\n  __device__ __forceinline__ void none() {\n" +
         "    have = 0;\n    _Pragma(\"unroll\") for (int e = 0; e < " + n(V) + "; ++e) {\n" + none + "    }\n  }\n};\n";
}

void take_text(Writer& w, Body& body, size_t sweep) {
  const Kernel& kernel = w.kernel();
  const std::string valid = w.valid(), all = n((1u << w.V) - 1) + "u";
  body.close_loop();
  if (valid.empty()) body.line("lane.have = " + all + ";");
  else body.line("lane.have = (1u << n) - 1u" + std::string(w.windows() ? " & ~((1u << (t.e < 0 ? (u32)-t.e : 0u)) - 1u)" : "") + ";");
  for (uint16_t j : kernel.sweeps[sweep].reductions)
    if (const Val bytes = folded_bytes(w, kernel.reductions[j]); bytes != kNoVal) body.line(lift(w, bytes, *body.words(bytes), "lane.x" + n(j)));
  for (uint16_t j : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[j];
    if (folded_bytes(w, r) != kNoVal) continue;
    body.open_loop();
    body.line("lane.x" + n(j) + "[e] = " + cast(kernel.values[r.inputs[0]].type, r.accumulate, body.at(r.inputs[0])) + ";");
  }
  body.close_loop();
  const auto& all_of = kernel.sweeps[sweep].reductions;
  if (valid.empty() || std::all_of(all_of.begin(), all_of.end(), [&](uint16_t j) { return kernel.reductions[j].fold == Fold::welford; })) return;  // who folds looks
  // Few vectors are short: one branch, no condition an element.
  body.line("if (lane.have != " + all + ") {");
  body.line("  _Pragma(\"unroll\") for (int e = 0; e < " + n(w.V) + "; ++e) {");
  for (uint16_t j : kernel.sweeps[sweep].reductions)
    body.line("    if (!(lane.have >> e & 1u)) lane.x" + n(j) + "[e] = " + identity_of(w, kernel.reductions[j]) + ";");
  body.line("  }");
  body.line("}");
}

std::string together_text(Writer& w, size_t sweep) {
  const Kernel& kernel = w.kernel();
  const std::string V = n(w.V), self = "AccOf<" + n(sweep) + ">";
  const std::string vectors = "_Pragma(\"unroll\") for (int j = 0; j < N; ++j) ", elements = "_Pragma(\"unroll\") for (int e = 0; e < " + V + "; ++e) ";
  const std::string lanes = "_Pragma(\"unroll\") for (int mask = 1; mask < Lanes; mask *= 2) ";
  std::string fold, meet;
  for (uint16_t k : kernel.sweeps[sweep].reductions) {
    const Reduction& r = kernel.reductions[k];
    const DType type = compute_type(r.accumulate);
    const std::string t = c_type(type), id = n(k), f = "x[j].x" + id, q = "q" + id, m = "m" + id, s = "s" + id, c = "n" + id;
    if (r.fold == Fold::op) {
      const std::string name = reducer(r.op).function;
      fold += "    " + vectors + q + " = " + name + "(" + q + ", " + reducer(r.op).tree + "(" + f + "));\n";
      meet += "    " + lanes + q + " = " + name + "(" + q + ", ::peer(" + q + ", mask));\n";
    } else if (const Val bytes = folded_bytes(w, r); bytes != kNoVal) {
      fold += bytes_fold_text(w, r, k, lift_of(kernel.values[bytes].type));
      meet += online_meet_text(w, r, k);
    } else if (r.fold == Fold::online) {
      fold += "    {\n      " + t + " top = " + m + ", sum = (" + t + ")0;\n      " + vectors + "top = greatest(top, tree_max(" + f + "));\n";
      fold += "      const " + t + " base = top == lowest<" + t + ">() ? (" + t + ")0 : top;\n      " + vectors + "{\n        " + t + " y[" + V +
              "];\n        " + elements + "y[e] = " + exp_of(w, r, f + "[e]", "base") + ";\n        sum = sum + tree_add(y);\n      }\n";
      fold += "      " + s + " = " + s + " * (" + m + " == top ? (" + t + ")1 : " + rescale(w, r, m, "top") + ") + sum;\n      " + m + " = top;\n    }\n";
      meet += online_meet_text(w, r, k);
    } else {
      // A vector of which some elements may be missing: about one that is there.
      fold += "    if constexpr (Whole == 0) {\n      const u32 have = x[0].have;\n      const " + t + " pivot = have & 1u ? x[0].x" + id + "[0] : x[0].x" + id + "[" + n(w.V - 1) + "];\n      " + t + " y[" + V + "];\n      " +
              elements + "y[e] = have >> e & 1u ? x[0].x" + id + "[e] - pivot : (" + t + ")0;\n";
      fold += "      const " + t + " count = (" + t + ")__popc(have), sum = " + tree_text(Op::sum, type, "y", w.V) + ", shift = sum * " + inverse_text(t, "count") + ", rest = fusec_fma(-sum, shift, " + squares_text(type, "y", w.V) + ");\n";
      fold += "      AccOf o;\n      o.zero();\n      o." + c + " = count, o." + m + " = pivot + shift, o." + s + " = rest < (" + t + ")0 ? (" + t + ")0 : rest;\n      merge(o);\n    } else ";
      fold += "{\n      int have = 0;\n      " + vectors + "have += Whole == 2 || x[j].have ? " + V + " : 0;\n      if (Whole == 2 || have) {\n        AccOf o;\n        o.zero();\n";
      fold += "        o." + c + " = (" + t + ")have;\n        " + t + " sum;\n        " + vectors + "sum = j == 0 ? tree_add(" + f + ") : sum + tree_add(" + f + ");\n";
      fold += "        o." + m + " = sum / o." + c + ";\n        " + vectors + "{\n          " + t + " y[" + V + "];\n          " + elements + "{\n";
      fold += "            y[e] = " + f + "[e] - o." + m + ";\n          }\n";
      fold += "          o." + s + " = o." + s + " + (Whole == 2 || x[j].have ? " + squares_text(type, "y", w.V) + " : (" + t + ")0);\n        }\n        if (First) *this = o;\n        else merge(o);\n      }\n    }\n";
      meet += lanes_meet_text(t, c, m, s);
    }
  }
  // Whole: 1, a vector is all there or not at all; 2, all are there. First: into a state that is zero.
  std::string out = "  template <int Whole, bool First, int N> __device__ __forceinline__ void fold(const LaneOf<" + n(sweep) + "> (&x)[N]) {\n" + fold + "  }\n";
  return out + "  template <int Lanes, bool Equal> __device__ __forceinline__ void meet() {\n" + meet + "  }\n";
}

std::string scan_state_text(Writer& w, size_t sweep, const StateLayout& layout) {
  const bool many = layout.lanes > 1, reverse = w.kernel().reductions[0].reverse;
  const std::string V = n(w.V), x = many ? "[e]" : "", self = "AccOf<" + n(sweep) + ">";
  const std::string loop = "_Pragma(\"unroll\") for (int e = 0; e < " + V + "; ++e) ";
  std::string from, at, run, follow;
  for (uint16_t k : w.kernel().sweeps[sweep].reductions) {
    const Reduction& r = w.kernel().reductions[k];
    const std::string t = c_type(compute_type(r.accumulate)), q = "q" + n(k), f = reducer(r.op).function;
    const std::string element = "x.x" + n(k) + (reverse && !many ? "[" + V + " - 1 - e]" : "[e]");
    from += "    out." + q + " = lane_before<W, " + (reverse ? "true" : "false") + ">(" + q + ", d);\n";
    at += "    out." + q + " = lane_at<W>(" + q + ", lane);\n";
    run += "      { const " + t + " before = " + q + x + "; " + q + x + " = " + f + "(before, " + element + "); " + element + " = " + (r.exclusive ? "before" : q + x) + "; }\n";
    follow += "      x.x" + n(k) + "[e] = " + f + "(" + q + x + ", x.x" + n(k) + "[e]);\n";
  }
  const std::string inl = "  __device__ __forceinline__ ", lane = "LaneOf<" + n(sweep) + ">& x";
  std::string more = inl + "void run(" + lane + ") {\n    " + loop + "{\n" + run + "    }\n  }\n";
  more += inl + "void follow(" + lane + ") const {\n    " + loop + "{\n" + follow + "    }\n  }\n";
  if (!many) {
    more += "  template <int W>" + inl + self + " from(int d) const {\n    " + self + " out;\n" + from + "    return out;\n  }\n";
    more += "  template <int W>" + inl + self + " at(int lane) const {\n    " + self + " out;\n" + at + "    return out;\n  }\n";
  }
  return state_text(w, sweep, layout, more);
}

std::string result_text(const Writer& w, const Inst& result, size_t sweep, const StateLayout& layout) {
  const Kernel& kernel = w.kernel();
  const Reduction& r = kernel.reductions[result.reduction];
  const std::string id = n(result.reduction), x = layout.lanes > 1 ? "[e]" : "";
  if (r.fold == Fold::op && is_arg(r.op)) return cast(DType::i64, result.type, "acc.at" + id + x);
  const DType from = compute_type(r.accumulate);
  std::string value;
  if (r.fold == Fold::op) {
    value = "acc.q" + id + x;
  } else if (r.fold == Fold::online) {
    // Of two sweeps, exp(x - max) is NaN where all elements are -inf; of nothing the sum is 0.
    const std::string m = "acc.m" + id + x, sum = "acc.s" + id + x;
    const std::string exact = few_terms(kernel, r) ? sum + " * exp2_few(-fmaf(" + m + ", log2e_at(" + m + "), -scaled(" + m + ")))" : sum;
    value = result.index == 0 ? "acc.m" + id + x
                              : "(" + m + " != lowest<" + c_type(from) + ">() ? " + exact + " : columns(a) != 0 ? " + m + " - " + m + " : " + sum + ")";
  } else {
    // The mean of nothing is 0 / 0. Who asks what its rounding left gets squares about the mean as it is rounded.
    const std::string count = "acc.n" + id + x, squares = "acc.s" + id + x, left = "acc.d" + id;
    const bool rest = keeps_rest(kernel, w.schedule, sweep);
    if (result.index == 0 && known_columns(kernel) > 0) value = "acc.m" + id + x;
    else if (result.index == 0) value = "(" + count + " != (" + c_type(from) + ")0 ? acc.m" + id + x + " : " + count + " / " + count + ")";
    else if (result.index == 1) value = rest && r.results.size() > 2 ? "fusec_fma(" + count + " * " + left + ", " + left + ", " + squares + ")" : squares;
    else value = rest ? count + " * " + left : "(" + c_type(from) + ")0";
  }
  // Running values of narrow types are f32; the result is rounded where the kernel says so.
  if (is_narrow(result.type)) {
    if (from != DType::f32) return cast(from, result.type, value);
    return result.rounds ? round(result.type, value) : value;
  }
  return cast(from, result.type, value);
}

}  // namespace fusec::cuda
