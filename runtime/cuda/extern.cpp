// MatMul and Gemm through cuBLASLt, Conv through cuDNN. Only their types come from headers; every function is looked up at run time,
// so a build or a machine without them does the work on the host.

#include <algorithm>
#include <string>
#include <unordered_map>

#include "codegen/cuda/toolkit.h"
#include "runtime/cuda/driver.h"
#include "runtime/extern_device.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define FUSEC_HAS_CUBLASLT 1
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define FUSEC_HAS_CUDNN 1
#endif

namespace fusec {
namespace {

using cuda::Current;
using cuda::Gpu;

/// Device memory that grows.
struct Scratch {
  const Gpu* gpu;
  CUdeviceptr data = 0;
  size_t bytes = 0;

  explicit Scratch(const Gpu* on) : gpu(on) {}
  ~Scratch() {
    if (data) gpu->driver->cuMemFree_(data);
  }
  Status reserve(size_t wanted) {
    if (wanted <= bytes) return Done{};
    if (data) gpu->driver->cuMemFree_(data);  // waits for what uses it
    data = 0, bytes = 0;
    if (Status s = cuda::check(*gpu->driver, gpu->driver->cuMemAlloc_(&data, wanted), "cuMemAlloc"); !s) return s;
    bytes = wanted;
    return Done{};
  }
  void* at() const { return reinterpret_cast<void*>(data); }
};

// A field for each entry of a library, and whether it was found.
#define FUSEC_FIELD(name) decltype(&::name) name##_ = nullptr;
#define FUSEC_FOUND(name) && cuda::find(library, #name, out->name##_)

#if FUSEC_HAS_CUBLASLT
#define FUSEC_LT_ENTRIES(X)                                                                                        \
  X(cublasLtCreate)                                                                                                \
  X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy)                    \
      X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)               \
          X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
              X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic)

/// cuBLASLt with a handle of its own.
struct Products {
  FUSEC_LT_ENTRIES(FUSEC_FIELD)
  cublasLtHandle_t handle = nullptr;
  Scratch scratch;
  // Asked for once a node: a program's sizes stay.
  std::unordered_map<const onnx::NodeMessage*, cublasLtMatmulHeuristicResult_t> ways;

  explicit Products(const Gpu* gpu) : scratch(gpu) {}
  ~Products() {
    if (handle) cublasLtDestroy_(handle);
  }

  static std::unique_ptr<Products> open(const Gpu* gpu) {
    void* library = cuda::open_toolkit_library({"libcublasLt.so.13", "libcublasLt.so.12"});
    if (!library) return nullptr;
    auto out = std::make_unique<Products>(gpu);
    if (!(true FUSEC_LT_ENTRIES(FUSEC_FOUND))) return nullptr;
    if (out->cublasLtCreate_(&out->handle) != CUBLAS_STATUS_SUCCESS || !out->scratch.reserve(size_t{32} << 20))
      return nullptr;
    return out;
  }

  static Status check(cublasStatus_t status, const char* call) {
    return status == CUBLAS_STATUS_SUCCESS
               ? Status(Done{})
               : Status(environment_error(std::string(call) + ": cuBLAS status " + std::to_string(int(status))));
  }

  /// Batches of p, `stride` elements apart; `bias` (may be null) has n elements. The library has columns behind each other where we have
  /// rows, so it is asked for the transposed result, from the operands in the other order.
  struct Batch {
    int64_t count = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  };
  Status run(const onnx::NodeMessage* node, const Product& p, const Batch& batch, const float* a, const float* b,
             const float* bias, float* c) {
    struct Call {
      const Products* of;
      cublasLtMatmulDesc_t desc = nullptr;
      cublasLtMatrixLayout_t left = nullptr, right = nullptr, result = nullptr;
      cublasLtMatmulPreference_t preference = nullptr;
      ~Call() {
        if (preference) of->cublasLtMatmulPreferenceDestroy_(preference);
        for (cublasLtMatrixLayout_t layout : {left, right, result})
          if (layout) of->cublasLtMatrixLayoutDestroy_(layout);
        if (desc) of->cublasLtMatmulDescDestroy_(desc);
      }
    } call{this};
    Status fault = Done{};
    const auto step = [&](cublasStatus_t status, const char* what) {
      if (fault) fault = check(status, what);
    };
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      if (fault)
        step(cublasLtMatmulDescSetAttribute_(call.desc, attribute, &value, sizeof(value)),
             "cublasLtMatmulDescSetAttribute");
    };
    const auto layout = [&](cublasLtMatrixLayout_t& to, int64_t rows, int64_t columns, int64_t leading,
                            int64_t stride) {
      if (!fault) return;
      step(cublasLtMatrixLayoutCreate_(&to, CUDA_R_32F, uint64_t(rows), uint64_t(columns), leading),
           "cublasLtMatrixLayoutCreate");
      const int32_t count = int32_t(batch.count);
      if (!fault || batch.count == 1) return;
      step(cublasLtMatrixLayoutSetAttribute_(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
           "cublasLtMatrixLayoutSetAttribute");
      step(cublasLtMatrixLayoutSetAttribute_(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
           "cublasLtMatrixLayoutSetAttribute");
    };
    step(cublasLtMatmulDescCreate_(&call.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, op_b);
    set(CUBLASLT_MATMUL_DESC_TRANSB, op_a);
    if (bias) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    layout(call.left, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.ldb, batch.stride_b);
    layout(call.right, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.lda, batch.stride_a);
    layout(call.result, p.n, p.m, p.ldc, batch.stride_c);
    if (fault) step(cublasLtMatmulPreferenceCreate_(&call.preference), "cublasLtMatmulPreferenceCreate");
    if (fault)
      step(cublasLtMatmulPreferenceSetAttribute_(call.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &scratch.bytes, sizeof(scratch.bytes)),
           "cublasLtMatmulPreferenceSetAttribute");
    const auto [way, fresh] = ways.try_emplace(node);
    cublasLtMatmulHeuristicResult_t& best = way->second;
    int found = fresh ? 0 : 1;
    if (fault && fresh)
      step(cublasLtMatmulAlgoGetHeuristic_(handle, call.desc, call.left, call.right, call.result, call.result,
                                           call.preference, 1, &best, &found),
           "cublasLtMatmulAlgoGetHeuristic");
    if (fault && found == 0) fault = environment_error("cuBLASLt has no way to do this product");
    if (!fault) {
      ways.erase(way);
      return fault;
    }
    return check(cublasLtMatmul_(handle, call.desc, &p.alpha, b, call.left, a, call.right, &p.beta, c, call.result, c,
                                 call.result, &best.algo, scratch.at(), scratch.bytes, nullptr),
                 "cublasLtMatmul");
  }
};
#else
struct Products {
  static std::unique_ptr<Products> open(const Gpu*) { return nullptr; }
};
#endif

#if FUSEC_HAS_CUDNN
#define FUSEC_DNN_ENTRIES(X)                                                                                     \
  X(cudnnCreate)                                                                                                 \
  X(cudnnDestroy) X(cudnnGetErrorString) X(cudnnCreateTensorDescriptor) X(cudnnDestroyTensorDescriptor)          \
      X(cudnnSetTensor4dDescriptor) X(cudnnCreateFilterDescriptor) X(cudnnDestroyFilterDescriptor)               \
          X(cudnnSetFilter4dDescriptor) X(cudnnCreateConvolutionDescriptor) X(cudnnDestroyConvolutionDescriptor) \
              X(cudnnSetConvolution2dDescriptor) X(cudnnSetConvolutionGroupCount) X(cudnnSetConvolutionMathType) \
                  X(cudnnGetConvolutionForwardAlgorithm_v7) X(cudnnConvolutionForward) X(cudnnAddTensor)

/// cuDNN with a handle of its own.
struct Convolutions {
  FUSEC_DNN_ENTRIES(FUSEC_FIELD)
  cudnnHandle_t handle = nullptr;
  Scratch scratch;
  // Asked for once a node.
  std::unordered_map<const onnx::NodeMessage*, cudnnConvolutionFwdAlgoPerf_t> ways;

  explicit Convolutions(const Gpu* gpu) : scratch(gpu) {}
  ~Convolutions() {
    if (handle) cudnnDestroy_(handle);
  }

  static std::unique_ptr<Convolutions> open(const Gpu* gpu) {
    void* library = cuda::open_toolkit_library({"libcudnn.so.9"});
    if (!library) return nullptr;
    auto out = std::make_unique<Convolutions>(gpu);
    if (!(true FUSEC_DNN_ENTRIES(FUSEC_FOUND))) return nullptr;
    if (out->cudnnCreate_(&out->handle) != CUDNN_STATUS_SUCCESS) return nullptr;
    return out;
  }

  /// x, w and y have four axes; the padding is the same on both sides.
  Status run(const onnx::NodeMessage* node, const Window& w, int64_t groups, const ExternValue& x, const ExternValue& f,
             const float* bias, const ExternValue& y) {
    struct Call {
      const Convolutions* of;
      cudnnTensorDescriptor_t x = nullptr, y = nullptr, bias = nullptr;
      cudnnFilterDescriptor_t f = nullptr;
      cudnnConvolutionDescriptor_t conv = nullptr;
      ~Call() {
        for (cudnnTensorDescriptor_t d : {x, y, bias})
          if (d) of->cudnnDestroyTensorDescriptor_(d);
        if (f) of->cudnnDestroyFilterDescriptor_(f);
        if (conv) of->cudnnDestroyConvolutionDescriptor_(conv);
      }
    } call{this};
    Status fault = Done{};
    const auto step = [&](const char* what, const auto& function, auto... arguments) {
      if (!fault) return;
      if (const cudnnStatus_t status = function(arguments...); status != CUDNN_STATUS_SUCCESS)
        fault = environment_error(std::string(what) + ": " + cudnnGetErrorString_(status));
    };
    const auto tensor = [&](cudnnTensorDescriptor_t& d, int n, int c, int h, int wide) {
      step("cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor_, &d);
      step("cudnnSetTensor4dDescriptor", cudnnSetTensor4dDescriptor_, d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h,
           wide);
    };
    const auto e = [](const ExternValue& v, size_t a) { return int(v.extents[a]); };
    tensor(call.x, e(x, 0), e(x, 1), e(x, 2), e(x, 3));
    tensor(call.y, e(y, 0), e(y, 1), e(y, 2), e(y, 3));
    step("cudnnCreateFilterDescriptor", cudnnCreateFilterDescriptor_, &call.f);
    step("cudnnSetFilter4dDescriptor", cudnnSetFilter4dDescriptor_, call.f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
         e(f, 0), e(f, 1), e(f, 2), e(f, 3));
    step("cudnnCreateConvolutionDescriptor", cudnnCreateConvolutionDescriptor_, &call.conv);
    step("cudnnSetConvolution2dDescriptor", cudnnSetConvolution2dDescriptor_, call.conv, int(w.low[0]), int(w.low[1]),
         int(w.stride[0]), int(w.stride[1]), int(w.dilation[0]), int(w.dilation[1]), CUDNN_CROSS_CORRELATION,
         CUDNN_DATA_FLOAT);
    step("cudnnSetConvolutionGroupCount", cudnnSetConvolutionGroupCount_, call.conv, int(groups));
    step("cudnnSetConvolutionMathType", cudnnSetConvolutionMathType_, call.conv, CUDNN_FMA_MATH);
    auto way = ways.find(node);
    if (way == ways.end()) {
      cudnnConvolutionFwdAlgoPerf_t offered[8];
      int found = 0;
      step("cudnnGetConvolutionForwardAlgorithm_v7", cudnnGetConvolutionForwardAlgorithm_v7_, handle, call.x, call.f,
           call.conv, call.y, 8, &found, offered);
      const auto* good = std::find_if(offered, offered + found, [](const auto& w) {
        return w.status == CUDNN_STATUS_SUCCESS && w.memory <= size_t{1} << 30;
      });
      if (fault && good == offered + found) fault = environment_error("cuDNN has no way to do this convolution");
      if (!fault) return fault;
      way = ways.emplace(node, *good).first;
    }
    if (!fault) return fault;
    if (Status s = scratch.reserve(way->second.memory); !s) return s;
    const float one = 1, zero = 0;
    step("cudnnConvolutionForward", cudnnConvolutionForward_, handle, &one, call.x, x.data, call.f, f.data, call.conv,
         way->second.algo, scratch.at(), scratch.bytes, &zero, call.y, y.data);
    if (bias) {
      tensor(call.bias, 1, e(y, 1), 1, 1);
      step("cudnnAddTensor", cudnnAddTensor_, handle, &one, call.bias, bias, &one, call.y, y.data);
    }
    return fault;
  }
};
#else
struct Convolutions {
  static std::unique_ptr<Convolutions> open(const Gpu*) { return nullptr; }
};
#endif

/// A convolution over one axis as one over two, of which the first has extent 1.
ExternValue four_axes(ExternValue v) {
  if (v.rank() == 3) v.extents.insert(v.extents.begin() + 2, 1);
  return v;
}

class CudaOps final : public DeviceOps {
 public:
  explicit CudaOps(const Gpu& gpu)
      : gpu_(gpu), products_(Products::open(&gpu)), convolutions_(Convolutions::open(&gpu)) {}
  ~CudaOps() override {
    Current current(gpu_);
    products_.reset(), convolutions_.reset();
  }

  bool takes(const ExternCall& call) const override {
    if (std::any_of(call.outputs.begin(), call.outputs.end(), [](const auto& y) { return y && y->elements() == 0; }))
      return false;
    if (call.node.op == "MatMul") return products_ && (rows_only(call) || same_batches(call));
    if (call.node.op == "Gemm")
      return products_ && call.in(0).rank() == 2 && call.in(1).rank() == 2 && plain_bias(call);
    if (call.node.op != "Conv" || !convolutions_ || call.in(0).rank() < 3 || call.in(0).rank() > 4 ||
        call.in(1).rank() != call.in(0).rank())
      return false;
    const std::vector<int64_t> pads = call.ints("pads", {});
    for (size_t a = 0; a < pads.size() / 2; ++a)
      if (pads[a] != pads[a + pads.size() / 2]) return false;
    return call.s("auto_pad", "NOTSET") == "NOTSET" || call.s("auto_pad", "NOTSET") == "VALID";
  }

  Status run(const ExternCall& call) override {
    Current current(gpu_);
    if (Status s = current.status(); !s) return s;
    return call.node.op == "Conv" ? convolve(call) : multiply(call);
  }

 private:
  static bool rows_only(const ExternCall& call) { return call.in(0).rank() >= 1 && call.in(1).rank() == 2; }
  static bool same_batches(const ExternCall& call) {
    const ExternValue &a = call.in(0), &b = call.in(1);
    return a.rank() == b.rank() && a.rank() > 2 &&
           std::equal(a.extents.begin(), a.extents.end() - 2, b.extents.begin());
  }
  /// None, or one element a column, as it is.
  static bool plain_bias(const ExternCall& call) {
    if (!call.has(2)) return true;
    const ExternValue& c = call.in(2);
    const int64_t n = call.in(1).extents[call.i("transB", 0) ? 0 : 1];
    return call.f("beta", 1) == 1 && c.rank() >= 1 && c.rank() <= 2 && c.elements() == n && c.extents.back() == n;
  }

  Status multiply([[maybe_unused]] const ExternCall& call) {
#if FUSEC_HAS_CUBLASLT
    const ExternValue &a = call.in(0), &b = call.in(1);
    Product p;
    Products::Batch batch;
    if (call.node.op == "Gemm") {
      p.transpose_a = call.i("transA", 0) != 0, p.transpose_b = call.i("transB", 0) != 0, p.alpha = call.f("alpha", 1);
      p.m = a.extents[p.transpose_a ? 1 : 0], p.k = a.extents[p.transpose_a ? 0 : 1],
      p.n = b.extents[p.transpose_b ? 0 : 1];
      p.lda = a.extents[1], p.ldb = b.extents[1];
    } else {
      p.k = a.extents.back(), p.n = b.extents.back(), p.lda = p.k, p.ldb = p.n;
      p.m = b.rank() == 2 ? a.elements() / std::max<int64_t>(p.k, 1) : a.extents[a.rank() - 2];
      if (b.rank() > 2) batch = {b.elements(0, b.rank() - 2), p.m * p.k, p.k * p.n, p.m * p.n};
    }
    p.ldc = p.n;
    if (b.extents[b.rank() - (p.transpose_b ? 1 : 2)] != p.k)
      return input_error("rows and columns of different lengths");
    if (Status s = expects(call.outputs, 0, batch.count * p.m * p.n); !s) return s;
    return products_->run(&call.node, p, batch, a.f32(), b.f32(),
                          call.node.op == "Gemm" && call.has(2) ? call.in(2).f32() : nullptr, call.out().f32());
#else
    return internal_error("no cuBLASLt in this build");
#endif
  }

  Status convolve([[maybe_unused]] const ExternCall& call) {
#if FUSEC_HAS_CUDNN
    const ExternValue x = four_axes(call.in(0)), f = four_axes(call.in(1)), y = four_axes(call.out());
    Result<Window> w = window_of(call, {call.in(0).extents.begin() + 2, call.in(0).extents.end()},
                                 {call.out().extents.begin() + 2, call.out().extents.end()},
                                 {call.in(1).extents.begin() + 2, call.in(1).extents.end()});
    if (!w) return w.error();
    if (w->kernel.size() == 1)
      for (auto& [values, one] : {std::pair(&w->stride, 1), std::pair(&w->dilation, 1), std::pair(&w->low, 0)})
        values->insert(values->begin(), one);
    if (Status s = expects(call.inputs, 2, y.extents[1]); !s) return s;
    return convolutions_->run(&call.node, *w, call.i("group", 1), x, f, call.has(2) ? call.in(2).f32() : nullptr, y);
#else
    return internal_error("no cuDNN in this build");
#endif
  }

  const Gpu& gpu_;
  std::unique_ptr<Products> products_;
  std::unique_ptr<Convolutions> convolutions_;
};

}  // namespace

Result<std::shared_ptr<DeviceOps>> cuda_extern(int index) {
  Result<const Gpu*> gpu = cuda::gpu(index);
  if (!gpu) return gpu.error();
  Current current(**gpu);
  if (Status s = current.status(); !s) return s.error();
  return std::shared_ptr<DeviceOps>(std::make_shared<CudaOps>(**gpu));
}

}  // namespace fusec
