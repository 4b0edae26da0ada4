// Tuning files: what a file may hold, whom it is for, and that it can only choose among candidates.

#include "runtime/tuning.h"

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "runtime/chooser.h"
#include "runtime/plan.h"
#if FUSEC_HAS_CPU
#include "codegen/cpu/cpu.h"
#endif
#if FUSEC_HAS_CUDA
#include "codegen/cuda/cuda.h"
#endif

namespace fusec {
namespace {

const char kSoftmax[] = "graph @g(%x: f32[N,1024]) -> f32[N,1024] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n";

/// The kernels of a graph, which live as long as the plan.
struct Kernels {
  std::vector<Kernel> all;
  Facts facts_of(size_t i, const Sizes& sizes) const { return facts(all[i], dense_binding(all[i], sizes)); }
};
Kernels kernels_of(const char* text) {
  Kernels out;
  Result<Graph> graph = parse(text);
  EXPECT_TRUE(graph);
  Result<ProgramPlan> plan = make_plan(*graph, {});
  EXPECT_TRUE(plan);
  for (const PlanStep& step : plan->steps) out.all.push_back(*build(*step.graph, step.group));
  return out;
}

TEST(Tuning, ComesBackFromItsText) {
  Tuning t;
  TuningEntry e{"NVIDIA H200", "sm_90", "0123456789abcdef", "2^12 x 1024", "threads=512 rows_in_flight=2", "g g0", 1e-4, 2e-4, 4e12, 0.5, 40, 0};
  t.put(e);
  e.schedule = "", e.shape = "2^13 x 1024", e.registers = -1;
  t.put(e);
  e.name = "again";
  t.put(e);
  EXPECT_EQ(t.size(), 2u);
  Result<Tuning> back = Tuning::parse(t.text());
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->text(), t.text());
  EXPECT_EQ(back->note(), "");
}

TEST(Tuning, MalformedFilesAreInputErrors) {
  const std::string good = R"({"fusec_tuning": 1, "entries": [{"device": "d", "target": "t", "kernel": "k", "shape": "s", "schedule": ""}]})";
  EXPECT_TRUE(Tuning::parse(good));
  for (std::string bad : {std::string(""), std::string("{"), std::string("[]"), std::string("null"), std::string(R"({"entries": []})"),
                          std::string(R"({"fusec_tuning": "1", "entries": []})"), std::string(R"({"fusec_tuning": 1})"),
                          std::string(R"({"fusec_tuning": 1, "entries": {}})"), std::string(R"({"fusec_tuning": 1, "entries": [3]})"),
                          std::string(R"({"fusec_tuning": 1, "entries": [{}]})"),
                          std::string(R"({"fusec_tuning": 1, "entries": [{"device": 1, "target": "t", "kernel": "k", "shape": "s", "schedule": ""}]})"),
                          std::string(R"({"fusec_tuning": 1, "entries": [{"device": "d", "target": "t", "kernel": "k", "shape": "s", "schedule": "", "seconds": "1"}]})"),
                          std::string(10000, '[')}) {
    Result<Tuning> t = Tuning::parse(bad, "f.json");
    ASSERT_FALSE(t) << bad;
    EXPECT_EQ(t.error().kind, Error::input);
    EXPECT_NE(t.error().message.find("f.json"), std::string::npos) << t.error().message;
  }
  for (size_t n = 0; n + 1 < good.size(); ++n) EXPECT_FALSE(Tuning::parse(good.substr(0, n))) << n;
  EXPECT_FALSE(Tuning::load("/nowhere/tuning.json"));
}

TEST(Tuning, OtherVersionsAreIgnoredWithANote) {
  Result<Tuning> t = Tuning::parse(R"({"fusec_tuning": 7, "things": true})", "f.json");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->size(), 0u);
  EXPECT_NE(t->note().find("version 7"), std::string::npos) << t->note();
}

TEST(Tuning, KeysTellKernelsAndShapesApart) {
  const Kernels a = kernels_of(kSoftmax), b = kernels_of("graph @h(%z: f32[N,1024]) -> f32[N,1024] {\n  %q = softmax %z {axes=[1]}\n  return %q\n}\n"),
                c = kernels_of("graph @g(%x: f32[N,1024]) -> f32[N,1024] {\n  %y = log_softmax %x {axes=[1]}\n  return %y\n}\n");
  EXPECT_EQ(kernel_digest(a.all[0]), kernel_digest(b.all[0])) << "names do not count";
  EXPECT_NE(kernel_digest(a.all[0]), kernel_digest(c.all[0]));
  EXPECT_EQ(shape_class(a.facts_of(0, {{"N", 4096}})), "2^12 x 1024");
  EXPECT_EQ(shape_class(a.facts_of(0, {{"N", 8191}})), "2^12 x 1024");
  EXPECT_EQ(shape_class(a.facts_of(0, {{"N", 8192}})), "2^13 x 1024");
}

/// Candidates are settled, different from each other, and start with the model's own.
void look_at(const Scheduler& scheduler, const char* text, const Sizes& sizes, size_t least) {
  const Kernels kernels = kernels_of(text);
  for (size_t i = 0; i < kernels.all.size(); ++i) {
    const Kernel& kernel = kernels.all[i];
    const Facts f = kernels.facts_of(i, sizes);
    const std::vector<Candidate> all = scheduler.candidates(kernel, f);
    ASSERT_GE(all.size(), least) << text;
    EXPECT_EQ(all[0].edits, "");
    EXPECT_EQ(all[0].schedule, scheduler.schedule(kernel, f));
    std::set<std::string> schedules, edits;
    for (const Candidate& c : all) {
      EXPECT_TRUE(schedules.insert(bytes(c.schedule)).second) << c.edits;
      EXPECT_TRUE(edits.insert(c.edits).second) << c.edits;
      Schedule again = c.schedule;
      EXPECT_EQ(scheduler.settle(kernel, f, again), "") << c.edits;
      EXPECT_EQ(again, c.schedule) << c.edits << ": " << print(again) << " is not " << print(c.schedule);
      EXPECT_FALSE(scheduler.launch(kernel, c.schedule, f).empty);
      std::vector<std::string> words;
      for (std::istringstream in(c.edits); in >> words.emplace_back();) {}
      words.pop_back();
      const Result<Choice> by_hand = Chooser::make(words, "")->choose(0, kernel, f, scheduler);
      ASSERT_TRUE(by_hand) << by_hand.error().text();
      EXPECT_EQ(by_hand->schedule, c.schedule) << c.edits << ": tune measures it in this way";
    }
  }
}

const char* const kGraphs[] = {
    kSoftmax,
    "graph @g(%x: f32[N,64]) -> f32[N,64] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n",
    "graph @g(%x: bf16[N,65536]) -> bf16[N,65536] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n",
    "graph @g(%x: f32[N,50257]) -> f32[N,50257] {\n  %y = layer_norm %x {axes=[1], eps=1e-05}\n  return %y\n}\n",
    "graph @g(%x: f32[N,2048]) -> f32[2048] {\n  %y = sum %x {axes=[0]}\n  return %y\n}\n",
    "graph @g(%x: f32[N,131072]) -> f32[N] {\n  %y = sum %x {axes=[1]}\n  return %y\n}\n",
    "graph @g(%x: bf16[N,1001], %b: bf16[1001]) -> bf16[N,1001] {\n  %t = add %x, %b\n  %y = gelu %t\n  return %y\n}\n",
    "graph @g(%x: f32[N,2048]) -> f32[2048,N] {\n  %y = transpose %x {perm=[1,0]}\n  return %y\n}\n",
};

#if FUSEC_HAS_CPU
TEST(Candidates, OfTheCpu) {
  for (const char* text : kGraphs) look_at(*cpu::scheduler(cpu::host()), text, {{"N", 4096}}, 1);
}

TEST(Chooser, TakesATuningFilesChoiceAndNothingElse) {
  const std::shared_ptr<const Scheduler> scheduler = cpu::scheduler(cpu::host());
  const Kernels kernels = kernels_of(kSoftmax);
  const Kernel& kernel = kernels.all[0];
  const Facts f = kernels.facts_of(0, {{"N", 512}});
  const std::vector<Candidate> all = scheduler->candidates(kernel, f);
  ASSERT_GT(all.size(), 2u);
  TuningEntry e{scheduler->device_key(), scheduler->target_key(), kernel_digest(kernel), shape_class(f), all.back().edits, "", 0, 0, 0, 0, -1, -1};
  const std::string path = testing::TempDir() + "fusec_tuning_test.json";
  auto choose = [&](const TuningEntry& entry, std::vector<std::string> hand = {}) {
    Tuning t;
    t.put(entry);
    std::ofstream(path) << t.text();
    Result<Chooser> chooser = Chooser::make(hand, path);
    EXPECT_TRUE(chooser) << chooser.error().text();
    Result<Choice> choice = chooser->choose(0, kernel, f, *scheduler);
    EXPECT_TRUE(choice) << choice.error().text();
    return *choice;
  };
  EXPECT_EQ(choose(e).by, Choice::tuned);
  EXPECT_EQ(choose(e).schedule, all.back().schedule);
  EXPECT_EQ(choose(e, {"steps=1"}).by, Choice::hand);
  TuningEntry other = e;
  other.device = "another machine";
  EXPECT_EQ(choose(other).by, Choice::model);
  other = e, other.shape = "2^1 x 3";
  EXPECT_EQ(choose(other).by, Choice::model);
  for (const char* edits : {"steps=31", "skeleton=pointwise", "nonsense", "threads=0", "steps=8  lane=8"}) {
    other = e, other.schedule = edits;
    const Choice refused = choose(other);
    EXPECT_EQ(refused.by, Choice::model) << edits;
    EXPECT_NE(refused.note.find(edits), std::string::npos);
    EXPECT_EQ(refused.schedule, all[0].schedule);
  }
  EXPECT_FALSE(Chooser::make({}, "/nowhere.json"));

  // A program takes it too, and computes the same thing.
  choose(e);
  Result<Graph> graph = parse(kSoftmax);
  std::vector<float> x(512 * 1024), y(x.size()), want(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97) * 0.25f;
  const std::vector<int64_t> extents{512, 1024};
  for (auto [tuning, out] : {std::pair{path, &y}, {std::string(), &want}}) {
    Result<Program> program = compile(*graph, {.device = "cpu", .cache = false, .tuning = tuning});
    ASSERT_TRUE(program) << program.error().text();
    ASSERT_TRUE(program->run({{x.data(), extents}}, {{out->data(), extents}}));
  }
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want[i], 1e-6f) << i;
  std::remove(path.c_str());
  Result<Program> none = compile(*graph, {.device = "cpu", .tuning = path});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Error::input);
}
#endif

#if FUSEC_HAS_CUDA
TEST(Candidates, OfAGpu) {
  for (const char* text : kGraphs) look_at(*cuda::scheduler(cuda::device(90)), text, {{"N", 4096}}, 4);
}
#endif

}  // namespace
}  // namespace fusec
