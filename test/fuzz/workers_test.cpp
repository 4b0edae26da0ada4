// Items whose process ends under them: by a signal, or by a status; the others are done all the same.

#include "tools/fusec/workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>

namespace fusec::cli {
namespace {

bool item(int64_t k) {
  if (k == 3) ::raise(SIGKILL);
  if (k == 5) ::_exit(3);
  return k != 7;
}

TEST(Workers, AnEndUnderAnItemCostsThatItem) {
  for (int jobs : {1, 3}) {
    WorkerOptions options;
    options.jobs = jobs;
    options.count = 20;
    std::map<int64_t, int> ends;
    const Work out = run_items(options, item, [&](int64_t k, int end) { ends[k] = end; }, [](const Work&) {});
    EXPECT_EQ(out.done, 20);
    EXPECT_EQ(out.failed, 3);
    EXPECT_EQ(ends, (std::map<int64_t, int>{{3, 256 + SIGKILL}, {5, 3}}));
    for (const auto& [k, end] : ends) EXPECT_EQ(in_child([&] { return item(k), 0; }), end);
  }
}

}  // namespace
}  // namespace fusec::cli
