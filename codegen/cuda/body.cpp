#include "codegen/cuda/body.h"

#include <algorithm>
#include <bit>

#include "codegen/cuda/words.h"

namespace fusec::cuda {
namespace {

std::string dec(uint64_t n) { return std::to_string(n); }
std::string var(Val v) { return "v" + dec(v); }

}  // namespace

void Body::line(const std::string& text) { out_.append(static_cast<size_t>(indent_) + (loop_ ? 2 : 0), ' ').append(text).push_back('\n'); }

// Before the loop that is open, if one is.
void Body::hoist(const std::string& text) {
  if (!loop_) return line(text);
  const size_t begin = out_.rfind('\n', out_.rfind(each_begin(w_.V)));
  out_.insert(begin == std::string::npos ? 0 : begin + 1, std::string(static_cast<size_t>(indent_), ' ') + text + "\n");
}

void Body::open_loop() {
  if (loop_) return;
  line(each_begin(w_.V));
  loop_ = true;
  // Indices along the axes differ between the elements of a flat vector.
  if (w_.view.flat) line("At te; row_at(a, t.r + e, te);");
}

void Body::close_loop() {
  if (!loop_) return;
  loop_ = false;
  line(each_end(w_.V));
}

std::string Body::at(Val v, const std::string& e) {
  const Inst& inst = w_.inst(v);
  if (inst.kind == Kind::constant) return literal(compute_type(inst.type), inst.bits);
  auto it = have_.find(v);
  const auto packed = pairs_.find(v);
  if (it == have_.end() && packed != pairs_.end()) {
    hoist("f32 " + var(v) + "[" + dec(w_.V) + "];");
    hoist(unpack(inst.type, packed->second, var(v), w_.V));
    it = have_.emplace(v, var(v)).first;
  }
  const std::string name = it == have_.end() ? var(v) : it->second;
  return w_.view.wide(v) ? name + "[" + e + "]" : name;
}

std::vector<Val> Body::inputs_of_map(const Inst& inst) {
  std::vector<Val> out;
  for (Val v : inst.map.extra)
    if (v != kNoVal) out.push_back(v);
  if (inst.map.guard != kNoVal) out.push_back(inst.map.guard);
  return out;
}

void Body::need(const std::vector<Val>& targets) {
  const std::vector<Val> todo = w_.view.needed(
      targets, [&](Val v) { return have_.count(v) || w_.inst(v).kind == Kind::constant; }, [&](Val v) { return words_.count(v) > 0; });
  for (Val v : todo)
    if (w_.inst(v).kind != Kind::store) value(v);
}

// Steps of the offset that walk a whole space as its linear number does become that number times a constant.
std::string Body::offset(Val access, const std::string& e) {
  const View& view = w_.view;
  const Kernel& kernel = view.kernel;
  const Inst& inst = w_.inst(access);
  std::string out;
  auto term = [&](const std::string& text) { out += (out.empty() ? "" : " + ") + text; };
  auto times = [&](const std::string& index, const Dim& factor) {
    return factor.is(1) ? index : index + " * " + w_.args.dim(factor);
  };
  for (bool reduced : {false, true}) {
    const std::optional<Dim> unit = w_.schedule.skeleton == Template::transpose ? std::nullopt : view.linear(inst, reduced);
    if (unit) {
      if (unit->is(0)) continue;
      term(times(w_.number(reduced), *unit));
      if (view.flat && !e.empty()) term(times(e, *unit));
      continue;
    }
    const std::vector<unsigned> axes = view.space(reduced);
    for (unsigned axis : axes) {
      if (kernel.axes[axis].extent.is(1)) continue;
      const std::optional<Dim> s = step(kernel, inst, axis);
      if (s && s->is(0)) continue;
      const std::string index = w_.index(axis);
      term(s ? times(index, *s) : index + " * " + w_.args.field(Slot::step, view.access_of[access], axis));
    }
  }
  if (!e.empty() && view.wide(access) && !view.flat) {
    const std::optional<Dim> s = step(kernel, inst, view.vector_axis);
    if (!s) term(e + " * " + w_.args.field(Slot::step, view.access_of[access], view.vector_axis));
    else if (!s->is(0)) term(times(e, *s));
  }
  for (size_t b = 0; b < inst.map.extra.size(); ++b) {
    const Val v = inst.map.extra[b];
    if (v == kNoVal) continue;
    const bool unit = b + 1 == inst.map.extra.size() && kernel.operands[inst.operand].unit;
    term(at(v, e.empty() ? "0" : e) + (unit ? "" : " * " + w_.args.field(Slot::stride, view.access_of[access], static_cast<uint32_t>(b))));
  }
  return out.empty() ? "0" : out;
}

// A sum whose constant is known is of its own: added inside of 32 bits, no compiler could make it part of an instruction.
std::string Body::address(Val access) {
  std::string at = offset(access, "");
  const std::string& number = w_.stepped;
  const std::string p = w_.args.field(Slot::pointer, w_.view.access_of[access]);
  const size_t found = number.empty() ? std::string::npos : at.rfind(number);
  if (found == std::string::npos || (found > 0 && at[found - 1] != ' ')) return p + " + (" + at + ")";
  const std::string times = at.substr(found + number.size());  // nothing, or " * " and a number
  const bool constant = times.empty() || (times.starts_with(" * ") && times.find_first_not_of("0123456789", 3) == std::string::npos);
  if (!constant) return p + " + (" + at + ")";
  return p + " + (" + at.replace(found, number.size(), w_.first_element) + ") + " + w_.step_of_element + times;
}

void Body::fetch(Val load, const std::string& words) {
  close_loop();
  const Inst& inst = w_.inst(load);
  const size_t size = bytes(w_.operand(load).type);
  const std::string p = w_.args.field(Slot::pointer, w_.view.access_of[load]);
  const bool wide = w_.view.wide(load), each = wide && (w_.scattered(load) || !w_.contiguous(load));
  const std::string valid = w_.valid();
  const bool staged = !each && w_.access(load).staged, column = w_.schedule.skeleton == Template::column;
  const bool shifted = staged && (column || (w_.windows() && w_.schedule.skeleton == Template::rows));
  const bool tail = wide && (!valid.empty() || shifted);
  const bool streamed = policy_ && !each && w_.access(load).streamed;
  const Val guard = inst.map.guard;
  if (const auto place = w_.placed.find(load); place != w_.placed.end()) {
    line(cuda::fetch(size * w_.V, size * w_.V, "kPlain", words, place->second, "0"));
    return;
  }
  const std::string ones = "fetch_one<" + dec(size) + ">(" + words + ", ";
  if (each || tail || guard != kNoVal) line("clear(" + words + ");");
  std::string open;
  if (guard != kNoVal && !w_.view.wide(guard)) open = "if (" + at(guard) + ") ";
  if (!wide) {
    line(open + ones + "0, " + p + " + (" + offset(load, "") + "));");
    return;
  }
  const std::string pieces = cuda::fetch(std::min<size_t>(w_.access(load).bytes, size * w_.V), size * w_.V, w_.fetch_kind(load, streamed), words,
                                         address(load), streamed ? "policy" : "0");
  if (streamed) w_.streamed = true;
  if (!each && !tail) {
    line(open + pieces);
    return;
  }
  line(open + "{");
  indent_ += 2;
  const bool run = is_parameter(w_.view, load) && w_.runs_on(load);
  if (run) {
    // A parameter of the columns beside vectors that run on into the next row. Of long rows most vectors lie inside of one.
    const Dim& extent = w_.kernel().axes[w_.view.vector_axis].extent;
    const int64_t known = extent.is_constant() ? extent.value({}).value_or(0) : 0;
    const std::string columns = extent.is_constant() ? w_.args.dim(extent) : w_.args.field(Slot::extent, w_.view.vector_axis);
    w_.index(w_.view.vector_axis);  // asks for it; of the vector's first element it is in `t`
    const std::string at = "t.i" + dec(w_.view.vector_axis), left = "left" + dec(load), exists = tail ? "n == " + dec(w_.V) + " && " : "";
    const bool once = known >= int64_t(w_.V);  // a vector meets one end at most
    const bool by_words = size < 4 && w_.access(load).bytes == 4;
    const size_t behind = by_words ? 4 / size - 1 : 0;  // elements that may share the last word
    if (once) line("const " + w_.index_type() + " " + left + " = " + columns + " - " + at + ";");
    if (known < 512 && once) {
      line("{");
    } else {
      line("if (" + exists + at + " + " + dec(w_.V + behind) + " <= " + columns + ") {");
      if (by_words) line("  fetch_words<" + w_.fetch_kind(load, false) + ">(" + words + ", " + p + " + " + at + ");");
      else line("  " + cuda::fetch(size, size * w_.V, w_.fetch_kind(load, false), words, p + " + " + at, "0"));
      line("} else {");
    }
    indent_ += 2;
    if (once) {
      line(cuda::each(w_.V, (tail ? "if (" + valid + ") " : "") + ones + "e, " + p + " + (" + at + " + (e < " + left + " ? e : e - " + columns + ")));"));
      indent_ -= 2;
      line("}");
      indent_ -= 2;
      line("}");
      return;
    }
  } else if (shifted && column && w_.schedule.edges == Edges::window) {
    // Whatever lies in an aligned piece; where the operand ends, the columns that there are.
    if (streamed) w_.streamed = true;
    line("if (n == " + dec(w_.V) + ") {");
    line("  " + cuda::fetch(16, 16, w_.fetch_kind(load, streamed), words, address(load), streamed ? "policy" : "0"));
    line("} else {");
    indent_ += 2;
    line(cuda::each(w_.V, "if (t.r + e >= 0 && t.r + e < rows(a)) " + ones + "e, " + p + " + (" + offset(load, "e") + "));"));
    indent_ -= 2;
    line("}");
    indent_ -= 2;
    line("}");
    return;
  } else if (shifted) {
    // Columns that are not there read their neighbours in the next position; only at the operand's end there is nothing.
    if (streamed) w_.streamed = true;
    if (column) line("if (n == " + dec(2 * w_.V) + " || t.e * rows(a) + t.r + " + dec(2 * w_.V) + " <= rows(a) * columns(a)) {");
    else line("if (t.e >= 0 && t.e + " + dec(2 * w_.V) + " <= columns(a)) {");
    line("  fetch_shifted<" + dec(size) + ", " + w_.fetch_kind(load, streamed) + ">(" + words + ", " + p + " + (" + offset(load, "") + (streamed ? "), policy);" : "), 0);"));
    line("} else {");
    indent_ += 2;
  } else if (!each) {
    line("if (" + w_.whole(load) + ") {");
    line("  " + pieces);
    line("} else {");
    indent_ += 2;
  }
  open_loop();
  std::string condition = tail ? valid : "";
  if (guard != kNoVal && w_.view.wide(guard)) condition += (condition.empty() ? "" : " && ") + at(guard);
  line((condition.empty() ? "" : "if (" + condition + ") ") + ones + "e, " + p + " + (" + offset(load, "e") + "));");
  close_loop();
  if (!each || run) {
    indent_ -= 2;
    line("}");
  }
  indent_ -= 2;
  line("}");
}

void Body::warm(Val load) {
  close_loop();
  line("warm(" + w_.args.field(Slot::pointer, w_.view.access_of[load]) + " + (" + offset(load, "") + "), nobody + threadIdx.x);");
}

void Body::fetch_along(Val load, unsigned axis, const std::string& words) {
  const Inst& inst = w_.inst(load);
  const size_t size = bytes(w_.operand(load).type);
  const std::string p = w_.args.field(Slot::pointer, w_.view.access_of[load]) + " + (" + offset(load, "") + ")";
  const std::optional<Dim> s = step(w_.kernel(), inst, axis);
  const std::string each = !s        ? " + e * " + w_.args.field(Slot::step, w_.view.access_of[load], axis)
                           : s->is(1) ? " + e"
                                      : " + e * " + w_.args.dim(*s);
  const bool whole = w_.access(load).bytes > size || (s && s->is(1));
  const bool streamed = policy_ && w_.access(load).streamed;
  if (streamed) w_.streamed = true;
  if (whole) {
    line("if (n == " + dec(16 / size) + ") {");
    line("  " + cuda::fetch(w_.access(load).bytes, 16, w_.fetch_kind(load, streamed), words, p, streamed ? "policy" : "0"));
    line("} else {");
  } else {
    line("{");
  }
  line("  _Pragma(\"unroll\") for (int e = 0; e < " + dec(16 / size) + "; ++e)");
  line("    if (e < n) fetch_one<" + dec(size) + ">(" + words + ", e, " + p + each + ");");
  line("}");
}

void Body::store(Val store) {
  close_loop();
  const Inst& inst = w_.inst(store);
  const DType type = w_.operand(store).type;
  const size_t size = bytes(type);
  const Val x = inst.args[0];
  const DType from = w_.inst(x).type;
  const bool wide = w_.view.wide(store);
  const std::string id = dec(store);
  std::string words = "w" + id, array = "o" + id;
  const std::string count = wide ? dec(w_.V) : "1";
  const bool ready = pairs_.count(x) && type == from;
  // To the storage type in one rounding: packing rounds an f32; wider types are made f32 (or the integer) on the way.
  auto converted = [&](const std::string& text) {
    if (is_narrow(type)) return compute_type(from) == DType::f32 || w_.packed_only[x] ? text : narrowable(from, text);
    return cast(from, type, text);
  };
  const std::string declared = c_type(compute_type(type)) + " " + array + "[" + count + "];";
  if (ready) {
    words = pairs_[x];
  } else if (wide) {
    const std::string value = converted(at(x));
    if (const std::optional<std::string> there = whole_array(value)) {
      array = *there;
    } else {
      line(declared);
      open_loop();
      line(array + "[e] = " + value + ";");
      close_loop();
    }
  } else {
    line(declared);
    line(array + "[0] = " + converted(at(x, "0")) + ";");
  }
  if (!ready) {
    line("Words<" + dec(size * (wide ? w_.V : 1)) + "> " + words + ";");
    line(cuda::pack(type, words, array, wide ? w_.V : 1));
  }
  if (const auto place = w_.placed.find(store); place != w_.placed.end()) {
    line(cuda::put(size * w_.V, size * w_.V, place->second, words));
    return;
  }
  const std::string p = w_.args.field(Slot::pointer, w_.view.access_of[store]);
  const Val guard = inst.map.guard;
  std::string open;
  if (guard != kNoVal && !w_.view.wide(guard)) open = "if (" + at(guard) + ") ";
  const std::string one = "put_one<" + dec(size) + ">(" + p + " + (";
  if (!wide) {
    line(open + one + offset(store, "") + "), " + words + ", 0);");
    return;
  }
  const bool each = w_.scattered(store) || !w_.contiguous(store);
  const std::string valid = w_.valid();
  const bool tail = !valid.empty();
  const size_t piece = std::min<size_t>(w_.access(store).bytes, size * w_.V);
  if (!each && !where_.empty()) {
    line(open + "put_where<" + dec(piece) + ">(" + where_ + ", " + address(store) + ", " + words + ");");
    return;
  }
  const std::string pieces = cuda::put(piece, size * w_.V, address(store), words);
  if (!each && !tail) {
    line(open + pieces);
    return;
  }
  line(open + "{");
  indent_ += 2;
  if (!each) {
    line("if (" + w_.whole() + ") {");
    line("  " + pieces);
    line("} else {");
    indent_ += 2;
  }
  open_loop();
  std::string condition = !where_.empty() ? where_ : tail ? valid : "";
  if (guard != kNoVal && w_.view.wide(guard)) condition += (condition.empty() ? "" : " && ") + at(guard);
  line((condition.empty() ? "" : "if (" + condition + ") ") + one + offset(store, "e") + "), " + words + ", e);");
  close_loop();
  if (!each) {
    indent_ -= 2;
    line("}");
  }
  indent_ -= 2;
  line("}");
}

/// The cell (cells.cuh) of an op that may have fewer terms, or nothing.
const char* few_cell(const Inst& inst) {
  if (!(inst.relax & kFewerTerms) || compute_type(inst.type) != DType::f32) return nullptr;
  switch (inst.op) {
    case Op::exp: return "exp_few";
    case Op::div: return "div_few";
    case Op::reciprocal: return "rcp_few";
    case Op::sigmoid: return "sigmoid_few";
    case Op::silu: return "silu_few";
    default: return nullptr;
  }
}

std::string Body::compute(Val v) {
  const Inst& inst = w_.inst(v);
  std::vector<std::string> args;
  if (w_.contracted[inst.args[0]]) {
    const Inst& product = w_.inst(inst.args[0]);
    return cell(Op::fma, compute_type(inst.type), {at(product.args[0]), at(product.args[1]), at(inst.args[1])});
  }
  for (Val v : inst.args) args.push_back(at(v));
  if (const auto hidden = w_.hidden(inst)) args[*hidden] = "opaque(" + args[*hidden] + ")";
  const DType from = w_.inst(inst.args[0]).type;
  std::string out;
  if (w_.by_reciprocal(v)) {
    out = cell(Op::mul, compute_type(inst.type), {args[0], "row.q" + dec(inst.args[1]) + (w_.view.wide(inst.args[1]) ? "[e]" : "")});
    return w_.rounds(v) ? round(inst.type, out) : out;
  }
  if (w_.divides_bf16(v)) {
    out = "over_bf16(" + args[0] + ", g" + dec(v) + ")";
    return w_.rounds(v) ? round(inst.type, out) : out;
  }
  if (w_.divides_by_one(v)) {
    out = w_.is_small(inst.args[0]) ? "over_small(" + args[0] + ", g" + dec(v) + ")"
                                    : "over(" + args[0] + ", g" + dec(v) + ", b" + dec(v) + ")";
    return w_.rounds(v) ? round(inst.type, out) : out;
  }
  if (inst.op == Op::cast && w_.as_float[inst.args[0]]) return args[0];
  if (inst.op == Op::cast && w_.lies_inside(inst.args[0], inst.type)) return "cast_inside<" + c_type(inst.type) + ">(" + args[0] + ")";
  if (inst.op == Op::cast) return w_.packed_only[v] || w_.packs[v] ? narrowable(from, args[0]) : cast(from, inst.type, args[0]);
  if (inst.op == Op::bitcast) return bitcast(from, inst.type, args[0]);
  if (const char* few = few_cell(inst)) {
    out = std::string(few) + "(" + args[0] + (args.size() > 1 ? ", " + args[1] : "") + ")";
    return w_.rounds(v) ? round(inst.type, out) : out;
  }
  if (info(inst.op).form == Form::formula) {
    const DType type = compute_type(inst.type);
    if (inst.op == Op::exp && type == DType::f32 && (inst.relax & kNear)) {
      out = "exp_near(" + args[0] + ")";
      return w_.rounds(v) ? round(inst.type, out) : out;
    }
    if (inst.op == Op::silu && inst.type == DType::bf16 && inst.rounds && w_.is_bf16(inst.args[0])) {
      out = "silu_of_bf16(" + args[0] + ")";
      return w_.rounds(v) ? round(inst.type, out) : out;
    }
    if (inst.op == Op::rsqrt && formula_name(inst.op, inst.type) == formula_name(Op::rsqrt, DType::f32)) {
      out = "rsqrt_plain(" + args[0] + ")";
      return w_.rounds(v) ? round(inst.type, out) : out;
    }
    w_.use_formula(inst.op, inst.type);
    out = formula_name(inst.op, inst.type) + "(";
    for (size_t i = 0; i < args.size(); ++i) out += (i ? ", " : "") + args[i];
    const std::string_view scalars = info(inst.op).attributes;
    if (scalars.find("alpha") != scalars.npos) out += ", " + literal(type, float_bits(type, inst.alpha));
    if (scalars.find("beta") != scalars.npos) out += ", " + literal(type, float_bits(type, inst.beta));
    out += ")";
  } else if ((inst.op == Op::max || inst.op == Op::min) && compute_type(inst.type) == DType::f32 && w_.is_bound(inst.args[1])) {
    out = (inst.op == Op::max ? "greatest(" : "least(") + args[0] + ", " + args[1] + ")";
  } else if (inst.op == Op::clamp && compute_type(inst.type) == DType::f32 && w_.is_bound(inst.args[1]) && w_.is_bound(inst.args[2])) {
    out = "least(greatest(" + args[0] + ", " + args[1] + "), " + args[2] + ")";
  } else {
    out = cell(inst.op, compute_type(inst.type), args);
  }
  return w_.rounds(v) ? round(inst.type, out) : out;
}

void Body::define(Val v, const std::string& expression) {
  const std::string type = c_type(compute_type(w_.inst(v).type));
  if (w_.view.wide(v)) {
    open_loop();
    line(var(v) + "[e] = " + expression + ";");
  } else {
    line("const " + type + " " + var(v) + " = " + expression + ";");
  }
  have_[v] = var(v);
}

// The words that hold a value's pairs, packed here when it came as f32; of a row value the one word of all pairs.
std::string Body::pairs(Val v) {
  const DType type = w_.inst(v).type;
  if (pairs_.count(v)) return pairs_[v];
  const std::string words = (w_.view.wide(v) ? "p" : "both") + dec(v);
  if (w_.view.wide(v)) {
    line("Words<" + dec(2 * w_.V) + "> " + words + ";");
    pack(v, type, words);
  } else {
    line("const u32 " + words + " = pair_" + std::string(fusec::name(type)) + "(" + at(v) + ", " + at(v) + ");");
  }
  return pairs_[v] = words;
}

void Body::pair_value(Val v) {
  close_loop();
  const Inst& inst = w_.inst(v);
  const std::string x = pairs(inst.args[0]), y = pairs(inst.args[1]), p = "p" + dec(v);
  const std::string function = "pair_" + std::string(name(inst.op)) + "_" + std::string(name(inst.type)) + "(";
  line("Words<" + dec(2 * w_.V) + "> " + p + ";");
  std::string words;
  for (unsigned k = 0; k < w_.V / 2; ++k) {
    const std::string w = ".w[" + dec(k) + "]";
    words += (k ? " " : "") + p + w + " = " + function + x + (w_.view.wide(inst.args[0]) ? w : "") + ", " + y + (w_.view.wide(inst.args[1]) ? w : "") + ");";
  }
  line(words);
  pairs_[v] = p;
}

void Body::pack(Val v, DType type, const std::string& to) {
  close_loop();
  if (pairs_.count(v) && type == w_.inst(v).type) {
    line(to + " = " + pairs_[v] + ";");
  } else if (w_.view.wide(v)) {
    at(v);  // as f32
    const auto it = have_.find(v);
    line(cuda::pack(type, to, it == have_.end() ? var(v) : it->second, w_.V));
  } else {
    line(c_type(compute_type(type)) + " o" + dec(v) + "[1] = {" + at(v) + "};");
    line(cuda::pack(type, to, "o" + dec(v), 1));
  }
}

void Body::value(Val v) {
  const Inst& inst = w_.inst(v);
  const std::string type = w_.as_float[v] ? "f32" : c_type(compute_type(inst.type));
  const bool wide = w_.view.wide(v);
  const std::string count = wide ? dec(w_.V) : "1";
  // A cast that changes nothing is another name.
  if (inst.kind == Kind::compute && inst.op == Op::cast && !words_.count(v) && wide == w_.view.wide(inst.args[0]) &&
      w_.inst(inst.args[0]).kind != Kind::constant && (w_.as_float[inst.args[0]] ? std::string("x") : w_.packed_only[v] ? narrowable(w_.inst(inst.args[0]).type, "x") : cast(w_.inst(inst.args[0]).type, inst.type, "x")) == "x") {
    at(inst.args[0]);  // as f32
    const auto it = have_.find(inst.args[0]);
    have_[v] = it == have_.end() ? var(inst.args[0]) : it->second;
    return;
  }
  const auto packed = words_.find(v);
  if (packed != words_.end() || inst.kind == Kind::load) {
    close_loop();
    std::string words = "w" + dec(v);
    DType storage = inst.type;
    if (packed != words_.end()) {
      words = packed->second.first, storage = packed->second.second;
    } else {
      storage = w_.operand(v).type;
      line(w_.words_type(v) + " " + words + ";");
      fetch(v, words);
    }
    if (wide && storage == inst.type && w_.holds_pairs(storage)) {
      pairs_[v] = words;
      return;
    }
    if (!wide && !w_.as_float[v] && bytes(storage) == 4) {
      line("const " + type + " " + var(v) + " = bits(" + type + ", " + words + ".w[0]);");
      have_[v] = var(v);
      return;
    }
    const std::string array = wide ? var(v) : "one" + dec(v);  // not "u": a u32 would hide the type
    line(type + " " + array + "[" + count + "];");
    line(w_.as_float[v] ? "unpack_float_" + std::string(name(inst.type)) + "(" + words + ", " + array + ");" : unpack(storage, words, array, wide ? w_.V : 1));
    if (!wide) line("const " + type + " " + var(v) + " = " + array + "[0];");
    have_[v] = var(v);
    return;
  }
  if (w_.contracted[v]) return;
  if (w_.paired[v]) return pair_value(v);
  if (w_.divides_bf16(v)) {
    close_loop();
    line("const NarrowDivisor g" + dec(v) + " = narrow_divisor(" + at(inst.args[1]) + ");");
  }
  if (w_.packs[v]) {
    const std::string exact = "o" + dec(v), words = "p" + dec(v);
    hoist("f32 " + exact + "[" + count + "];");
    open_loop();
    line(exact + "[e] = " + compute(v) + ";");
    close_loop();
    line("Words<" + dec(2 * w_.V) + "> " + words + ";");
    line(cuda::pack(inst.type, words, exact, wide ? w_.V : 1));
    pairs_[v] = words;
    return;
  }
  // An array is declared before the loop that fills it: close the loop only when something must come between.
  if (wide) hoist(type + " " + var(v) + "[" + count + "];");
  else close_loop();
  switch (inst.kind) {
    case Kind::load: break;  // above
    case Kind::iota: {
      std::string sum = w_.args.dim(inst.map.at[0].offset, 8);
      for (unsigned axis = 0; axis < w_.kernel().axes.size(); ++axis) {
        const Dim& factor = inst.map.at[0].factor[axis];
        if (factor.is(0) || w_.kernel().axes[axis].extent.is(1)) continue;
        const std::string at = wide && !w_.view.flat && axis == w_.view.vector_axis ? "(i64)(" + w_.index(axis) + " + e)" : "(i64)" + w_.index(axis);
        sum += " + " + (factor.is(1) ? at : at + " * " + w_.args.dim(factor, 8));
      }
      define(v, sum);
      break;
    }
    case Kind::dim: define(v, w_.args.dim(inst.dim, 8)); break;
    case Kind::compute:
      if (w_.divides_by_one(v)) {
        close_loop();
        line("const Divisor g" + dec(v) + " = divisor(" + at(inst.args[1]) + ");");
        line("bool b" + dec(v) + " = !g" + dec(v) + ".safe;");
        define(v, compute(v));
        // One branch a vector: the plain divisions where an operand is out of the range of the short way.
        close_loop();
        const std::string plain = at(inst.args[0]) + " / g" + dec(v) + ".d";
        line("if (b" + dec(v) + ") {");
        indent_ += 2;
        open_loop();
        line(var(v) + "[e] = " + (w_.rounds(v) ? round(inst.type, plain) : plain) + ";");
        close_loop();
        indent_ -= 2;
        line("}");
        break;
      }
      define(v, compute(v));
      break;
    case Kind::constant: case Kind::store: case Kind::result: break;  // in the text; last; from finish
  }
}

}  // namespace fusec::cuda
