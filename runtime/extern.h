#pragma once
// Operators outside fusec's field, so that whole networks can run: matrix products and convolutions through OpenBLAS, which is
// opened at run time (and cuBLASLt on a GPU, extern_cuda.h); pooling, resampling and recurrence around it in plain loops.
//
//   ExternCall call{node, model.operator_set, inputs, outputs};
//   if (Status s = run_extern(call); !s) return s;
//
// It is f32, and sums are taken in the library's order: results are near, not the same bits on every machine. Quantised products
// and convolutions (extern_integer.cpp) are exact up to their last rounding, since sums of small integers are exact in any order.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fusec/result.h"
#include "fusec/type.h"
#include "lib/import/onnx_model.h"

namespace fusec {

/// A dense value in the host's memory (or a device's, where that is said), owned by the caller.
struct ExternValue {
  DType dtype = DType::f32;
  std::vector<int64_t> extents;
  void* data = nullptr;
  bool weight = false;  // the same numbers in every call of its step

  int64_t elements() const;
  int64_t elements(size_t from, size_t to) const;  // of the axes [from, to)
  size_t rank() const { return extents.size(); }
  float* f32() const { return static_cast<float*>(data); }
};

/// What an operator keeps of its weights from call to call, in the form that it computes with: by operand, of a type that its
/// function knows.
using ExternKept = std::map<size_t, std::shared_ptr<const void>>;

/// One node with its operands at hand. Outputs have the extents that the model's shape rules gave them.
struct ExternCall {
  const onnx::NodeMessage& node;
  int64_t operator_set;
  std::vector<std::optional<ExternValue>> inputs, outputs;  // none: left out
  ExternKept* kept = nullptr;                               // null: nothing is kept

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const ExternValue& in(size_t i) const { return *inputs[i]; }
  const ExternValue& out() const { return *outputs[0]; }
  /// What `make` makes of operand i, kept when that and those it is made with are weights. `make` returns a Result.
  template <class Make>
  auto prepared(size_t i, std::initializer_list<size_t> with, const Make& make) const
      -> Result<std::shared_ptr<const typename std::remove_cvref_t<decltype(*make())>>> {
    using T = typename std::remove_cvref_t<decltype(*make())>;
    bool same = kept && in(i).weight;
    for (size_t k : with) same &= !has(k) || in(k).weight;
    if (same)
      if (const auto found = kept->find(i); found != kept->end()) return std::static_pointer_cast<const T>(found->second);
    auto made = make();
    if (!made) return made.error();
    auto out = std::make_shared<const T>(std::move(*made));
    if (same) kept->emplace(i, out);
    return out;
  }
  const onnx::Attribute* attribute(std::string_view name) const;
  int64_t i(std::string_view name, int64_t absent) const;
  float f(std::string_view name, float absent) const;
  std::string_view s(std::string_view name, std::string_view absent) const;
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> absent) const;
};

using ExternFunction = Status (*)(const ExternCall&);

struct ExternOp {
  std::string_view op;
  std::string_view attributes;  // that the function knows, separated by spaces
  size_t min_inputs;
  size_t integers;  // the operand that is sizes or lengths, not f32; kAnyType: the function looks at the types itself
  ExternFunction run;
  std::string_view domain = "";  // "" = ONNX's own
  static constexpr size_t kAnyType = ~size_t{1};
};
/// The row of an operator; null when there is none.
const ExternOp* find_extern(std::string_view op, std::string_view domain);

/// The row of a call's operator, when its attributes and types are such as the row takes.
/// Errors   input: no such operator, an attribute or a type that it does not take, a missing operand.
Result<const ExternOp*> checked_extern(const ExternCall& call);

/// Computes the outputs.
/// Errors   those of checked_extern; input: a form that the operator's function does not take; environment: no OpenBLAS.
Status run_extern(const ExternCall& call);

// One function an operator.
Status extern_matmul(const ExternCall& call);  // extern_product.cpp
Status extern_gemm(const ExternCall& call);
Status extern_conv(const ExternCall& call);  // extern_conv.cpp
Status extern_conv_transpose(const ExternCall& call);
Status extern_max_pool(const ExternCall& call);  // extern_pool.cpp
Status extern_average_pool(const ExternCall& call);
Status extern_resize(const ExternCall& call);  // extern_resize.cpp
Status extern_gather(const ExternCall& call);  // extern_gather.cpp
Status extern_lstm(const ExternCall& call);    // extern_recurrent.cpp
Status extern_gru(const ExternCall& call);
Status extern_quantized_lstm(const ExternCall& call);
Status extern_matmul_integer(const ExternCall& call);  // extern_integer.cpp
Status extern_qlinear_matmul(const ExternCall& call);
Status extern_conv_integer(const ExternCall& call);
Status extern_qlinear_conv(const ExternCall& call);

/// A window operator's geometry, one entry a spatial axis.
struct Window {
  std::vector<int64_t> in, out, kernel, stride, dilation, low;  // low: padding in front
  int64_t positions() const;                                    // of the output
  int64_t taps() const;                                         // of the kernel
};
/// `kernel`: of the weights or of kernel_shape. Of ConvTranspose, `in` is the larger side: what its result has.
Result<Window> window_of(const ExternCall& call, const std::vector<int64_t>& in, const std::vector<int64_t>& out,
                         const std::vector<int64_t>& kernel);

/// An operand or result that has not that many elements is an input error; one that is left out is not.
Status expects(const std::vector<std::optional<ExternValue>>& values, size_t index, int64_t elements);

/// Work items side by side, where this build has threads. `work`: about how many operations one is.
void extern_parallel(int64_t items, int64_t work, const std::function<void(int64_t begin, int64_t end)>& body);
/// The same of work that can fail: the first error.
Status extern_each(int64_t items, int64_t work, const std::function<Status(int64_t begin, int64_t end)>& body);

/// C[m,n] = alpha * A[m,k] * B[k,n] + beta * C, row-major; `lda` … are elements from row to row as stored.
struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
};
/// Shared out to this program's own threads where it is large enough, with OpenBLAS's own set to one: two teams would wait for
/// each other, and on a busy machine for long.
/// Errors   environment: no OpenBLAS (libopenblas.so.0, or the library that FUSEC_BLAS names).
Status product(const Product& p, const float* a, const float* b, float* c);  // extern_blas.cpp
/// Is there a library?
Status product_library();

/// Adds a product of integers of at most 9 bits, held in f32, to C: every bit is right, whatever the library's order.
Status exact_product(const Product& p, const float* a, const float* b, int32_t* c);  // extern_integer.cpp

/// The products that a MatMul of a and b into y is, one a batch; the offsets are in elements. `multiply` is called side by side.
Status each_product(ExternValue a, ExternValue b, const ExternValue& y,
                    const std::function<Status(const Product&, int64_t a, int64_t b, int64_t y)>& multiply);  // extern_product.cpp

/// A convolution's geometry.
struct Convolution {
  Window window;
  int64_t batch, group, channels, filters;  // of a group
  int64_t taps, positions, x_size;          // x_size: elements of one channel of x
};
/// Errors   input: x, w and y do not fit each other.
Result<Convolution> convolution_of(const ExternCall& call, const ExternValue& x, const ExternValue& w, const ExternValue& y);
/// Windows laid out as columns, products of parts of them; `multiply` adds one to what is from that element of the result on. It
/// is called side by side.
Status by_columns(const Convolution& c, const float* x, const float* w,
                  const std::function<Status(const Product&, const float* a, const float* b, int64_t y)>& multiply);
/// One channel a group, and so few filters of it that products would have hardly any rows?
bool is_depthwise(const Convolution& c);
/// Of such: adds what the taps give to y.
void depthwise(const Convolution& c, const float* x, const float* w, float* y);

}  // namespace fusec
