#pragma once
// The right kernels of kernels/: how each is launched, and how far its result is from the same thing in double.

#include <cstring>

#include "test/simt/fixture.h"

namespace fusec::simt {

struct Outcome {
  Result result;
  double error = 0;  // largest, absolute; 0 when the run was cut short
};

struct Case {
  const char* kernel;
  Outcome (*run)(const Kernel&, Launch);
  double tolerance;
};

inline Outcome run_layer_norm(const Kernel& kernel, Launch how) {
  constexpr uint32_t kRows = 6, kColumns = 1024;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"), *w = memory.allocate<float>(kColumns, "w"),
        *b = memory.allocate<float>(kColumns, "b"), *y = memory.allocate<float>(kRows * kColumns, "y", true);
  for (uint32_t i = 0; i < kRows * kColumns; i++) x[i] = sample(i);
  for (uint32_t i = 0; i < kColumns; i++) w[i] = 1 + sample(i), b[i] = sample(i + 7);
  struct {
    const float *x, *w, *b;
    float* y;
    uint32_t rows;
    float eps;
  } args = {x, w, b, y, kRows, 1e-5f};
  how.grid = {4};
  how.block = {256};
  Outcome out{kernel.launch("g0", memory, how, args)};
  if (!out.result.ok()) return out;
  for (uint32_t r = 0; r < kRows; r++) {
    double mean = 0, var = 0;
    for (uint32_t i = 0; i < kColumns; i++) mean += x[r * kColumns + i] / double{kColumns};
    for (uint32_t i = 0; i < kColumns; i++)
      var += (x[r * kColumns + i] - mean) * (x[r * kColumns + i] - mean) / kColumns;
    for (uint32_t i = 0; i < kColumns; i++) {
      double want = (x[r * kColumns + i] - mean) / std::sqrt(var + 1e-5) * w[i] + b[i];
      double off = std::fabs(y[r * kColumns + i] - want);
      if (!(off <= out.error)) out.error = off;
    }
  }
  return out;
}

inline float of_bf16(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline uint16_t to_bf16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline Outcome run_softmax(const Kernel& kernel, Launch how) {
  constexpr int kRows = 10, kColumns = 77;
  Memory memory;
  auto* x = memory.allocate<uint16_t>(kRows * kColumns, "x");
  auto* y = memory.allocate<uint16_t>(kRows * kColumns, "y", true);
  for (int i = 0; i < kRows * kColumns; i++) x[i] = to_bf16(sample(static_cast<uint32_t>(i)) * 8);
  struct {
    const uint16_t* x;
    uint16_t* y;
    int rows, columns;
  } args = {x, y, kRows, kColumns};
  how.grid = {(kRows + 3) / 4};
  how.block = {128};
  Outcome out{kernel.launch("g0", memory, how, args)};
  if (!out.result.ok()) return out;
  for (int r = 0; r < kRows; r++) {
    double sum = 0;
    for (int i = 0; i < kColumns; i++) sum += std::exp(of_bf16(x[r * kColumns + i]));
    for (int i = 0; i < kColumns; i++) {
      double off = std::fabs(of_bf16(y[r * kColumns + i]) - std::exp(of_bf16(x[r * kColumns + i])) / sum);
      if (!(off <= out.error)) out.error = off;
    }
  }
  return out;
}

inline Outcome run_column_sum(const Kernel& kernel, Launch how) {
  constexpr int kRows = 100, kColumns = 70, kSplit = 3;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"),
        *part = memory.allocate<float>(kSplit * kColumns, "part", true),
        *sums = memory.allocate<float>(kColumns, "out", true);
  auto* ticket = memory.allocate<unsigned>(3, "ticket");
  std::memset(ticket, 0, 12);
  for (int i = 0; i < kRows * kColumns; i++) x[i] = sample(static_cast<uint32_t>(i));
  struct {
    const float* x;
    float *part, *out;
    unsigned* ticket;
    int rows, columns;
  } args = {x, part, sums, ticket, kRows, kColumns};
  how.grid = {3, kSplit};
  how.block = {256};
  Outcome out{kernel.launch("g0", memory, how, args)};
  if (!out.result.ok()) return out;
  for (int c = 0; c < kColumns; c++) {
    double want = 0;
    for (int r = 0; r < kRows; r++) want += x[r * kColumns + c];
    double off = std::fabs(sums[c] - want);
    if (!(off <= out.error)) out.error = off;
  }
  for (int i = 0; i < 3; i++)
    if (ticket[i]) out.error = 1;  // the last block resets them
  return out;
}

inline Outcome run_row_sums(const Kernel& kernel, Launch how, uint32_t rows, uint32_t columns, const void* args,
                            size_t bytes, Memory& memory, const float* x, const float* sums) {
  Outcome out{kernel.launch("g0", memory, how, args, bytes)};
  if (!out.result.ok()) return out;
  for (uint32_t r = 0; r < rows; r++) {
    double want = 0;
    for (uint32_t i = 0; i < columns; i++) want += x[r * columns + i];
    double off = std::fabs(sums[r] - want);
    if (!(off <= out.error)) out.error = off;
  }
  return out;
}

inline Outcome run_cluster_sum(const Kernel& kernel, Launch how) {
  constexpr uint32_t kRows = 3, kColumns = 1500;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"), *sums = memory.allocate<float>(kRows, "out", true);
  for (uint32_t i = 0; i < kRows * kColumns; i++) x[i] = sample(i);
  struct {
    const float* x;
    float* out;
    int columns;
  } args = {x, sums, kColumns};
  how.grid = {kRows * 4};
  how.block = {128};
  how.cluster = 4;
  how.dynamic_bytes = 512;
  return run_row_sums(kernel, how, kRows, kColumns, &args, sizeof args, memory, x, sums);
}

inline Outcome run_ring(const Kernel& kernel, Launch how) {
  constexpr uint32_t kRows = 5, kPieces = 4, kColumns = 2 * kPieces * 512;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"), *sums = memory.allocate<float>(kRows, "out", true);
  for (uint32_t i = 0; i < kRows * kColumns; i++) x[i] = sample(i);
  struct {
    const float* x;
    float* out;
    int pieces, rows;
  } args = {x, sums, kPieces, kRows};
  how.grid = {4};
  how.block = {160};
  how.cluster = 2;
  how.dynamic_bytes = 3 * 512 * 4;
  return run_row_sums(kernel, how, kRows, kColumns, &args, sizeof args, memory, x, sums);
}

inline Outcome run_ring_cluster(const Kernel& kernel, Launch how) {
  constexpr uint32_t kRows = 9, kPeers = 4, kColumns = kPeers * 2 * 256;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"), *y = memory.allocate<float>(kRows * kColumns, "y", true);
  auto* counter = memory.allocate<uint32_t>(1, "counter");
  *counter = 0;
  for (uint32_t i = 0; i < kRows * kColumns; i++) x[i] = sample(i);
  struct {
    const float* x;
    float* y;
    uint32_t* counter;
    int rows;
  } args = {x, y, counter, kRows};
  how.grid = {2 * kPeers};
  how.block = {160};
  how.cluster = kPeers;
  how.dynamic_bytes = 5 * 256 * 4;
  how.resident = 2;
  Outcome out{kernel.launch("g0", memory, how, args)};
  if (!out.result.ok()) return out;
  for (uint32_t r = 0; r < kRows; r++) {
    double mean = 0;
    for (uint32_t i = 0; i < kColumns; i++) mean += x[r * kColumns + i] / double{kColumns};
    for (uint32_t i = 0; i < kColumns; i++) {
      double off = std::fabs(y[r * kColumns + i] - (x[r * kColumns + i] - mean));
      if (!(off <= out.error)) out.error = off;
    }
  }
  return out;
}

inline Outcome run_transpose(const Kernel& kernel, Launch how) {
  constexpr int kRows = 70, kColumns = 45;
  Memory memory;
  float *x = memory.allocate<float>(kRows * kColumns, "x"), *y = memory.allocate<float>(kRows * kColumns, "y", true);
  for (int i = 0; i < kRows * kColumns; i++) x[i] = sample(static_cast<uint32_t>(i));
  struct {
    const float* x;
    float* y;
    int rows, columns;
  } args = {x, y, kRows, kColumns};
  how.grid = {(kColumns + 31) / 32, (kRows + 31) / 32};
  how.block = {32, 8};
  Outcome out{kernel.launch("g0", memory, how, args)};
  if (!out.result.ok()) return out;
  for (int r = 0; r < kRows; r++)
    for (int c = 0; c < kColumns; c++)
      if (y[c * kRows + r] != x[r * kColumns + c]) out.error = 1;
  return out;
}

constexpr Case kLayerNorm{"layer_norm", run_layer_norm, 1e-5};
constexpr Case kSoftmax{"softmax", run_softmax, 1e-3};
constexpr Case kColumnSum{"column_sum", run_column_sum, 1e-4};
constexpr Case kClusterSum{"cluster_sum", run_cluster_sum, 1e-3};
constexpr Case kTranspose{"transpose", run_transpose, 1e-30};
constexpr Case kRing{"ring", run_ring, 1e-3};
constexpr Case kRingCluster{"ring_cluster", run_ring_cluster, 1e-5};

}  // namespace fusec::simt
