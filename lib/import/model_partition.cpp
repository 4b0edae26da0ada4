// Regions: which nodes of a graph with gaps can be computed together.
//
//   a = relu(x); c = Conv(a); d = add(c, a)      relu and add cannot: from relu a path leads through Conv back to add
//
// 1. A node's level is the largest number of gaps on a path to it. Neighbours of one level, and readers of one value of one
//    level, make a group: a path that leaves it through a gap comes out at a higher level.
// 2. Two groups of different levels, of which one reads the other, are joined when no other path leads from the first to
//    the second: a branch that waits for a longer one then goes where it is read. Largest values first.
// Nodes that hang on weights alone belong to nobody: whoever reads them computes them.

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "lib/fusion/cost.h"
#include "lib/import/model.h"

namespace fusec {
namespace {

constexpr int32_t kFree = -1;  // hangs on weights alone
constexpr uint32_t kNone = Partition::kNone;
constexpr size_t kMostVisits = 20'000'000;  // of searches for other paths, all together: about a second

struct Sets {
  std::vector<uint32_t> parent;
  explicit Sets(size_t n) : parent(n) { std::iota(parent.begin(), parent.end(), 0u); }
  uint32_t find(uint32_t x) {
    while (parent[x] != x) x = parent[x] = parent[parent[x]];
    return x;
  }
  void join(uint32_t a, uint32_t b) {  // the smaller one stands for both
    a = find(a), b = find(b);
    parent[std::max(a, b)] = std::min(a, b);
  }
};

/// Levels of all nodes, inputs included. A gap is passed as soon as all it reads is known: graphs number inputs first and
/// the rest in the file's order, so that is before the first node that needs it.
std::vector<int32_t> levels(const Graph& graph, const std::vector<Gap>& gaps, const std::vector<bool>& weights) {
  std::vector<int32_t> level(graph.size(), kFree);
  for (size_t i = 0; i < graph.inputs().size(); ++i) level[graph.inputs()[i].node] = weights[i] ? kFree : 0;
  const NodeId first = static_cast<NodeId>(graph.inputs().size());
  size_t next = 0;
  const auto pass_gaps = [&](NodeId known) {
    for (; next < gaps.size(); ++next) {
      int32_t most = 0;
      for (NodeId r : gaps[next].reads) {
        if (r >= known) return;
        most = std::max(most, level[r]);
      }
      for (NodeId w : gaps[next].writes) level[w] = most + 1;
    }
  };
  for (NodeId id = first; id < graph.size(); ++id) {
    pass_gaps(id);
    for (NodeId a : graph.node(id).args) level[id] = std::max(level[id], level[a]);
  }
  pass_gaps(static_cast<NodeId>(graph.size()));
  return level;
}

/// The pieces as a graph of their own, which joining makes smaller.
struct Pieces {
  Sets sets;
  std::vector<std::set<uint32_t>> next;  // of representatives; names within may be those of joined pieces
  std::vector<uint32_t> seen;
  uint32_t stamp = 0;
  size_t visits = 0;

  explicit Pieces(size_t n) : sets(n), next(n), seen(n, 0) {}

  /// Is there a path from `from` to `to` beside the direct step?
  bool other_path(uint32_t from, uint32_t to) {
    ++stamp;
    std::vector<uint32_t> open;
    const auto visit = [&](uint32_t at, bool direct) {
      for (uint32_t name : next[at]) {
        const uint32_t n = sets.find(name);
        ++visits;
        if (n == to && !direct) return true;
        if (n != to && n != at && seen[n] != stamp) seen[n] = stamp, open.push_back(n);
      }
      return false;
    };
    visit(from, true);
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (visit(at, false)) return true;
    }
    return false;
  }

  void join(uint32_t a, uint32_t b) {
    const uint32_t keep = std::min(a, b), gone = std::max(a, b);
    sets.join(a, b);
    next[keep].merge(next[gone]);
    next[gone].clear();
    std::set<uint32_t> clean;
    for (uint32_t name : next[keep])
      if (sets.find(name) != keep) clean.insert(sets.find(name));
    next[keep] = std::move(clean);
  }
};

struct Edge {
  double bytes;
  uint32_t from, to;
};

}  // namespace

Partition partition(const Graph& graph, const std::vector<Gap>& gaps, const std::vector<bool>& weights) {
  const size_t n = graph.size();
  const NodeId inputs = static_cast<NodeId>(graph.inputs().size());
  const std::vector<int32_t> level = levels(graph, gaps, weights);
  const auto computed = [&](NodeId id) { return id >= inputs && level[id] != kFree; };

  // 1. Groups of one level.
  Sets nodes(n);
  std::unordered_map<uint64_t, NodeId> reader;  // the first reader of a value at a level
  for (NodeId id = inputs; id < n; ++id) {
    if (!computed(id)) continue;
    for (NodeId a : graph.node(id).args) {
      if (level[a] == kFree) continue;
      if (computed(a) && level[a] == level[id]) {
        nodes.join(a, id);
        continue;
      }
      const auto [first, fresh] = reader.emplace(uint64_t{a} << 32 | static_cast<uint32_t>(level[id]), id);
      if (!fresh) nodes.join(first->second, id);
    }
  }

  // 2. Pieces: groups by their first node, then gaps. Edges between groups.
  std::vector<uint32_t> piece(n, kNone);
  uint32_t count = 0;
  for (NodeId id = inputs; id < n; ++id)
    if (computed(id)) piece[id] = nodes.find(id) == id ? count++ : piece[nodes.find(id)];
  const uint32_t groups = count;
  for (const Gap& gap : gaps) {
    for (NodeId w : gap.writes) piece[w] = count;
    ++count;
  }
  Pieces pieces(count);
  std::vector<Edge> edges;
  std::unordered_map<uint64_t, size_t> edge_of;
  for (NodeId id = inputs; id < n; ++id) {
    if (!computed(id)) continue;
    for (NodeId a : graph.node(id).args) {
      if (piece[a] == kNone || piece[a] == piece[id]) continue;
      pieces.next[piece[a]].insert(piece[id]);
      if (piece[a] >= groups) continue;
      const auto [at, fresh] = edge_of.emplace(uint64_t{piece[a]} << 32 | piece[id], edges.size());
      if (fresh) edges.push_back({0, piece[a], piece[id]});
      edges[at->second].bytes += value_bytes(graph, a);
    }
  }
  for (size_t b = 0; b < gaps.size(); ++b)
    for (NodeId r : gaps[b].reads)
      if (piece[r] != kNone) pieces.next[piece[r]].insert(groups + static_cast<uint32_t>(b));
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(-a.bytes, a.from, a.to) < std::tuple(-b.bytes, b.from, b.to);
  });
  for (bool again = true; again && pieces.visits < kMostVisits;) {
    again = false;
    for (const Edge& edge : edges) {
      const uint32_t from = pieces.sets.find(edge.from), to = pieces.sets.find(edge.to);
      if (from == to || pieces.visits >= kMostVisits || pieces.other_path(from, to)) continue;
      pieces.join(from, to);
      again = true;
    }
  }

  // 3. The pieces that are left, in order: of those that are ready the one that comes first in the file.
  Partition out;
  std::vector<uint32_t> number(count, kNone);
  for (uint32_t p = 0; p < groups; ++p)
    if (pieces.sets.find(p) == p) number[p] = out.groups++;
  for (uint32_t p = groups; p < count; ++p) number[p] = out.groups + (p - groups);
  out.group.assign(n, kNone);
  for (NodeId id = inputs; id < n; ++id)
    if (computed(id)) out.group[id] = number[pieces.sets.find(piece[id])];
  std::vector<uint32_t> waits(count, 0);
  for (uint32_t p = 0; p < count; ++p) {
    std::set<uint32_t> clean;
    for (uint32_t name : pieces.next[p])
      if (pieces.sets.find(name) != p) clean.insert(pieces.sets.find(name));
    pieces.next[p] = std::move(clean);
    for (uint32_t to : pieces.next[p]) ++waits[to];
  }
  std::set<std::pair<bool, uint32_t>> ready;  // regions before boundaries, so that they are done when a host asks
  for (uint32_t p = 0; p < count; ++p)
    if (number[p] != kNone && waits[p] == 0) ready.insert({p >= groups, p});
  while (!ready.empty()) {
    const uint32_t p = ready.begin()->second;
    ready.erase(ready.begin());
    out.order.push_back(number[p]);
    for (uint32_t to : pieces.next[p])
      if (--waits[to] == 0) ready.insert({to >= groups, to});
  }
  return out;
}

}  // namespace fusec
