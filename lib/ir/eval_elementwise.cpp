// Elementwise nodes of the reference evaluator, a chunk of elements at a time:
//   load each operand's chunk (broadcast by strides, widened to the compute type) → one loop a step → round to the node's dtype

#include <cstring>
#include <memory>
#include <optional>

#include "lib/ir/cells.h"
#include "lib/ir/convert.h"
#include "lib/ir/eval_parts.h"
#include "lib/ir/formula.h"
#include "lib/ir/strided.h"

namespace fusec {
namespace {

constexpr size_t kChunk = 512;
using Buffer = std::unique_ptr<std::byte[]>;
Buffer chunk_buffer() { return std::make_unique<std::byte[]>(kChunk * 8); }

/// Chunks of one operand, as the result's shape reads it, in compute type (or as stored, when `raw`).
class Operand {
 public:
  Operand(const Tensor& tensor, const std::vector<int64_t>& shape, bool raw)
      : tensor_(tensor), size_(bytes(tensor.dtype)), widen_(!raw && compute_type(tensor.dtype) != tensor.dtype) {
    if (tensor.extents != shape)
      reader_.emplace(tensor.data.data(), size_, StridedView{shape, broadcast_strides(tensor.extents, shape), 0});
    if (reader_) gathered_ = chunk_buffer();
    if (widen_) widened_ = chunk_buffer();
  }

  const std::byte* next(size_t n) {
    const std::byte* stored = gathered_.get();
    if (reader_) {
      reader_->read(gathered_.get(), n);
    } else {
      stored = tensor_.data.data() + at_ * size_;
      at_ += n;
    }
    if (!widen_) return stored;
    widen(tensor_.dtype, stored, reinterpret_cast<float*>(widened_.get()), n);
    return widened_.get();
  }

 private:
  const Tensor& tensor_;
  size_t size_, at_ = 0;
  bool widen_;
  std::optional<Reader> reader_;
  Buffer gathered_, widened_;
};

/// A formula ready to run on chunks: a loop and a register for each step.
class Interpreter {
 public:
  /// nullopt when a step is no exact primitive on its type: the formula is wrong.
  static std::optional<Interpreter> make(const Formula& f, const Attrs& attrs) {
    Interpreter in(f);
    const double scalars[] = {attrs.alpha, attrs.beta};
    std::vector<size_t> last(f.steps.size());
    for (size_t i = 0; i < f.steps.size(); ++i)
      for (size_t k = 0; k < in.arity(i); ++k) last[f.steps[i].args[k]] = i;
    last.back() = f.steps.size();
    std::vector<size_t> free;
    in.registers_.resize(f.steps.size());
    for (size_t i = 0; i < f.steps.size(); ++i) {
      const Step& s = f.steps[i];
      std::byte element[8] = {};
      const bool scalar = s.kind == Step::parameter && s.bits >= f.operands;
      if (s.kind == Step::constant) {
        for (size_t b = 0; b < bytes(s.type); ++b) element[b] = static_cast<std::byte>(s.bits >> (8 * b));
        in.fill(i, element);
      } else if (scalar) {
        convert(DType::f64, reinterpret_cast<const std::byte*>(&scalars[s.bits - f.operands]), s.type, element, 1);
        in.fill(i, element);
      } else if (s.kind == Step::compute) {
        in.loops_[i] = cell_loop(s.op, in.data_type(i));
        if (!in.loops_[i] && s.op != Op::cast && s.op != Op::bitcast) return std::nullopt;
        // A register is free again behind its last reader; that reader takes another one first, since a cast may not write
        // over its operand.
        if (free.empty()) {
          in.buffers_.push_back(chunk_buffer());
          free.push_back(in.buffers_.size() - 1);
        }
        in.registers_[i] = in.buffers_[free.back()].get();
        in.slot_[i] = free.back();
        free.pop_back();
        for (size_t k = 0; k < in.arity(i); ++k) {
          const size_t a = s.args[k];
          if (last[a] != i || f.steps[a].kind != Step::compute || in.slot_[a] == kNone) continue;
          free.push_back(in.slot_[a]);
          in.slot_[a] = kNone;  // once, also when it is both operands
        }
      }
    }
    return in;
  }

  const std::byte* run(std::span<const std::byte* const> operands, size_t n) {
    std::vector<const std::byte*>& r = registers_;
    for (size_t i = 0; i < formula_->steps.size(); ++i) {
      const Step& s = formula_->steps[i];
      if (s.kind == Step::parameter && s.bits < formula_->operands) r[i] = operands[s.bits];
      if (s.kind != Step::compute) continue;
      auto* out = const_cast<std::byte*>(r[i]);
      const std::byte *x = r[s.args[0]], *y = arity(i) > 1 ? r[s.args[1]] : nullptr, *z = arity(i) > 2 ? r[s.args[2]] : nullptr;
      if (s.op == Op::cast)
        convert(formula_->steps[s.args[0]].type, x, s.type, out, n);
      else if (s.op == Op::bitcast)
        std::memcpy(out, x, n * bytes(s.type));
      else
        loops_[i](out, x, y, z, n);
    }
    return r.back();
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  explicit Interpreter(const Formula& f) : formula_(&f), loops_(f.steps.size()), slot_(f.steps.size(), kNone) {}

  size_t arity(size_t i) const {
    return formula_->steps[i].kind == Step::compute ? static_cast<size_t>(info(formula_->steps[i].op).arity) : 0;
  }
  DType data_type(size_t i) const {
    const Step& s = formula_->steps[i];
    return formula_->steps[s.args[s.op == Op::select ? 1 : 0]].type;
  }
  void fill(size_t i, const std::byte* element) {
    const size_t size = bytes(formula_->steps[i].type);
    buffers_.push_back(chunk_buffer());
    for (size_t k = 0; k < kChunk; ++k) std::memcpy(buffers_.back().get() + k * size, element, size);
    registers_[i] = buffers_.back().get();
  }

  const Formula* formula_;
  std::vector<CellLoop> loops_;
  std::vector<size_t> slot_;
  std::vector<const std::byte*> registers_;
  std::vector<Buffer> buffers_;
};

}  // namespace

Status evaluate_elementwise(const Node& n, std::span<const Tensor* const> args, Tensor& result) {
  const bool is_cast = n.op == Op::cast, raw = is_cast || n.op == Op::bitcast;
  const DType data = args[n.op == Op::select ? 1 : 0]->dtype;
  CellLoop loop = nullptr;
  std::optional<Interpreter> interpreter;
  if (info(n.op).form == Form::formula) {
    const Formula* f = formula(n.op, data);
    if (f) interpreter = Interpreter::make(*f, *n.attrs);
    if (!interpreter) return internal_error("no formula for " + std::string(name(data)));
  } else if (!raw) {
    loop = cell_loop(n.op, compute_type(data));
    if (!loop) return internal_error("no cell for " + std::string(name(compute_type(data))));
  }

  std::vector<Operand> operands;
  for (const Tensor* t : args) operands.emplace_back(*t, result.extents, raw);
  std::vector<const std::byte*> chunk(std::max<size_t>(args.size(), 3));
  const Buffer computed = chunk_buffer();
  const bool rounds = compute_type(result.dtype) != result.dtype;
  const auto total = static_cast<size_t>(result.elements());
  std::byte* out = result.data.data();
  const size_t size = bytes(result.dtype);
  for (size_t first = 0; first < total; first += kChunk, out += kChunk * size) {
    const size_t count = std::min(kChunk, total - first);
    for (size_t i = 0; i < operands.size(); ++i) chunk[i] = operands[i].next(count);
    const std::byte* value = computed.get();
    if (is_cast) {
      convert(data, chunk[0], result.dtype, out, count);
      continue;
    }
    if (raw) {
      value = chunk[0];
    } else if (interpreter) {
      value = interpreter->run(chunk, count);
    } else {
      loop(rounds ? computed.get() : out, chunk[0], chunk[1], chunk[2], count);
      if (!rounds) continue;
    }
    if (rounds && !raw)
      narrow(result.dtype, reinterpret_cast<const float*>(value), out, count);
    else
      std::memcpy(out, value, count * size);
  }
  return Done{};
}

}  // namespace fusec
