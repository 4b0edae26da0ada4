// Activations. A scalar that an attribute gives is f32 in the file; it is rounded to the operand's type where it is
// used.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

template <Op op>
void plain(Call& c) {
  c.out(c.add(op, {c.in(0)}));
}

Value select(Call& c, Value condition, Value yes, Value no) { return c.add(Op::select, {condition, yes, no}); }

void elu(Call& c) { c.out(c.add(Op::elu, {c.in(0)}, {.alpha = c.f("alpha", 1.0)})); }
void leaky_relu(Call& c) { c.out(c.add(Op::leaky_relu, {c.in(0)}, {.alpha = c.f("alpha", 0.01f)})); }
void hard_sigmoid(Call& c) {
  c.out(c.add(Op::hardsigmoid, {c.in(0)}, {.alpha = c.f("alpha", 0.2f), .beta = c.f("beta", 0.5)}));
}

/// gamma * (x > 0 ? x : alpha * expm1(x)); the card has the paper's constants, other ones are written out.
void selu(Call& c) {
  const Value x = c.in(0);
  if (!c.given("alpha") && !c.given("gamma")) return c.out(c.add(Op::selu, {x}));
  const Value inner = c.add(Op::elu, {x}, {.alpha = c.f("alpha", 1.67326319217681884765625)});
  c.out(c.add(Op::mul, {inner, c.like(x, c.f("gamma", 1.05070102214813232421875))}));
}

/// max(0, x) + min(0, alpha * expm1(x / alpha))
void celu(Call& c) {
  const Value x = c.in(0), zero = c.like(x, 0), alpha = c.like(x, c.f("alpha", 1.0));
  const Value below = c.add(Op::mul, {alpha, c.add(Op::expm1, {c.add(Op::div, {x, alpha})})});
  c.out(c.add(Op::add, {c.add(Op::max, {x, zero}), c.add(Op::min, {below, zero})}));
}

void thresholded_relu(Call& c) {
  const Value x = c.in(0);
  c.out(select(c, c.add(Op::gt, {x, c.like(x, c.f("alpha", 1.0))}), x, c.like(x, 0)));
}

void softsign(Call& c) {
  const Value x = c.in(0);
  c.out(c.add(Op::div, {x, c.add(Op::add, {c.add(Op::abs, {x}), c.like(x, 1)})}));
}

void shrink(Call& c) {
  const Value x = c.in(0), bias = c.like(x, c.f("bias", 0.0));
  const double lambd = c.f("lambd", 0.5);
  const Value low = c.add(Op::add, {x, bias}), high = c.add(Op::sub, {x, bias});
  c.out(select(c, c.add(Op::lt, {x, c.like(x, -lambd)}), low,
               select(c, c.add(Op::gt, {x, c.like(x, lambd)}), high, c.like(x, 0))));
}

void gelu(Call& c) {
  const std::string_view how = c.s("approximate", "none");
  if (how != "none" && how != "tanh") c.fail("approximate is " + quote(how) + ", not none or tanh");
  c.out(c.add(how == "tanh" ? Op::gelu_tanh : Op::gelu, {c.in(0)}));
}

/// x * sigmoid(alpha * x)
Value swish(Call& c, Value x) {
  const double alpha = c.f("alpha", 1.0);
  if (alpha == 1) return c.add(Op::silu, {x});
  return c.add(Op::mul, {x, c.add(Op::sigmoid, {c.add(Op::mul, {x, c.like(x, alpha)})})});
}
void swiglu(Call& c) {
  const Value gate = c.in(0), x = c.in(1);
  if (c.shape(gate) != c.shape(x))
    c.fail(text(c.type(gate)) + " and " + text(c.type(x)) + ": SwiGLU does not broadcast");
  c.out(c.add(Op::mul, {swish(c, gate), x}));
}

/// slope broadcasts to x, never the other way round.
void prelu(Call& c) {
  const Value x = c.in(0), slope = c.in(1);
  c.out(select(c, c.add(Op::lt, {x, c.like(x, 0)}), c.add(Op::mul, {x, c.broadcast(slope, c.shape(x))}), x));
}

/// Bounds are attributes at 6, scalar operands from 11 on; one that is absent bounds nothing. min > max gives max.
void clip(Call& c) {
  const Value x = c.in(0);
  Value low, high;
  if (c.row.since < 11) {
    if (c.given("min")) low = c.like(x, c.f("min", 0));
    if (c.given("max")) high = c.like(x, c.f("max", 0));
  } else {
    // A scalar that some exporters write as [1].
    const auto bound = [&](size_t i) { return c.reshape(c.in(i), {}); };
    if (c.has(1)) low = bound(1);
    if (c.has(2)) high = bound(2);
  }
  if (low.valid() && high.valid()) return c.out(c.add(Op::clamp, {x, low, high}));
  if (low.valid()) return c.out(c.add(Op::max, {x, low}));
  c.out(high.valid() ? c.add(Op::min, {x, high}) : x);
}

const OpRow kRows[] = {
    //  operator        since  inputs  out  attributes            import
    {"Relu",               6,  1, 1,    1,  "",                   plain<Op::relu>},
    {"Sigmoid",            6,  1, 1,    1,  "",                   plain<Op::sigmoid>},
    {"Softplus",           1,  1, 1,    1,  "",                   plain<Op::softplus>},
    {"Softsign",           1,  1, 1,    1,  "",                   softsign},
    {"HardSwish",         14,  1, 1,    1,  "",                   plain<Op::hardswish>},
    {"Mish",              18,  1, 1,    1,  "",                   plain<Op::mish>},
    {"Elu",                6,  1, 1,    1,  "alpha",              elu},
    {"Selu",               6,  1, 1,    1,  "alpha gamma",        selu},
    {"Celu",              12,  1, 1,    1,  "alpha",              celu},
    {"LeakyRelu",          6,  1, 1,    1,  "alpha",              leaky_relu},
    {"HardSigmoid",        6,  1, 1,    1,  "alpha beta",         hard_sigmoid},
    {"ThresholdedRelu",   10,  1, 1,    1,  "alpha",              thresholded_relu},
    {"Shrink",             9,  1, 1,    1,  "bias lambd",         shrink},
    {"Gelu",              20,  1, 1,    1,  "approximate",        gelu},
    {"Swish",             24,  1, 1,    1,  "alpha",              [](Call& c) { c.out(swish(c, c.in(0))); }},
    {"SwiGLU",            28,  2, 2,    1,  "alpha",              swiglu},
    {"PRelu",              7,  2, 2,    1,  "",                   prelu},
    {"Clip",               6,  1, 1,    1,  "max min",            clip},
    {"Clip",              11,  1, 3,    1,  "",                   clip},
};

}  // namespace

std::span<const OpRow> activation_rows() { return kRows; }

}  // namespace fusec::onnx
