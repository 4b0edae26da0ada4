// The table of boundaries: operators that others run, and shape rules for those whose results have shapes that follow from
// their operands. An operator without a rule is a boundary all the same; its results then have the shapes that the file
// states, or none.

#include <algorithm>
#include <map>

#include "lib/import/onnx_boundary.h"
#include "lib/import/onnx_quotients.h"
#include "lib/import/onnx_tensor.h"

namespace fusec::onnx {
namespace {

using Types = std::vector<std::optional<Type>>;
using Ints = std::vector<int64_t>;

std::optional<Shape> shape_of(Call& c, size_t i) {
  if (!c.has(i)) return std::nullopt;
  const Value v = c.in(i);
  return v.valid() ? std::optional(c.shape(v)) : std::nullopt;
}

/// Elements of a known f32 operand. One that is not known is asked for: the caller may have its value.
std::optional<std::vector<float>> floats(Call& c, size_t i) {
  if (!c.has(i) || !c.known(i) || c.item(i).known->dtype != DType::f32) return std::nullopt;
  const TensorData& data = c.item(i).known->data;
  const auto* first = reinterpret_cast<const float*>(data.data());
  return std::vector<float>(first, first + data.size() / 4);
}

Types one(DType dtype, std::optional<Shape> shape) {
  if (!shape) return {std::nullopt};
  return {Type{dtype, std::move(*shape)}};
}

// --- products
// ---------------------------------------------------------------------------------------------------------

std::optional<Shape> product_shape(Shape a, Shape b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  if (!(a.back() == b[b.size() - 2])) return std::nullopt;
  std::optional<Shape> out = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!out) return std::nullopt;
  if (!row) out->push_back(a[a.size() - 2]);
  if (!column) out->push_back(b.back());
  return out;
}

Types product(Call& c, size_t left, size_t right, DType dtype) {
  const std::optional<Shape> a = shape_of(c, left), b = shape_of(c, right);
  return one(dtype, a && b ? product_shape(*a, *b) : std::nullopt);
}
Types matmul(Call& c) { return product(c, 0, 1, c.dtype(c.in(0))); }
Types matmul_integer(Call& c) { return product(c, 0, 1, DType::i32); }
Types qlinear_matmul(Call& c) { return product(c, 0, 3, c.dtype(c.in(7))); }

Types gemm(Call& c) {
  const std::optional<Shape> a = shape_of(c, 0), b = shape_of(c, 1);
  if (!a || !b || a->size() != 2 || b->size() != 2) return {};
  return one(c.dtype(c.in(0)), Shape{(*a)[c.i("transA", 0) ? 1 : 0], (*b)[c.i("transB", 0) ? 0 : 1]});
}

/// "bij,bjk->bik": labels of one letter, with an arrow, without an ellipsis.
Types einsum(Call& c) {
  std::string text(c.s("equation", ""));
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  if (arrow == text.npos || text.find('.') != text.npos) return {};
  std::map<char, Dim> sizes;
  size_t at = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t end = std::min(text.find(',', at), arrow);
    const std::string labels = text.substr(at, end - at);
    const std::optional<Shape> shape = shape_of(c, i);
    if (!shape || shape->size() != labels.size()) return {};
    for (size_t k = 0; k < labels.size(); ++k) sizes.emplace(labels[k], (*shape)[k]);
    at = std::min(end + 1, arrow);
  }
  Shape out;
  for (char label : text.substr(arrow + 2)) {
    const auto size = sizes.find(label);
    if (size == sizes.end()) return {};
    out.push_back(size->second);
  }
  return one(c.dtype(c.in(0)), out);
}

// --- windows
// ----------------------------------------------------------------------------------------------------------

constexpr int64_t kMostStep = int64_t{1} << 31;  // of a stride, a dilation, a kernel's extent, a padding: products of two fit

bool sensible(const Ints& values, int64_t least) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v <= kMostStep; });
}

/// (in + padding - window) / stride + 1, rounded down or up; of the result's axis `axis`.
std::optional<Dim> positions(Call& c, size_t axis, const Dim& in, int64_t padding, int64_t window, int64_t stride, bool up) {
  const Dim room = in + Dim(padding - window);
  if (room.is_constant() && room.constant() < 0) return std::nullopt;
  return c.quotients->divide(room + Dim(stride + (up ? stride - 1 : 0)), stride,
                             std::string(c.node.outputs.empty() ? c.node.op : c.node.outputs[0]) + "." + std::to_string(axis));
}

/// Extents of the spatial axes behind a window operator.
std::optional<Shape> windows(Call& c, const Shape& x, const Ints& kernel, bool up) {
  const size_t n = kernel.size();
  const Ints strides = c.list("strides").value_or(Ints(n, 1)), dilations = c.list("dilations").value_or(Ints(n, 1)),
             pads = c.list("pads").value_or(Ints(2 * n, 0));
  const std::string_view automatic = c.s("auto_pad", "NOTSET");
  if (x.size() != n + 2 || strides.size() != n || dilations.size() != n || pads.size() != 2 * n) return std::nullopt;
  if (!sensible(kernel, 1) || !sensible(strides, 1) || !sensible(dilations, 1) || !sensible(pads, 0)) return std::nullopt;
  Shape out;
  for (size_t a = 0; a < n; ++a) {
    const Dim& in = x[a + 2];
    std::optional<Dim> d;
    if (automatic.starts_with("SAME")) d = positions(c, a + 2, in, 0, 1, strides[a], false);  // ceil(in / stride)
    else
      d = positions(c, a + 2, in, automatic == "VALID" ? 0 : pads[a] + pads[a + n], (kernel[a] - 1) * dilations[a] + 1, strides[a], up);
    if (!d) return std::nullopt;
    if (up && automatic == "NOTSET") {  // the last window has to begin inside the tensor or its low padding
      if (!in.is_constant() && strides[a] + pads[a + n] > (kernel[a] - 1) * dilations[a] + 1) return std::nullopt;
      if (in.is_constant() && (d->constant() - 1) * strides[a] >= in.constant() + pads[a]) d = *d - Dim(1);
    }
    out.push_back(*d);
  }
  return out;
}

Types convolution(Call& c, size_t input, size_t weight, DType dtype) {
  const std::optional<Shape> x = shape_of(c, input), w = shape_of(c, weight);
  if (!x || !w || w->size() < 3 || w->size() != x->size()) return {};
  Ints kernel;
  for (size_t a = 2; a < w->size(); ++a) {
    if (!(*w)[a].is_constant()) return {};
    kernel.push_back((*w)[a].constant());
  }
  std::optional<Shape> spatial = windows(c, *x, kernel, false);
  if (!spatial) return {};
  spatial->insert(spatial->begin(), {(*x)[0], (*w)[0]});
  return one(dtype, spatial);
}
Types conv(Call& c) { return convolution(c, 0, 1, c.dtype(c.in(0))); }
Types conv_integer(Call& c) { return convolution(c, 0, 1, DType::i32); }
Types qlinear_conv(Call& c) { return convolution(c, 0, 3, c.dtype(c.in(7))); }

Types conv_transpose(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0), w = shape_of(c, 1);
  if (!x || !w || w->size() < 3 || w->size() != x->size()) return {};
  const size_t n = w->size() - 2;
  const Ints strides = c.list("strides").value_or(Ints(n, 1)), dilations = c.list("dilations").value_or(Ints(n, 1)),
             pads = c.list("pads").value_or(Ints(2 * n, 0)), extra = c.list("output_padding").value_or(Ints(n, 0));
  const std::optional<Ints> stated = c.list("output_shape");
  const bool same = c.s("auto_pad", "NOTSET").starts_with("SAME");
  if (strides.size() != n || dilations.size() != n || pads.size() != 2 * n || extra.size() != n) return {};
  if (stated && (stated->size() < n || !sensible(*stated, 0))) return {};
  if (!sensible(strides, 1) || !sensible(dilations, 1) || !sensible(pads, 0) || !sensible(extra, 0)) return {};
  Shape out{(*x)[0], (*w)[1] * Dim(c.i("group", 1))};
  for (size_t a = 0; a < n; ++a) {
    if (!(*w)[a + 2].is_constant() || !sensible({(*w)[a + 2].constant()}, 1)) return {};
    const int64_t kernel = ((*w)[a + 2].constant() - 1) * dilations[a] + 1;
    const Dim in = (*x)[a + 2];
    if (stated) out.push_back((*stated)[stated->size() - n + a]);
    else if (same) out.push_back(in * Dim(strides[a]));
    else out.push_back((in - Dim(1)) * Dim(strides[a]) + Dim(extra[a] + kernel - pads[a] - pads[a + n]));
  }
  return one(c.dtype(c.in(0)), out);
}

Types pool(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0);
  const std::optional<Ints> kernel = c.list("kernel_shape");
  if (!x || !kernel) return {};
  std::optional<Shape> spatial = windows(c, *x, *kernel, c.i("ceil_mode", 0) != 0);
  if (!spatial) return {};
  spatial->insert(spatial->begin(), {(*x)[0], (*x)[1]});
  return {Type{c.dtype(c.in(0)), *spatial}, Type{DType::i64, *spatial}};  // the second: MaxPool's indices
}

// --- resampling
// -------------------------------------------------------------------------------------------------------

/// floor(extent * scale) of each axis.
std::optional<Shape> scaled(const Shape& x, const std::vector<float>& scales) {
  if (scales.size() != x.size()) return std::nullopt;
  Shape out;
  for (size_t a = 0; a < x.size(); ++a) {
    if (!(scales[a] > 0 && scales[a] <= static_cast<float>(kMostStep))) return std::nullopt;  // NaN neither
    const auto whole = static_cast<int64_t>(scales[a]);
    if (static_cast<float>(whole) == scales[a]) out.push_back(x[a] * Dim(whole));
    else if (x[a].is_constant() && x[a].constant() <= kMostStep) out.push_back(static_cast<int64_t>(static_cast<float>(x[a].constant()) * scales[a]));
    else return std::nullopt;
  }
  return out;
}

Types resize(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0);
  if (!x || c.given("axes") || c.given("keep_aspect_ratio_policy")) return {};
  const DType dtype = c.dtype(c.in(0));
  const size_t scales = c.opset < 11 ? 1 : 2;
  if (c.has(3)) {
    const std::optional<std::vector<Dim>> sizes = c.dims(3);
    return one(dtype, sizes && sizes->size() == x->size() ? sizes : std::nullopt);
  }
  if (c.has(scales) && c.item(scales).known && c.item(scales).known->elements() == 0) return {};
  const std::optional<std::vector<float>> factors = floats(c, scales);
  return one(dtype, factors ? scaled(*x, *factors) : std::nullopt);
}

Types grid_sample(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0), grid = shape_of(c, 1);
  if (!x || !grid || grid->size() != x->size() || x->size() < 3) return {};
  Shape out{(*x)[0], (*x)[1]};
  out.insert(out.end(), grid->begin() + 1, grid->end() - 1);
  return one(c.dtype(c.in(0)), out);
}

// --- recurrence: Y [steps, directions, batch, hidden], then the last states
// ---------------------------------------------

/// `hidden_axis`: of R.
Types recurrence(Call& c, size_t hidden_axis) {
  const std::optional<Shape> x = shape_of(c, 0), r = shape_of(c, 2);
  if (!x || !r || x->size() != 3 || r->size() != 3) return {};
  const bool batch_first = c.i("layout", 0) != 0;
  const Dim steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1], directions = (*r)[0], hidden = (*r)[hidden_axis];
  const DType dtype = c.dtype(c.in(0));
  const Type all{dtype, batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden}};
  const Type last{dtype, batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden}};
  return {all, last, last};
}
Types recurrent(Call& c) { return recurrence(c, 2); }
Types quantized_lstm(Call& c) { return recurrence(c, 1); }

// --- picking and placing
// ------------------------------------------------------------------------------------------

Types gather(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0), indices = shape_of(c, 1);
  const int64_t axis = c.i("axis", 0), rank = x ? static_cast<int64_t>(x->size()) : 0;
  if (!x || !indices || axis < -rank || axis >= rank) return {};
  const int64_t at = axis < 0 ? axis + rank : axis;
  Shape out(x->begin(), x->begin() + at);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), x->begin() + at + 1, x->end());
  return one(c.dtype(c.in(0)), out);
}

Types gather_elements(Call& c) {
  const std::optional<Shape> indices = shape_of(c, 1);
  return indices ? one(c.dtype(c.in(0)), *indices) : Types{};
}

Types gather_nd(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0), indices = shape_of(c, 1);
  const int64_t batch = c.i("batch_dims", 0);
  if (!x || !indices || indices->empty() || !indices->back().is_constant()) return {};
  if (batch < 0 || batch > static_cast<int64_t>(x->size()) || indices->back().constant() > static_cast<int64_t>(x->size())) return {};
  const int64_t depth = indices->back().constant() + batch;
  if (depth > static_cast<int64_t>(x->size())) return {};
  Shape out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), x->begin() + depth, x->end());
  return one(c.dtype(c.in(0)), out);
}

Types like_first(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0);
  return x ? one(c.dtype(c.in(0)), *x) : Types{};
}

Types top_k(Call& c) {
  const std::optional<Shape> x = shape_of(c, 0);
  const int64_t axis = c.i("axis", -1), rank = x ? static_cast<int64_t>(x->size()) : 0;
  std::optional<std::vector<Dim>> k;
  if (c.has(1)) k = c.dims(1);
  else if (c.given("k")) k = {Dim(c.i("k", 0))};
  if (!x || !k || k->size() != 1 || axis < -rank || axis >= rank) return {};
  Shape out = *x;
  out[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = (*k)[0];
  return {Type{c.dtype(c.in(0)), out}, Type{DType::i64, out}};
}

struct Row {
  std::string_view op;
  Types (*types)(Call&);  // null: no rule
  std::string_view domain = "";
};
const Row kBoundaries[] = {
    // products
    {"MatMul", matmul}, {"Gemm", gemm}, {"MatMulInteger", matmul_integer}, {"QLinearMatMul", qlinear_matmul}, {"Einsum", einsum},
    {"Attention", nullptr}, {"LinearAttention", nullptr}, {"Det", nullptr},
    // windows
    {"Conv", conv}, {"ConvInteger", conv_integer}, {"QLinearConv", qlinear_conv}, {"ConvTranspose", conv_transpose},
    {"CausalConvWithState", nullptr}, {"DeformConv", nullptr}, {"Col2Im", nullptr}, {"MaxPool", pool}, {"AveragePool", pool}, {"LpPool", pool},
    {"MaxUnpool", nullptr}, {"MaxRoiPool", nullptr}, {"RoiAlign", nullptr}, {"LRN", like_first},
    // resampling
    {"Resize", resize}, {"Upsample", resize}, {"GridSample", grid_sample}, {"AffineGrid", nullptr}, {"CenterCropPad", nullptr},
    // recurrence and control flow
    {"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}, {"DynamicQuantizeLSTM", quantized_lstm, "com.microsoft"}, {"If", nullptr}, {"Loop", nullptr}, {"Scan", nullptr},
    // picking, placing, sorting
    {"Gather", gather}, {"GatherElements", gather_elements}, {"GatherND", gather_nd}, {"Scatter", like_first}, {"ScatterElements", like_first},
    {"ScatterND", like_first}, {"TensorScatter", like_first}, {"TopK", top_k}, {"NonZero", nullptr}, {"Compress", nullptr}, {"Unique", nullptr},
    {"NonMaxSuppression", nullptr}, {"ReverseSequence", like_first}, {"CumSum", like_first}, {"CumProd", like_first}, {"RotaryEmbedding", like_first},
    // signals
    {"DFT", nullptr}, {"STFT", nullptr}, {"MelWeightMatrix", nullptr},
    // randomness
    {"RandomNormal", nullptr}, {"RandomNormalLike", nullptr}, {"RandomUniform", nullptr}, {"RandomUniformLike", nullptr}, {"Multinomial", nullptr},
    {"Bernoulli", nullptr},
    // texts, sequences, options, images
    {"StringConcat", nullptr}, {"StringNormalizer", nullptr}, {"StringSplit", nullptr}, {"RegexFullMatch", nullptr}, {"TfIdfVectorizer", nullptr},
    {"SequenceAt", nullptr}, {"SequenceConstruct", nullptr}, {"SequenceEmpty", nullptr}, {"SequenceErase", nullptr}, {"SequenceInsert", nullptr},
    {"SequenceLength", nullptr}, {"SequenceMap", nullptr}, {"SplitToSequence", nullptr}, {"ConcatFromSequence", nullptr}, {"Optional", nullptr},
    {"OptionalGetElement", nullptr}, {"OptionalHasElement", nullptr}, {"ImageDecoder", nullptr},
};

const Row* find(std::string_view op, std::string_view domain) {
  if (domain == "ai.onnx") domain = "";
  const auto* row = std::find_if(std::begin(kBoundaries), std::end(kBoundaries), [&](const Row& r) { return r.op == op && r.domain == domain; });
  return row == std::end(kBoundaries) ? nullptr : row;
}

}  // namespace

bool is_boundary(std::string_view op, std::string_view domain) { return find(op, domain) != nullptr; }

std::vector<std::optional<Type>> boundary_types(Call& c) {
  const Row* row = find(c.node.op, c.node.domain);
  Types out = row && row->types ? row->types(c) : Types{};
  if (c.failed()) out.clear();
  out.resize(c.node.outputs.size());
  return out;
}

}  // namespace fusec::onnx
