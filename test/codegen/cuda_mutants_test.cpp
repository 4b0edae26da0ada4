// Is every barrier and fence of the skeletons needed, and would the runner see it missing? Each one that a kernel
// executes is taken away in turn; the run must then be reported in order, in reverse and in a random order. What goes
// unseen is not needed by that kernel, or a hole in the detector: each is counted as `spare`, with its reason.

#include <gtest/gtest.h>

#include "test/codegen/cuda_run.h"

namespace fusec {
namespace {

const char* const kOrdering[] = {"__syncthreads", "__syncwarp", "__threadfence", "cluster_arrive",     "cluster_wait",
                                 "cluster_sync",  "wait_merged", "barrier_wait<false>", "barrier_wait<true>", "barrier_wait<(Cluster > 1)>"};

struct Spot {
  size_t at, length;
};

/// Calls that stand as statements: "name(…);".
std::vector<Spot> spots(const std::string& text) {
  std::vector<Spot> out;
  for (const char* word : kOrdering) {
    const std::string call = std::string(word) + "(";
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
      const char before = at ? text[at - 1] : ' ';
      if (before == '_' || isalnum(static_cast<unsigned char>(before))) continue;
      size_t end = at + call.size();
      for (int open = 1; open; ++end) open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (text[end] == ';') out.push_back({at, end + 1 - at});
    }
  }
  return out;
}

std::string line_at(const std::string& text, size_t at) {
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return std::to_string(std::count(text.begin(), text.begin() + ptrdiff_t(at), '\n') + 1) + ": " +
         text.substr(begin, end - begin);
}

struct Case {
  const char* name;
  const char* text;
  Sizes sizes;
  void (*change)(Schedule&) = nullptr;
  size_t spare = 0;     // barriers that nothing needs
  uint32_t blocks = 3;  // few, so that some block takes several rows
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void on_chip(Schedule& s, Keep keep, uint16_t cluster) {
  s.keep = keep, s.steps = 0, s.threads = s.lanes_per_row = 64, s.rows_in_flight = 2, s.cluster = cluster,
  s.block[s.vector_axis] = 0;
  for (Access& a : s.access) a.early = 0;
}
void shared(Schedule& s) { on_chip(s, Keep::shared, 1); }
void cluster(Schedule& s) { on_chip(s, Keep::cluster, 4); }
void ring_of(Schedule& s, Keep keep, uint16_t cluster, int slots, int ahead) {
  on_chip(s, keep, cluster);
  s.skeleton = Template::ring, s.dynamic_rows = true, s.rows_in_flight = s.min_blocks = 1;
  s.slots = uint8_t(slots), s.slices = 2, s.ahead = uint8_t(ahead), s.steps = 8;
  if (!slots) s.cut.clear();
}
void ring(Schedule& s) { ring_of(s, Keep::shared, 1, 5, 1); }
void ring_of_clusters(Schedule& s) { ring_of(s, Keep::shared, 4, 5, 1); }
void ring_again(Schedule& s) { ring_of(s, Keep::reload, 1, 3, 0); }
void ring_of_lanes(Schedule& s) { ring_of(s, Keep::reload, 1, 0, 0); }

const char* const kSoftmax = "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }";
const char* const kCentre =
    "graph @g(%x: f32[N,C]) -> f32[N,C] { %m = mean %x {axes=[1], keep=true}\n %y = sub %x, %m\n return %y }";
// spare: in column, between the last merge and its broadcast, where the thread that read an element writes the same
// one; in split, in front of last_block's fence, which column needs and split does not, where one thread wrote all of
// the state; in a ring without slots, the wait that keeps rows from being handed out too early for the queue, which not every
// order of threads overruns.
const Case kCases[] = {
    {"rows", kSoftmax, {{"N", 9}, {"C", 4096}}},
    {"rows_looped",
     "graph @g(%x: f32[N,C]) -> f32[N] { %y = logsumexp %x {axes=[1]}\n return %y }",
     {{"N", 9}, {"C", 4099}}},
    {"rows_shared", kCentre, {{"N", 9}, {"C", 1000}}, shared},
    {"rows_cluster", kCentre, {{"N", 9}, {"C", 1000}}, cluster, 0, 8},
    {"ring", kCentre, {{"N", 70}, {"C", 1024}}, ring, 0, 1},
    {"ring_of_clusters", kCentre, {{"N", 70}, {"C", 1024}}, ring_of_clusters, 0, 4},
    {"ring_again", kCentre, {{"N", 70}, {"C", 1024}}, ring_again, 0, 1},
    {"ring_of_lanes", kCentre, {{"N", 70}, {"C", 1024}}, ring_of_lanes, 1, 1},
    {"column",
     "graph @g(%x: f32[N,C]) -> f32[N,C] { %m = mean %x {axes=[0], keep=true}\n %y = sub %x, %m\n return %y }",
     {{"N", 100}, {"C", 64}},
     nullptr,
     1},
    {"column_split",
     "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }",
     {{"N", 4000}, {"C", 64}},
     nullptr,
     1},
    {"split", "graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 200003}}, nullptr, 1},
    {"split_argmax",
     "graph @g(%x: f32[N]) -> i64[] { %y = argmax %x {axes=[0], to=i64}\n return %y }",
     {{"N", 200003}},
     nullptr,
     1},
};

class Mutants : public ::testing::TestWithParam<Case> {};

TEST_P(Mutants, AreSeen) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Case& c = GetParam();
  const Subject s = subject(c.text);
  std::vector<Tensor> inputs;
  for (const Port& port : s.graph.inputs()) {
    Tensor t{s.graph.node(port.node).type.dtype, {}, {}};
    for (const Dim& d : s.graph.node(port.node).type.shape) t.extents.push_back(value_of(d, c.sizes));
    t.data.assign(size_t(t.elements()) * bytes(t.dtype), std::byte{0});
    inputs.push_back(std::move(t));
  }
  How how;
  how.device.multiprocessors = 4;
  how.change = c.change;
  how.most_blocks = c.blocks;
  const Ran right = run(s, c.sizes, inputs, how);
  ASSERT_EQ(right.trouble, "");
  EXPECT_EQ(right.schedule.skeleton == Template::ring, std::string(c.name).starts_with("ring"));
  size_t executed = 0, unseen = 0;
  std::string where;
  for (const Spot& spot : spots(right.text)) {
    how.order = SIMT_FORWARD;
    how.edit = [&](std::string& text) { text.replace(spot.at, spot.length, "__trap();"); };
    if (run(s, c.sizes, inputs, how).trouble.find("trap by") == std::string::npos) continue;
    executed++;
    how.edit = [&](std::string& text) { text.replace(spot.at, spot.length, ";"); };
    size_t seen = 0;
    for (simt_order order : {SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM}) {
      how.order = order;
      seen += run(s, c.sizes, inputs, how).trouble != "";
    }
    if (seen < 3)
      unseen++, where += "\nseen in " + std::to_string(seen) + " of 3 orders without " + line_at(right.text, spot.at);
  }
  EXPECT_EQ(unseen, c.spare) << where;
  EXPECT_GT(executed, unseen);
}

INSTANTIATE_TEST_SUITE_P(Cuda, Mutants, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusec
