// LSTM and GRU, as ONNX has them, and ONNX Runtime's DynamicQuantizeLSTM: X [steps, batch, input], W [directions, gates, input], R [directions, gates, hidden],
// B [directions, 2 gates]. The inputs' share of all steps is one product, the states' share one a step.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "runtime/extern.h"

namespace fusec {
namespace {

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

struct Recurrence {
  int64_t steps, batch, input, hidden, directions, gates;  // gates: 4 or 3
  std::string_view direction;
  bool reversed(int64_t d) const { return d == 1 || direction == "reverse"; }
};

/// `packed`: W [directions, input, gates] and R [directions, hidden, gates], as DynamicQuantizeLSTM has them.
Result<Recurrence> recurrence_of(const ExternCall& call, int64_t gates, bool packed = false) {
  const ExternValue &x = call.in(0), &r = call.in(2);
  if (call.i("layout", 0)) return input_error("layout 1 is not taken");
  if (x.rank() != 3 || r.rank() != 3) return input_error("X and R have three axes");
  const int64_t hidden = r.extents[packed ? 1 : 2];
  Recurrence out{x.extents[0], x.extents[1], x.extents[2], hidden, r.extents[0], gates, call.s("direction", "forward")};
  if (r.extents[packed ? 2 : 1] != gates * out.hidden) return input_error("R does not have " + std::to_string(gates) + " gates");
  if (call.has(4))
    for (int64_t b = 0; b < call.in(4).elements(); ++b)
      if (call.in(4).dtype != DType::i32 || static_cast<const int32_t*>(call.in(4).data)[b] != out.steps)
        return input_error("sequences shorter than the input are not taken");
  const int64_t state = out.directions * out.batch * out.hidden, weights = out.directions * gates * out.hidden;
  for (const auto& [operand, elements] : {std::pair<size_t, int64_t>{1, weights * out.input},
                                          {2, weights * out.hidden},
                                          {3, 2 * weights},
                                          {5, state},
                                          {6, state},
                                          {7, 3 * out.directions * out.hidden}})
    if (Status s = expects(call.inputs, operand, elements); !s) return s.error();
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (Status s = expects(call.outputs, k, k == 0 ? out.steps * state : state); !s) return s.error();
  return out;
}

/// How values give to the gates of direction d: rows [rows, inner] times weights [inner, gates * hidden], added to `gates`.
using Share = std::function<Status(int64_t d, int64_t rows, int64_t inner, const float* values, float* gates)>;

/// Weights [directions, gates * hidden, inner].
Share plain_share(const Recurrence& n, const ExternValue& weights) {
  return [&n, w = weights.f32()](int64_t d, int64_t rows, int64_t inner, const float* values, float* gates) {
    const int64_t columns = n.gates * n.hidden;
    const Product p{.transpose_b = true, .m = rows, .n = columns, .k = inner, .beta = 1, .lda = inner, .ldb = inner, .ldc = columns};
    return product(p, values, w + d * columns * inner, gates);
  };
}

struct Shares {
  Share inputs, states;
};

/// [steps, batch, gates * hidden]: what the inputs give to the gates of direction d, the biases of W in it.
Result<std::vector<float>> input_share(const ExternCall& call, const Recurrence& n, const Share& share, int64_t d) {
  const int64_t rows = n.steps * n.batch, columns = n.gates * n.hidden;
  std::vector<float> out(static_cast<size_t>(rows * columns), 0.0f);
  if (call.has(3))
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(call.in(3).f32() + d * 2 * columns, columns, out.data() + row * columns);
  if (Status s = share(d, rows, n.input, call.in(0).f32(), out.data()); !s) return s.error();
  return out;
}

/// A direction's first state, or zeros.
std::vector<float> first_state(const ExternCall& call, const Recurrence& n, size_t operand, int64_t d) {
  const int64_t size = n.batch * n.hidden;
  std::vector<float> out(static_cast<size_t>(size), 0.0f);
  if (call.has(operand)) std::copy_n(call.in(operand).f32() + d * size, size, out.data());
  return out;
}

float* output(const ExternCall& call, size_t k) {
  return k < call.outputs.size() && call.outputs[k] ? call.outputs[k]->f32() : nullptr;
}

/// States' share of the gates, in place of what is there: h * R' + biases of R.
Status state_share(const ExternCall& call, const Recurrence& n, const Share& share, int64_t d, const std::vector<float>& h,
                   std::vector<float>& out) {
  const int64_t columns = n.gates * n.hidden;
  if (call.has(3))
    for (int64_t b = 0; b < n.batch; ++b)
      std::copy_n(call.in(3).f32() + (2 * d + 1) * columns, columns, out.data() + b * columns);
  else std::fill(out.begin(), out.end(), 0.0f);
  return share(d, n.batch, n.hidden, h.data(), out.data());
}

/// Runs all directions; `cell(input gates, state gates, h, c, batch row, d)` computes one step of one row.
template <class Cell>
Status run(const ExternCall& call, const Recurrence& n, const Shares& shares, const Cell& cell, size_t cell_operand) {
  const int64_t columns = n.gates * n.hidden, state = n.batch * n.hidden;
  for (int64_t d = 0; d < n.directions; ++d) {
    Result<std::vector<float>> inputs = input_share(call, n, shares.inputs, d);
    if (!inputs) return inputs.error();
    std::vector<float> h = first_state(call, n, 5, d),
                       c = cell_operand ? first_state(call, n, cell_operand, d) : std::vector<float>();
    std::vector<float> gates(static_cast<size_t>(n.batch * columns));
    for (int64_t k = 0; k < n.steps; ++k) {
      const int64_t t = n.reversed(d) ? n.steps - 1 - k : k;
      if (Status s = state_share(call, n, shares.states, d, h, gates); !s) return s;
      for (int64_t b = 0; b < n.batch; ++b)
        cell(inputs->data() + (t * n.batch + b) * columns, gates.data() + b * columns, h.data() + b * n.hidden,
             c.empty() ? nullptr : c.data() + b * n.hidden, d);
      if (float* y = output(call, 0)) std::copy(h.begin(), h.end(), y + (t * n.directions + d) * state);
    }
    if (float* y = output(call, 1)) std::copy(h.begin(), h.end(), y + d * state);
    if (float* y = output(call, 2)) std::copy(c.begin(), c.end(), y + d * state);
  }
  return Done{};
}

Status run_lstm(const ExternCall& call, const Recurrence& n, const Shares& shares) {
  if (call.i("input_forget", 0)) return input_error("input_forget is not taken");
  const float* peep = call.has(7) ? call.in(7).f32() : nullptr;  // of input, output and forget gates
  const auto cell = [&](const float* x, const float* r, float* h, float* c, int64_t d) {
    for (int64_t j = 0; j < n.hidden; ++j) {
      const auto gate = [&](int64_t g) { return x[g * n.hidden + j] + r[g * n.hidden + j]; };
      const auto peephole = [&](int64_t g) { return peep ? peep[(d * 3 + g) * n.hidden + j] : 0.0f; };
      const float in = sigmoid(gate(0) + peephole(0) * c[j]), forget = sigmoid(gate(2) + peephole(2) * c[j]);
      c[j] = forget * c[j] + in * std::tanh(gate(3));
      h[j] = sigmoid(gate(1) + peephole(1) * c[j]) * std::tanh(c[j]);
    }
  };
  return run(call, n, shares, cell, 6);
}

/// Weights as integers less their zero points, in f32, and the scale of each column.
struct QuantizedWeights {
  std::vector<float> values, scales;  // scales: [directions, gates * hidden]
};

/// `operand` is W or R; its scales and zero points are one a direction, or one a column.
Result<QuantizedWeights> quantized(const ExternCall& call, const Recurrence& n, size_t operand, size_t scale, size_t zero) {
  const ExternValue &w = call.in(operand), &s = call.in(scale), &z = call.in(zero);
  const int64_t columns = n.gates * n.hidden, all = n.directions * columns;
  const bool by_column = s.elements() == all && all != n.directions;
  if (s.dtype != DType::f32 || z.dtype != w.dtype || (w.dtype != DType::u8 && w.dtype != DType::i8) || s.elements() != z.elements() ||
      (!by_column && s.elements() != n.directions))
    return input_error("weights are u8 or i8, with an f32 scale and a zero point for each direction or each column");
  const auto number = [](const ExternValue& v, int64_t i) {
    return v.dtype == DType::u8 ? float(static_cast<const uint8_t*>(v.data)[i]) : float(static_cast<const int8_t*>(v.data)[i]);
  };
  QuantizedWeights out{std::vector<float>(static_cast<size_t>(w.elements())), std::vector<float>(static_cast<size_t>(all))};
  for (int64_t i = 0; i < all; ++i) out.scales[size_t(i)] = s.f32()[by_column ? i : i / columns];
  const int64_t rows = all ? w.elements() / all : 0;  // w [directions, rows, columns]
  for (int64_t i = 0, row = 0; row < n.directions * rows; ++row)
    for (int64_t c = 0; c < columns; ++c, ++i) out.values[size_t(i)] = number(w, i) - number(z, by_column ? row / rows * columns + c : row / rows);
  return out;
}

/// Values are quantised to u8 first, by the range of all of them: DynamicQuantizeLinear.
Share quantized_share(const Recurrence& n, const QuantizedWeights& weights) {
  return [&](int64_t d, int64_t rows, int64_t inner, const float* values, float* gates) -> Status {
    const int64_t columns = n.gates * n.hidden, count = rows * inner;
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; ++i) low = std::min(low, values[i]), high = std::max(high, values[i]);
    const float scale = high > low ? (high - low) / 255 : 1;
    const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    std::vector<float> whole(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) whole[size_t(i)] = std::clamp(std::nearbyint(values[i] / scale) + zero, 0.0f, 255.0f) - zero;
    std::vector<int32_t> sums(static_cast<size_t>(rows * columns));
    const Product p{.m = rows, .n = columns, .k = inner, .lda = inner, .ldb = columns, .ldc = columns};
    if (Status s = exact_product(p, whole.data(), weights.values.data() + d * inner * columns, sums.data()); !s) return s;
    for (int64_t i = 0; i < rows * columns; ++i)
      gates[i] += static_cast<float>(sums[size_t(i)]) * (scale * weights.scales[size_t(d * columns + i % columns)]);
    return Done{};
  };
}

}  // namespace

Status extern_lstm(const ExternCall& call) {
  Result<Recurrence> n = recurrence_of(call, 4);
  if (!n) return n.error();
  return run_lstm(call, *n, {plain_share(*n, call.in(1)), plain_share(*n, call.in(2))});
}

Status extern_quantized_lstm(const ExternCall& call) {
  for (size_t k : {0, 3, 5, 6, 7})
    if (call.has(k) && call.in(k).dtype != DType::f32) return input_error("X, B, P and the states are f32");
  Result<Recurrence> n = recurrence_of(call, 4, true);
  if (!n) return n.error();
  const auto w = call.prepared(1, {8, 9}, [&] { return quantized(call, *n, 1, 8, 9); });
  const auto r = call.prepared(2, {10, 11}, [&] { return quantized(call, *n, 2, 10, 11); });
  if (!w || !r) return w ? r.error() : w.error();
  return run_lstm(call, *n, {quantized_share(*n, **w), quantized_share(*n, **r)});
}

Status extern_gru(const ExternCall& call) {
  Result<Recurrence> made = recurrence_of(call, 3);
  if (!made) return made.error();
  const Recurrence& n = *made;
  const bool linear_first = call.i("linear_before_reset", 0) != 0;
  const float* bias = call.has(3) ? call.in(3).f32() : nullptr;
  std::vector<float> reset(static_cast<size_t>(n.hidden)), update(reset), old(reset), state(reset);
  Status fault = Done{};
  const auto cell = [&](const float* x, const float* r, float* h, float*, int64_t d) {
    const int64_t hidden = n.hidden, columns = 3 * hidden;
    const float* weights = call.in(2).f32() + (d * 3 + 2) * hidden * hidden;
    std::copy_n(h, hidden, old.data());
    for (int64_t j = 0; j < hidden; ++j)
      update[j] = sigmoid(x[j] + r[j]), reset[j] = sigmoid(x[hidden + j] + r[hidden + j]);
    for (int64_t j = 0; j < hidden; ++j) state[j] = reset[j] * r[2 * hidden + j];
    if (!linear_first) {  // the reset comes before the product: one of its own
      for (int64_t j = 0; j < hidden; ++j) reset[j] *= old[j], state[j] = bias ? bias[(2 * d + 1) * columns + 2 * hidden + j] : 0.0f;
      const Product p{.transpose_b = true, .m = 1, .n = hidden, .k = hidden, .beta = 1, .lda = hidden, .ldb = hidden, .ldc = hidden};
      if (Status s = product(p, reset.data(), weights, state.data()); !s) fault = s;
    }
    for (int64_t j = 0; j < hidden; ++j) h[j] = (1 - update[j]) * std::tanh(x[2 * hidden + j] + state[j]) + update[j] * old[j];
  };
  const Status done = run(call, n, {plain_share(n, call.in(1)), plain_share(n, call.in(2))}, cell, 0);
  return done ? fault : done;
}

}  // namespace fusec
