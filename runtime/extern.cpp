// The table of extern operators, and what their functions share.

#include "runtime/extern.h"

#include <algorithm>
#include <mutex>
#include <string>

#if FUSEC_HAS_CPU
#include "runtime/cpu/threads.h"
#endif

namespace fusec {
namespace {

constexpr size_t kNoIntegers = ~size_t{0};

const ExternOp kOps[] = {
    {"MatMul", "", 2, kNoIntegers, extern_matmul},
    {"Gemm", "alpha beta transA transB", 2, kNoIntegers, extern_gemm},
    {"Conv", "auto_pad dilations group kernel_shape pads strides", 2, kNoIntegers, extern_conv},
    {"ConvTranspose", "auto_pad dilations group kernel_shape output_padding output_shape pads strides", 2, kNoIntegers,
     extern_conv_transpose},
    {"MaxPool", "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", 1, kNoIntegers,
     extern_max_pool},
    {"AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", 1, kNoIntegers,
     extern_average_pool},
    {"Resize", "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode nearest_mode", 1,
     3, extern_resize},
    {"Upsample", "mode", 1, kNoIntegers, extern_resize},
    {"Gather", "axis", 2, 1, extern_gather},
    {"LSTM", "direction hidden_size input_forget layout", 3, 4, extern_lstm},
    {"GRU", "direction hidden_size layout linear_before_reset", 3, 4, extern_gru},
    {"MatMulInteger", "", 2, ExternOp::kAnyType, extern_matmul_integer},
    {"QLinearMatMul", "", 8, ExternOp::kAnyType, extern_qlinear_matmul},
    {"ConvInteger", "auto_pad dilations group kernel_shape pads strides", 2, ExternOp::kAnyType, extern_conv_integer},
    {"QLinearConv", "auto_pad dilations group kernel_shape pads strides", 8, ExternOp::kAnyType, extern_qlinear_conv},
    {"DynamicQuantizeLSTM", "direction hidden_size input_forget layout", 12, ExternOp::kAnyType, extern_quantized_lstm, "com.microsoft"},
};

}  // namespace

int64_t ExternValue::elements(size_t from, size_t to) const {
  int64_t n = 1;
  for (size_t a = from; a < to; ++a) n *= extents[a];
  return n;
}
int64_t ExternValue::elements() const { return elements(0, rank()); }

const onnx::Attribute* ExternCall::attribute(std::string_view name) const {
  for (const onnx::Attribute& a : node.attributes)
    if (a.name == name) return &a;
  return nullptr;
}
int64_t ExternCall::i(std::string_view name, int64_t absent) const {
  const onnx::Attribute* a = attribute(name);
  return a ? a->i : absent;
}
float ExternCall::f(std::string_view name, float absent) const {
  const onnx::Attribute* a = attribute(name);
  return a ? a->f : absent;
}
std::string_view ExternCall::s(std::string_view name, std::string_view absent) const {
  const onnx::Attribute* a = attribute(name);
  return a ? a->s : absent;
}
std::vector<int64_t> ExternCall::ints(std::string_view name, std::vector<int64_t> absent) const {
  const onnx::Attribute* a = attribute(name);
  return a ? a->ints : absent;
}

int64_t Window::positions() const {
  int64_t n = 1;
  for (int64_t d : out) n *= d;
  return n;
}
int64_t Window::taps() const {
  int64_t n = 1;
  for (int64_t d : kernel) n *= d;
  return n;
}

Result<Window> window_of(const ExternCall& call, const std::vector<int64_t>& in, const std::vector<int64_t>& out,
                         const std::vector<int64_t>& kernel) {
  const size_t n = kernel.size();
  Window w{in,
           out,
           kernel,
           call.ints("strides", std::vector<int64_t>(n, 1)),
           call.ints("dilations", std::vector<int64_t>(n, 1)),
           std::vector<int64_t>(n, 0)};
  const std::vector<int64_t> pads = call.ints("pads", std::vector<int64_t>(2 * n, 0));
  const std::string_view automatic = call.s("auto_pad", "NOTSET");
  if (in.size() != n || out.size() != n || w.stride.size() != n || w.dilation.size() != n || pads.size() != 2 * n)
    return input_error("strides, dilations, pads and kernel differ in their numbers of axes");
  constexpr int64_t kMost = int64_t{1} << 31;  // products of two fit
  for (size_t a = 0; a < n; ++a)
    if (w.stride[a] < 1 || w.dilation[a] < 1 || kernel[a] < 1 || pads[a] < 0 ||
        std::max({w.stride[a], w.dilation[a], kernel[a], pads[a], in[a], out[a]}) > kMost)
      return input_error("a stride, dilation, kernel or padding out of range");
  for (size_t a = 0; a < n; ++a) {
    if (automatic.starts_with("SAME")) {
      const int64_t all =
          std::max<int64_t>(0, (out[a] - 1) * w.stride[a] + (kernel[a] - 1) * w.dilation[a] + 1 - in[a]);
      w.low[a] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    } else if (automatic != "VALID") {
      w.low[a] = pads[a];
    }
  }
  return w;
}

Status expects(const std::vector<std::optional<ExternValue>>& values, size_t index, int64_t elements) {
  if (index >= values.size() || !values[index] || values[index]->elements() == elements) return Done{};
  return input_error("value " + std::to_string(index) + " has " + std::to_string(values[index]->elements()) +
                     " elements, not " + std::to_string(elements));
}

void extern_parallel(int64_t items, [[maybe_unused]] int64_t work, const std::function<void(int64_t, int64_t)>& body) {
#if FUSEC_HAS_CPU
  cpu::parallel_for(items, std::max<int64_t>(1, 200'000 / std::max<int64_t>(work, 1)), body);
#else
  body(0, items);
#endif
}

Status extern_each(int64_t items, int64_t work, const std::function<Status(int64_t, int64_t)>& body) {
  std::mutex lock;
  Status first = Done{};
  extern_parallel(items, work, [&](int64_t begin, int64_t end) {
    if (Status s = body(begin, end); !s) {
      const std::lock_guard hold(lock);
      if (first) first = s;
    }
  });
  return first;
}

const ExternOp* find_extern(std::string_view op, std::string_view domain) {
  if (domain == "ai.onnx") domain = "";
  const auto* row = std::find_if(std::begin(kOps), std::end(kOps), [&](const ExternOp& r) { return r.op == op && r.domain == domain; });
  return row == std::end(kOps) ? nullptr : row;
}

Result<const ExternOp*> checked_extern(const ExternCall& call) {
  const ExternOp* row = find_extern(call.node.op, call.node.domain);
  if (!row) return input_error("no extern operator " + std::string(call.node.op));
  const std::string known = " " + std::string(row->attributes) + " ";
  for (const onnx::Attribute& a : call.node.attributes)
    if (known.find(" " + std::string(a.name) + " ") == known.npos)
      return input_error("attribute " + onnx::quote(a.name) + " is not taken");
  const bool recurrent = row->run == extern_lstm || row->run == extern_gru || row->run == extern_quantized_lstm;
  for (size_t k = 0; k < row->min_inputs; ++k)
    if (!call.has(k) && !(recurrent && k > 2 && k < 8)) return input_error("input " + std::to_string(k) + " is missing");
  const bool any_type = row->integers == ExternOp::kAnyType;
  for (size_t k = 0; k < call.inputs.size() && !any_type; ++k)
    if (call.has(k) && call.in(k).dtype != DType::f32 && k != row->integers)
      return input_error(std::string(name(call.in(k).dtype)) + ": extern operators take f32");
  for (const auto& value : call.outputs)
    if (value && value->dtype != DType::f32 && !any_type)
      return input_error(std::string(name(value->dtype)) + ": extern operators give f32");
  if (!recurrent && (call.outputs.empty() || !call.outputs[0])) return input_error("its first output is left out");
  return row;
}

Status run_extern(const ExternCall& call) {
  const Result<const ExternOp*> row = checked_extern(call);
  return row ? (*row)->run(call) : Status(row.error());
}

}  // namespace fusec
