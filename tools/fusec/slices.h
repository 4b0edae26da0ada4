#pragma once
// A large graph checked on a part of it: when the indices of one extent are independent of each other (rows of a softmax, channels
// of a batch_norm), the same graph with a smaller extent computes exactly those.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/graph.h"

namespace fusec::cli {

/// The text of a graph with an extent replaced wherever it stands in brackets: f32[4096,64] and stop=[4096,64], not groups=32.
std::string with_extent(std::string_view text, int64_t from, int64_t to);

struct Run {
  int64_t first, count;
};
/// `count` of `extent` indices, in order: from the beginning, the middle and the end.
std::vector<Run> spread_out(int64_t extent, int64_t count);

/// Calls `f` with each contiguous run of elements (first, count) that remains of a dense tensor when every axis of that extent is cut down
/// to the chosen indices, in order.
void each_run(const std::vector<int64_t>& extents, int64_t extent, const std::vector<Run>& chosen, const std::function<void(int64_t, int64_t)>& f);

}  // namespace fusec::cli
