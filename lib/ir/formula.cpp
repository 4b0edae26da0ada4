// Runs each formula once over Recorded values and keeps the steps.

#include "lib/ir/formula.h"

#include <memory>
#include <mutex>

#include "lib/ir/formula_algebra.h"
#include "lib/ir/formulas.h"

namespace fusec {
namespace formulas {

uint16_t Recorder::add(const Step& step) {
  const Key key{step.kind, static_cast<int>(step.op), static_cast<int>(step.type), step.args, step.bits};
  const auto [at, is_new] = known_.try_emplace(key, static_cast<uint16_t>(steps_.size()));
  if (is_new) steps_.push_back(step);
  return at->second;
}

namespace {

template <class T>
Recorded<T> parameter(Recorder& recorder, uint64_t index) {
  return {&recorder, recorder.add({Step::parameter, Op::constant, dtype_of<T>(), {}, index})};
}

/// The steps that `result` needs, itself last; parameters stay even when unused.
std::vector<Step> finish(const std::vector<Step>& steps, uint16_t result) {
  std::vector<bool> needed(result + 1, false);
  needed[result] = true;
  std::vector<Step> kept;
  std::vector<uint16_t> renamed(result + 1, 0);
  for (size_t k = result + 1; k-- > 0;) {
    if (steps[k].kind != Step::compute) continue;
    if (needed[k])
      for (int j = 0; j < info(steps[k].op).arity; ++j) needed[steps[k].args[j]] = true;
  }
  for (size_t k = 0; k <= result; ++k) {
    if (!needed[k] && steps[k].kind != Step::parameter) continue;
    Step step = steps[k];
    if (step.kind == Step::compute)
      for (int j = 0; j < info(step.op).arity; ++j) step.args[j] = renamed[step.args[j]];
    renamed[k] = static_cast<uint16_t>(kept.size());
    kept.push_back(step);
  }
  return kept;
}

template <class T>
std::unique_ptr<const Formula> record(Op op) {
  Recorder recorder;
  switch (op) {
#define FORMULA(name, operands, scalars, body)                                                    \
  case Op::name: {                                                                                \
    [[maybe_unused]] const auto x = parameter<T>(recorder, 0);                                    \
    [[maybe_unused]] const auto y = operands > 1 ? parameter<T>(recorder, 1) : x;                 \
    [[maybe_unused]] const auto alpha = scalars > 0 ? parameter<T>(recorder, operands) : x;       \
    [[maybe_unused]] const auto beta = scalars > 1 ? parameter<T>(recorder, operands + 1) : x;    \
    const Recorded<T> result = body;                                                              \
    const uint16_t last = result.id(&recorder);                                                   \
    return std::make_unique<const Formula>(                                                       \
        Formula{op, dtype_of<T>(), dtype_of<T>(), operands, scalars, finish(recorder.take(), last)}); \
  }
#include "lib/ir/formulas.def"
#undef FORMULA
    default:
      return nullptr;
  }
}

template <DType R>
std::unique_ptr<const Formula> record_narrow(Op op) {
  Recorder recorder;
  switch (op) {
#define NARROW(name, operands, scalars, body)                                                     \
  case Op::name: {                                                                                \
    const auto x = parameter<float>(recorder, 0);                                                 \
    [[maybe_unused]] const auto alpha = scalars > 0 ? parameter<float>(recorder, operands) : x;   \
    const Recorded<float> result = body;                                                          \
    const uint16_t last = result.id(&recorder);                                                   \
    return std::make_unique<const Formula>(                                                       \
        Formula{op, DType::f32, R, operands, scalars, finish(recorder.take(), last)});            \
  }
#include "lib/ir/formulas_narrow.def"
#undef NARROW
    default:
      return nullptr;
  }
}

template <class T>
std::unique_ptr<const Formula> record_integer(Op op) {
  if (op != Op::pow) return nullptr;
  Recorder recorder;
  const auto x = parameter<T>(recorder, 0), y = parameter<T>(recorder, 1);
  const uint16_t last = pow(x, y).id(&recorder);
  return std::make_unique<const Formula>(Formula{op, dtype_of<T>(), dtype_of<T>(), 2, 0, finish(recorder.take(), last)});
}

std::unique_ptr<const Formula> build(Op op, DType type) {
  switch (type) {
    case DType::f32: return record<float>(op);
    case DType::f64: return record<double>(op);
    case DType::i8: return record_integer<int8_t>(op);
    case DType::i16: return record_integer<int16_t>(op);
    case DType::i32: return record_integer<int32_t>(op);
    case DType::i64: return record_integer<int64_t>(op);
    case DType::u8: return record_integer<uint8_t>(op);
    case DType::u16: return record_integer<uint16_t>(op);
    case DType::u32: return record_integer<uint32_t>(op);
    case DType::u64: return record_integer<uint64_t>(op);
    case DType::f16: return record_narrow<DType::f16>(op);
    case DType::bf16: return record_narrow<DType::bf16>(op);
    case DType::boolean:
    case DType::f8e4m3:  // shares the form of bf16
    case DType::f8e5m2: return nullptr;
  }
  return nullptr;
}

}  // namespace
}  // namespace formulas

const Formula* formula(Op op, DType type) {
  if (type == DType::f8e4m3 || type == DType::f8e5m2) type = DType::bf16;
  struct Entry {
    std::once_flag once;
    std::unique_ptr<const Formula> value;
  };
  static Entry entries[kOps][kDTypes];
  Entry& entry = entries[static_cast<int>(op)][static_cast<int>(type)];
  std::call_once(entry.once, [&] { entry.value = formulas::build(op, type); });
  if (!entry.value && compute_type(type) != type) return formula(op, compute_type(type));
  return entry.value.get();
}

}  // namespace fusec
