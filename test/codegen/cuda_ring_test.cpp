// How rows fall into the slots of a ring, for every length and type: all elements have a place, everything fits, and calls that differ in
// alignment or strides only are cut up alike.

#include "codegen/cuda/ring.h"
#include "test/codegen/cuda_kernels.h"

namespace fusec {
namespace {

struct Case {
  const char* name;
  const char* text;
};
const Case kRows[] = {
    {"softmax_f32", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }"},
    {"softmax_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }"},
    {"softmax_f64", "graph @g(%x: f64[N,C]) -> f64[N,C] { %y = softmax %x {axes=[1]}\n return %y }"},
    {"bytes", R"(graph @g(%u: u8[N,C]) -> f32[N,C] {
       %f = cast %u {to=f32}
       %y = softmax %f {axes=[1]}
       return %y })"},
    {"add_layer_norm", R"(graph @g(%x: bf16[N,C], %r: f32[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
       %f = cast %x {to=f32}
       %h = add %f, %r
       %y = layer_norm %h, %g, %b {axes=[1], eps=1e-5}
       return %y })"},
};

std::vector<int64_t> lengths() {
  std::vector<int64_t> out;
  for (int64_t n = 16; n <= int64_t{1} << 24; n *= 2)
    for (int64_t d : {-3, -1, 0, 1, 8, 17}) out.push_back(n + d), out.push_back(n + n / 2 + d);
  return out;
}

/// Calls whose kernels must add in the same order: the dense one, one element off, rows with a gap, every second element.
std::vector<Binding> calls(const Kernel& kernel, const Sizes& sizes) {
  std::vector<Binding> out(4, dense_binding(kernel, sizes));
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const size_t size = bytes(kernel.operands[i].type);
    out[1].operands[i].data = static_cast<char*>(out[1].operands[i].data) + size;
    std::vector<int64_t>& gap = out[2].operands[i].strides;
    if (gap.size() > 1) gap[0] += 1;
    for (int64_t& stride : out[3].operands[i].strides) stride *= 2;
  }
  return out;
}

TEST(Ring, HoldsEveryRow) {
  const cuda::Device device = cuda::device(90);
  size_t rings = 0, kept = 0, again = 0, teams = 0;
  for (const Case& c : kRows) {
    const Kernel written = kernel_of(c.text), paired = merge_sweeps(written);
    for (int64_t columns : lengths()) {
      const Sizes sizes{{"N", 1000}, {"C", columns}};
      std::optional<Schedule> first;
      for (const Binding& call : calls(written, sizes)) {
        const Facts f = facts(written, call);
        const Schedule s = cuda::schedule(written, f, device);
        const std::string where = std::string(c.name) + " of " + std::to_string(columns) + ": " + print(s);
        if (!first) first = s;
        EXPECT_EQ(s.skeleton, first->skeleton) << where;
        if (s.skeleton != Template::ring) break;
        const Kernel& kernel = s.merged ? paired : written;
        const cuda::RingShape shape = cuda::ring_shape(kernel, s, columns);
        const int64_t V = s.lane[s.vector_axis];
        const int64_t span = columns + cuda::window_of(cuda::View(kernel, s.vector_axis), s) - 1;
        EXPECT_GE(shape.part * std::max(s.cluster, s.team), span) << where;
        EXPECT_GE(shape.slice * s.slices, shape.part) << where;
        const int64_t apart = s.edges == Edges::window && V > 1 ? 32 : 0;  // a warp that takes two short vectors and 30 others
        EXPECT_GE(s.steps * (s.threads - apart) * V + (apart ? 30 * V : 0), shape.slice) << where;
        EXPECT_EQ(shape.slice % V, 0) << where;
        EXPECT_EQ(shape.slice * shape.row_bytes % 16, 0) << where;
        const Launch l = cuda::launch(written, s, f, device);
        EXPECT_LE(l.shared + 7 * 1024, device.shared_per_block) << where;  // states, barriers, and 1 KiB of the system
        EXPECT_LE(l.block, 1024u) << where;
        EXPECT_EQ(l.grid[0] % std::max(s.cluster, s.team), 0u) << where;
        EXPECT_EQ(l.together, s.team > 0) << where;
        if (s.team) {  // all of its blocks run at once, each alone on a multiprocessor
          EXPECT_LE(l.grid[0], uint32_t(device.multiprocessors)) << where;
          EXPECT_EQ(s.cluster, 1) << where;
          ++teams;
        }
        if (s.keep == Keep::shared) {
          EXPECT_GE(s.slots, s.slices * (1 + s.ahead)) << where;
        }
        EXPECT_EQ(s.slots == 0, s.cut.empty()) << where;
        // Who owns what, and in which order it is added.
        for (auto field : {&Schedule::threads, &Schedule::cluster, &Schedule::team, &Schedule::steps}) EXPECT_EQ(s.*field, (*first).*field) << where;
        EXPECT_EQ(s.slices, first->slices) << where;
        EXPECT_EQ(V, first->lane[s.vector_axis]) << where;
        EXPECT_EQ(s.edges, first->edges) << where;
        ++rings, kept += s.keep == Keep::shared, again += s.slots > 0 && s.keep == Keep::reload;
      }
    }
  }
  EXPECT_GT(kept, 100u);
  EXPECT_GT(again, 20u);
  EXPECT_GT(teams, 20u);
  EXPECT_GT(rings, kept + again) << "lanes that load themselves";
}

// A slot is given back by an arrival that depends on what was loaded from it, a word of each piece: ptxas does not wait for the loads by itself,
// and a copy that overtook one was seen on a card.
TEST(Ring, SlotsAreGivenBackWhenTheirWordsAreThere) {
  for (const Case& c : kRows) {
    const Kernel written = kernel_of(c.text);
    const Facts f = facts(written, dense_binding(written, {{"N", 1000}, {"C", 1 << 18}}));
    const Schedule s = cuda::schedule(written, f, cuda::device(90));
    ASSERT_EQ(s.skeleton, Template::ring) << c.name;
    const std::string text = cuda::emit(written, s).text;
    EXPECT_NE(text.find("barrier_arrive(sh.empty + turn.slot + (taken & K::zero(a)));"), std::string::npos);
    size_t pieces = 0;
    const Kernel kernel = s.merged ? merge_sweeps(written) : written;
    for (Val v : s.cut) pieces += bytes(kernel.operands[kernel.values[v].operand].type) * s.lane[s.vector_axis] > 16 ? 2 : 1;
    const size_t at = text.find("u32 taken(Int<0>");
    ASSERT_NE(at, std::string::npos) << c.name;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    size_t words = 0;
    for (size_t w = line.find(".w["); w != std::string::npos; w = line.find(".w[", w + 1)) ++words;
    EXPECT_EQ(words, pieces) << c.name << ": " << line;
  }
}

// By hand, too, only what fits is accepted.
TEST(Ring, RefusesWhatDoesNotFit) {
  const Kernel kernel = kernel_of(kRows[0].text);
  const Facts f = facts(kernel, dense_binding(kernel, {{"N", 1000}, {"C", 1 << 20}}));
  const Schedule start = cuda::schedule(kernel, f, cuda::device(90));
  auto fit = [&](uint16_t cluster, uint8_t slices, uint16_t threads) {
    Schedule s = start;
    s.team = 0, s.cluster = cluster, s.slices = slices, s.threads = threads, s.slots = 0, s.keep = Keep::shared;
    return cuda::fit_ring(s.merged ? merge_sweeps(kernel) : kernel, f, cuda::device(90), s);
  };
  EXPECT_EQ(fit(16, 8, 512), "");
  EXPECT_NE(fit(1, 1, 512).find("does not fit into shared memory"), std::string::npos) << fit(1, 1, 512);
  EXPECT_NE(fit(16, 8, 32).find("do not fit into registers"), std::string::npos) << fit(16, 8, 32);
  EXPECT_NE(fit(16, 8, 960).find("at most 896"), std::string::npos);
  EXPECT_NE(fit(16, 0, 512).find("slices"), std::string::npos);
}

// A team is one of the device's multiprocessors: fewer of them, as in a part of a card, make smaller teams or none, never one that waits for blocks
// that cannot run.
TEST(Ring, TeamsFollowTheMultiprocessors) {
  const Kernel kernel = kernel_of(kRows[0].text);
  const Facts f = facts(kernel, dense_binding(kernel, {{"N", 1000}, {"C", 1 << 19}}));
  size_t teams = 0;
  for (int multiprocessors : {1, 2, 7, 14, 16, 60, 78, 114, 132, 148}) {
    cuda::Device device = cuda::device(90);
    device.multiprocessors = multiprocessors;
    Schedule s = cuda::schedule(kernel, f, device);
    const Launch l = cuda::launch(kernel, s, f, device);
    EXPECT_LE(s.team, multiprocessors);
    EXPECT_TRUE(!s.team || l.grid[0] <= uint32_t(multiprocessors)) << print(s);
    teams += s.team > 0;
    s.team = uint16_t(multiprocessors + 1);
    EXPECT_NE(cuda::fit_ring(s.merged ? merge_sweeps(kernel) : kernel, f, device, s).find("blocks, one a multiprocessor"), std::string::npos);
  }
  EXPECT_GE(teams, 4u);
}

}  // namespace
}  // namespace fusec
