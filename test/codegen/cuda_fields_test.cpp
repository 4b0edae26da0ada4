// A field set by hand that is taken changes the code or the launch: of no skeleton is one taken that it does not read.

#include <set>
#include <sstream>

#include "codegen/cuda/cuda.h"
#include "runtime/chooser.h"
#include "test/codegen/cuda_kernels.h"

namespace fusec {
namespace {

/// Everything that a schedule has to do with how a kernel runs.
std::string behaviour(const Scheduler& scheduler, const Kernel& kernel, const Facts& f, const Schedule& s) {
  const Launch l = scheduler.launch(kernel, s, f);
  std::string out = cuda::emit(kernel, s).text;
  for (uint64_t n : {uint64_t(l.grid[0]), uint64_t(l.grid[1]), uint64_t(l.grid[2]), uint64_t(l.block), uint64_t(l.cluster), uint64_t(l.shared),
                     uint64_t(l.splits), l.state_bytes, uint64_t(l.counters), uint64_t(l.policy), uint64_t(l.together)})
    out += " " + std::to_string(n);
  return out + (s.dependent_launch ? " dependent" : "");
}

const char* const kEdits[] = {
    "keep=none", "keep=registers", "keep=shared", "keep=reload", "edges=full", "edges=tail", "edges=window", "finish=none", "finish=last_block",
    "threads=64", "threads=256", "threads=512", "min_blocks=1", "min_blocks=2", "min_blocks=3", "lanes_per_row=8", "lanes_per_row=64", "lanes_per_row=256",
    "rows_in_flight=1", "rows_in_flight=2", "rows_in_flight=4", "cluster=1", "cluster=2", "cluster=4", "team=4", "steps=1", "steps=2", "steps=4", "slots=1",
    "slots=2", "slots=4", "slices=1", "slices=2", "slices=4", "ahead=1", "ahead=2", "column_slots=1", "column_slots=2", "lane=1", "lane=2", "lane=4", "lane=8",
    "block=64", "block=1024", "baked=0", "baked=1", "baked=2", "wide=1", "dynamic_rows=1", "dependent_launch=1", "merged=1", "access.0=4", "access.0=16",
    "access.0=16x", "access.0=16s", "access.0=16e", "access.0=16p", "access.0=16b", "access.1=16", "access.1=16e", "access.1=16s", "access.1=16x", "cut=", "cut=v0", "cut=v1",
};

/// Each edit behind each of these: of the model's own skeleton, and of others that the kernel can take.
const std::vector<std::vector<std::string>> kBefore = {{}, {"keep=reload"}, {"keep=shared"}, {"skeleton=ring", "keep=shared", "min_blocks=1"}, {"finish=none"}};

void look_at(const Named& g, const Scheduler& scheduler, std::set<std::string>& taken) {
  const Kernel kernel = kernel_of(g.text);
  const Facts f = facts(kernel, dense_binding(kernel, g.sizes));
  auto by_hand = [&](const std::vector<std::string>& edits) { return Chooser::make(edits, "")->choose(0, kernel, f, scheduler); };
  for (const std::vector<std::string>& before : kBefore) {
    const Result<Choice> plain = by_hand(before);
    if (!plain) continue;
    const std::string own = behaviour(scheduler, kernel, f, plain->schedule);
    for (const char* edit : kEdits) {
      std::vector<std::string> edits = before;
      edits.push_back(edit);
      const Result<Choice> choice = by_hand(edits);
      if (!choice || choice->schedule == plain->schedule) continue;
      taken.insert(value_of(choice->schedule, "skeleton") + " " + std::string(edit).substr(0, std::string_view(edit).find('=')));
      EXPECT_TRUE(behaviour(scheduler, kernel, f, choice->schedule) != own) << g.name << " " << edit << "\n  " << print(plain->schedule) << "\n  " << print(choice->schedule);
    }
  }
}

TEST(CudaFields, OneThatIsTakenIsRead) {
  const std::shared_ptr<const Scheduler> scheduler = cuda::scheduler(cuda::device(90));
  std::set<std::string> taken;
  for (const Named& g : kGraphs) look_at(g, *scheduler, taken);
  look_at({"cumsum", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1}\n return %y }", {{"N", 512}, {"C", 65536}}}, *scheduler, taken);
  look_at({"cumsum_columns", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=0}\n return %y }", {{"N", 512}, {"C", 65536}}}, *scheduler, taken);
  // What is read can be set.
  for (const char* field : {"pointwise lane", "pointwise rows_in_flight", "transpose min_blocks", "rows lanes_per_row", "rows cluster", "rows rows_in_flight",
                            "ring slots", "ring slices", "ring ahead", "ring cluster", "column lanes_per_row", "column finish", "split threads", "scan steps", "scan threads"})
    EXPECT_TRUE(taken.contains(field)) << field;
}

TEST(CudaFields, OneThatIsNotReadIsNamedWithThoseThatAre) {
  const std::shared_ptr<const Scheduler> scheduler = cuda::scheduler(cuda::device(90));
  const Kernel kernel = kernel_of("graph @g(%x: f32[N]) -> f32[N] { %y = abs %x\n return %y }");
  const Facts f = facts(kernel, dense_binding(kernel, {{"N", 1 << 20}}));
  for (const char* edit : {"slots=4", "keep=reload", "cut=v0", "finish=last_block", "lanes_per_row=64", "cluster=2", "dynamic_rows=1", "baked=1"}) {
    const Result<Choice> choice = Chooser::make({edit}, "")->choose(0, kernel, f, *scheduler);
    ASSERT_FALSE(choice) << edit;
    const std::string field = std::string(edit).substr(0, std::string_view(edit).find('='));
    EXPECT_EQ(choice.error().message, "schedule of g0 set by hand: " + std::string(edit) + " counts for nothing: skeleton=pointwise does not look at " + field +
                                          ", but at skeleton, edges, threads, min_blocks, rows_in_flight, steps, lane, axis, wide, dependent_launch, access");
  }
  EXPECT_TRUE(Chooser::make({"slots=0", "keep=none", "steps=0"}, "")->choose(0, kernel, f, *scheduler)) << "nothing is asked for";
}

/// The edits of a candidate, set by hand (as `fusec tune` does to measure it), make that candidate.
TEST(CudaFields, CandidatesAreTakenByHand) {
  const std::shared_ptr<const Scheduler> scheduler = cuda::scheduler(cuda::device(90));
  for (const Named& g : kGraphs) {
    const Kernel kernel = kernel_of(g.text);
    const Facts f = facts(kernel, dense_binding(kernel, g.sizes));
    for (const Candidate& c : scheduler->candidates(kernel, f)) {
      std::vector<std::string> edits;
      std::istringstream words(c.edits);
      for (std::string word; words >> word;) edits.push_back(word);
      const Result<Choice> choice = Chooser::make(edits, "")->choose(0, kernel, f, *scheduler);
      ASSERT_TRUE(choice) << g.name << " " << c.edits << "\n" << choice.error().text();
      EXPECT_EQ(choice->schedule, c.schedule) << g.name << " " << c.edits;
    }
  }
}

}  // namespace
}  // namespace fusec
