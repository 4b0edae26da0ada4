// A row's result does not depend on how many rows come with it: all that decides who adds what is the same for every batch size, so a
// new batch size compiles nothing either. (What the CPU computes for batches of many sizes: test/runtime/batch_rows_test.cpp.)

#include "test/codegen/cuda_kernels.h"

namespace fusec {
namespace {

struct Case {
  const char* name;
  const char* text;  // the batch is N, the row C
};
const Case kRows[] = {
    {"softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }"},
    {"softmax_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }"},
    {"layer_norm", R"(graph @g(%x: f32[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })"},
    {"logsumexp", "graph @g(%x: bf16[N,C]) -> f32[N] { %c = cast %x {to=f32}\n %y = logsumexp %c {axes=[1]}\n return %y }"},
    {"row_sum", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }"},
    {"row_argmax", "graph @g(%x: i8[N,C]) -> i64[N] { %y = argmax %x {axes=[1]}\n return %y }"},
    {"row_scan", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1}\n return %y }"},
    {"column_scan", "graph @g(%x: bf16[N,C,24]) -> bf16[N,C,24] { %y = cumsum %x {axis=1}\n return %y }"},
    {"column_sums", "graph @g(%x: f32[N,C,24]) -> f32[N,24] { %y = sum %x {axes=[1]}\n return %y }"},
    {"column_sums_wide", "graph @g(%x: f16[N,C,4096]) -> f16[N,4096] { %y = mean %x {axes=[1]}\n return %y }"},
    {"plane_norm", R"(graph @g(%x: f32[N,C,49], %m: f32[1,1,1]) -> f32[N,C,49] {
       %a = mean %x {axes=[1,2], keep=true}
       %d = sub %x, %a
       return %d })"},
};
const int64_t kColumns[] = {2, 7, 32, 49, 64, 1000, 1024, 1025, 4096, 8192, 20000, 65536, 100003, 262144};
const int64_t kBatches[] = {1, 2, 3, 8, 31, 132, 1000, 4096, 40000};

/// What decides the order of additions. Widths of an index and of a fetch follow the call; where the vector axis is kept, a lane has
/// whole columns, and only how many lanes share one matters.
std::string order(const Kernel& kernel, Schedule s) {
  s.wide_index = false, s.access.clear();
  if (!kernel.axes[s.vector_axis].reduced) {
    s.threads /= s.lanes_per_row;
    s.lanes_per_row = s.rows_in_flight = s.min_blocks = 1;
    s.edges = Edges::full;
    s.lane[s.vector_axis] = 0;
  }
  return print(s);
}

TEST(Batch, CudaSchedulesDoNotDependOnIt) {
  for (const Case& c : kRows) {
    const Kernel kernel = kernel_of(c.text);
    for (int64_t columns : kColumns) {
      std::string first;
      int64_t parts = 0;
      for (int64_t batch : kBatches) {
        if (batch * columns > int64_t{1} << 29) continue;
        const Facts f = facts(kernel, dense_binding(kernel, {{"N", batch}, {"C", columns}}));
        const Schedule s = cuda::schedule(kernel, f, cuda::device(90));
        const Launch l = cuda::launch(kernel, s, f, cuda::device(90));
        if (first.empty()) first = order(kernel, s), parts = l.splits;
        EXPECT_EQ(order(kernel, s), first) << c.name << " of " << columns << " at " << batch << " rows";
        EXPECT_EQ(int64_t(l.splits), parts) << c.name << " of " << columns << " at " << batch << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace fusec
