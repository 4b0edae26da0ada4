// Greedy fusion.
//
//   m = max x; e = exp(x - m); s = sum e; y = e / s     four kernels, x read twice, e written and read twice
//                                                    →  one group: x read once, y written once
//
// Every computed node starts as a group. Chains of equal shape merge in one linear pass; cheap producers that several groups read
// (casts, views) are copied into each of them; then a priority queue merges the pair that saves most traffic, as long as no cycle
// arises and build() finds one kernel for both; last, cheap producers are copied again where what is left profits. Copies that end
// in one group are one node again. Known limits: a refused pair is not tried again with a third group.

#include "lib/fusion/fuse.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "lib/fusion/cost.h"
#include "lib/kernel/index.h"

namespace fusec {
namespace {

using GroupId = uint32_t;

struct Candidate {
  double saved;           // bytes, and a launch as bytes
  GroupId first, second;  // first produces for second, or both read the same input
  uint32_t first_version, second_version;
  double bytes;
  bool operator<(const Candidate& other) const {
    if (saved != other.saved) return saved < other.saved;
    return std::pair(first, second) > std::pair(other.first, other.second);  // ties: earlier groups first
  }
};

struct Part {
  std::vector<NodeId> nodes;  // ascending, so topological
  uint32_t version = 0;
  bool alive = true;
};

struct Planner {
  const Graph& graph;
  const FuseOptions& options;
  std::vector<std::vector<NodeId>> users;
  std::vector<char> is_output;
  std::vector<std::set<GroupId>> homes;  // the groups that compute a node; none for leaves
  std::vector<Part> parts;
  std::priority_queue<Candidate> queue{};
  std::vector<Refusal> refusals{};

  bool computed(NodeId id) const { return !is_leaf(graph.node(id).op); }
  /// Read from memory, not made in the kernel: inputs, dense constants, other groups' results.
  bool in_memory(NodeId id) const {
    const Node& node = graph.node(id);
    return node.op == Op::input || (node.op == Op::constant && !node.type.shape.empty());
  }

  /// The group that computes `nodes`, being or replacing the groups `self`. A value goes to memory when the graph returns it or
  /// another group reads it: one that computes a reader of the value but not the value.
  Group describe(const std::vector<NodeId>& nodes, const std::set<GroupId>& self) const {
    Group group;
    group.nodes = nodes;
    auto inside = [&](NodeId id) { return std::binary_search(nodes.begin(), nodes.end(), id); };
    std::set<NodeId> inputs;
    for (NodeId id : nodes) {
      for (NodeId arg : graph.node(id).args)
        if (!inside(arg) && (in_memory(arg) || computed(arg))) inputs.insert(arg);
      bool needed = is_output[id];
      for (NodeId user : users[id])
        for (GroupId home : homes[user]) needed = needed || (!self.contains(home) && !computes(home, id));
      if (needed) group.outputs.push_back(id);
    }
    group.inputs.assign(inputs.begin(), inputs.end());
    return group;
  }

  /// One kernel for these nodes? A refusal's code and sentence otherwise.
  std::optional<std::pair<std::string, std::string>> objection(const Group& group) const {
    if (group.nodes.size() > options.max_nodes) return {{"too-many-nodes", "the group would have too many nodes"}};
    if (group.inputs.size() + group.outputs.size() > options.max_operands)
      return {{"too-many-operands", "the kernel would read and write too many buffers"}};
    Result<Kernel> kernel = build(graph, group, {options.numerics});
    if (!kernel) {
      const std::string& message = kernel.error().message;
      const size_t colon = message.find(": ");
      return {{message.substr(0, colon), colon == std::string::npos ? message : message.substr(colon + 2)}};
    }
    size_t argument_bytes = 64;
    for (const Inst& inst : kernel->values)
      if (inst.kind == Kind::load || inst.kind == Kind::store) argument_bytes += 8 + 8 * kernel->axes.size();
    if (argument_bytes > options.argument_bytes) return {{"too-many-arguments", "the kernel's arguments would not fit"}};
    return costs_more(*kernel);
  }

  /// Legal, but slower than two kernels.
  std::optional<std::pair<std::string, std::string>> costs_more(const Kernel& kernel) const {
    double rows = 1, columns = 1;
    for (const Axis& axis : kernel.axes) (axis.reduced ? columns : rows) *= index::guess(axis.extent);
    if (kernel.has_reductions()) {
      size_t width = 1;
      for (const Inst& inst : kernel.values)
        if (inst.kind == Kind::load) width = std::max(width, bytes(inst.type));
      if (kernel.sweeps.size() > 1 && rows < options.few_rows && columns * double(width) > options.long_row_bytes)
        return {{"few-rows", "few long rows: the whole device reduces them first, a second kernel applies the result"}};
      return std::nullopt;
    }
    // A heavy value that does not walk an inner axis would be computed again for each of its elements.
    for (const Inst& inst : kernel.values) {
      if (inst.kind != Kind::compute || !has(inst.op, kHeavy)) continue;
      double own = 1;
      for (size_t k = 0; k < kernel.axes.size(); k++)
        if (inst.varies >> k & 1) own *= index::guess(kernel.axes[k].extent);
      if (own * 8 <= rows && own > 1)
        return {{"heavy-recomputed", std::string(name(inst.op)) + " would be computed again for every element it is broadcast to"}};
    }
    return std::nullopt;
  }

  void start() {
    homes.resize(graph.size());
    for (NodeId id = 0; id < graph.size(); id++) {
      if (!computed(id)) continue;
      homes[id] = {GroupId(parts.size())};
      parts.push_back({{id}});
    }
  }

  bool computes(GroupId id, NodeId node) const { return homes[node].contains(id); }

  std::vector<NodeId> together(GroupId a, GroupId b) const {
    std::vector<NodeId> nodes;
    std::set_union(parts[a].nodes.begin(), parts[a].nodes.end(), parts[b].nodes.begin(), parts[b].nodes.end(),
                   std::back_inserter(nodes));
    return nodes;
  }

  /// `into` computes what `from` does as well; `from` is no more.
  void absorb(GroupId into, GroupId from) {
    std::vector<NodeId> nodes = together(into, from);
    for (NodeId id : parts[from].nodes) {
      homes[id].erase(from);
      homes[id].insert(into);
    }
    parts[into].nodes = std::move(nodes);
    parts[into].version++;
    parts[from].alive = false;
    parts[from].nodes.clear();
  }

  /// A producer with one reader of the same shape: always one kernel, no search needed.
  void merge_chains() {
    std::vector<size_t> operands(parts.size(), 0);
    for (size_t k = 0; k < parts.size(); k++)
      for (NodeId arg : graph.node(parts[k].nodes[0]).args) operands[k] += !is_leaf(graph.node(arg).op) || in_memory(arg);
    for (NodeId id = 0; id < graph.size(); id++) {
      if (!is_elementwise(graph.node(id).op)) continue;
      for (NodeId arg : graph.node(id).args) {
        if (!computed(arg) || is_output[arg] || users[arg].size() != 1) continue;
        if (!is_elementwise(graph.node(arg).op) || graph.node(arg).type.shape != graph.node(id).type.shape) continue;
        const GroupId into = *homes[id].begin(), from = *homes[arg].begin();
        if (into == from || parts[into].nodes.size() + parts[from].nodes.size() > options.max_nodes / 2) continue;
        if (operands[into] + operands[from] > options.max_operands / 2) continue;
        operands[into] += operands[from] - 1;
        absorb(into, from);
      }
    }
  }

  /// Groups that read a value of this one from memory, and groups whose values this one reads.
  std::set<GroupId> readers(GroupId id) const {
    std::set<GroupId> out;
    for (NodeId node : parts[id].nodes)
      for (NodeId user : users[node])
        for (GroupId home : homes[user])
          if (!computes(home, node)) out.insert(home);
    return out;
  }

  std::set<GroupId> writers(GroupId id) const {
    std::set<GroupId> out;
    for (NodeId node : parts[id].nodes)
      for (NodeId arg : graph.node(node).args)
        if (!computes(id, arg)) out.insert(homes[arg].begin(), homes[arg].end());
    return out;
  }

  /// Is there a way from `from` to `to` through a third group?
  bool reaches_around(GroupId from, GroupId to) const {
    const NodeId last = parts[to].nodes.back();
    std::vector<GroupId> stack;
    std::set<GroupId> seen;
    auto visit = [&](GroupId id) {
      if (id != from && parts[id].nodes.front() <= last && seen.insert(id).second) stack.push_back(id);
    };
    for (GroupId next : readers(from))
      if (next != to) visit(next);
    while (!stack.empty()) {
      const GroupId id = stack.back();
      stack.pop_back();
      for (GroupId next : readers(id)) {
        if (next == to) return true;
        visit(next);
      }
    }
    return false;
  }

  void propose_pair(GroupId producer, GroupId consumer) {
    double bytes = 0;
    for (NodeId node : parts[producer].nodes) {
      bool read = false, elsewhere = is_output[node];
      for (NodeId user : users[node])
        for (GroupId home : homes[user])
          if (!computes(home, node)) (home == consumer ? read : elsewhere) = true;
      if (read) bytes += value_bytes(graph, node) * (elsewhere ? 1 : 2);
    }
    queue.push({bytes + options.launch_bytes, producer, consumer, parts[producer].version, parts[consumer].version, bytes});
  }

  void propose_siblings(GroupId id) {
    // Groups that read what this one reads. A value with very many readers would give quadratic pairs: the nearest eight do.
    std::map<GroupId, double> shared;
    for (NodeId input : describe(parts[id].nodes, {id}).inputs) {
      size_t count = 0;
      for (NodeId user : users[input])
        for (GroupId home : homes[user])
          if (home != id && count++ < 8) shared[home] += value_bytes(graph, input);
    }
    for (auto [other, bytes] : shared)
      queue.push({bytes, std::min(id, other), std::max(id, other), parts[std::min(id, other)].version,
                  parts[std::max(id, other)].version, bytes});
  }

  void propose_all(GroupId id) {
    for (GroupId reader : readers(id)) propose_pair(id, reader);
    for (GroupId writer : writers(id)) propose_pair(writer, id);
    propose_siblings(id);
  }

  void refuse(const Candidate& pair, const std::string& code, const std::string& reason) {
    for (NodeId node : parts[pair.first].nodes)
      for (NodeId user : users[node])
        if (computes(pair.second, user) && !computes(pair.second, node)) {
          refusals.push_back({node, user, code, reason, int64_t(std::min(pair.bytes, 9e18))});
          return;
        }
    refuse_siblings(pair, code, reason);
  }

  /// Neither reads the other: both read the same value.
  void refuse_siblings(const Candidate& pair, const std::string& code, const std::string& reason) {
    for (NodeId node : parts[pair.first].nodes)
      for (NodeId value : graph.node(node).args)
        for (NodeId user : users[value])
          if (!computes(pair.first, value) && computes(pair.second, user) && !computes(pair.second, value)) {
            refusals.push_back({node, user, code, reason, int64_t(std::min(pair.bytes, 9e18)), value});
            return;
          }
  }

  void merge_best() {
    for (GroupId id = 0; id < parts.size(); id++)
      if (parts[id].alive) propose_all(id);
    while (!queue.empty()) {
      const Candidate pair = queue.top();
      queue.pop();
      if (!parts[pair.first].alive || !parts[pair.second].alive || parts[pair.first].version != pair.first_version ||
          parts[pair.second].version != pair.second_version)
        continue;
      if (reaches_around(pair.first, pair.second) || reaches_around(pair.second, pair.first)) {
        refuse(pair, "cycle", "a third kernel stands between them");
        continue;
      }
      if (auto why = objection(describe(together(pair.first, pair.second), {pair.first, pair.second}))) {
        refuse(pair, why->first, why->second);
        continue;
      }
      absorb(pair.second, pair.first);
      propose_all(pair.second);
    }
  }

  bool is_cheap(const Part& part) const {
    int cost = 0;
    for (NodeId id : part.nodes) {
      const Op op = graph.node(id).op;
      if (is_reduce(op) || has(op, kHeavy) || is_output[id]) return false;
      cost += info(op).cost;
    }
    return cost <= 8;
  }

  /// A cheap producer that several groups read is computed in each of them, where that moves no more bytes than storing it once
  /// from the first of them.
  void recompute_cheap() {
    for (GroupId k = GroupId(parts.size()); k-- > 0;) {
      if (!parts[k].alive || !is_cheap(parts[k])) continue;
      const std::set<GroupId> into = readers(k);
      double stored = 0, recomputed = 0;
      for (NodeId id : describe(parts[k].nodes, {k}).inputs) stored += value_bytes(graph, id);
      bool fits = into.size() > 1;
      for (GroupId reader : into) {
        Group group = describe(together(reader, k), {reader, k});
        std::erase_if(group.outputs, [&](NodeId id) { return computes(k, id); });  // every reader will compute its own
        fits = fits && !objection(group);
        for (NodeId id : group.inputs) recomputed += value_bytes(graph, id);
        for (NodeId id : describe(parts[reader].nodes, {reader}).inputs) stored += value_bytes(graph, id);
        if (!fits) break;
      }
      if (!fits || recomputed > stored) continue;
      const std::vector<NodeId> nodes = parts[k].nodes;
      for (GroupId reader : into) {
        parts[reader].nodes = together(reader, k);
        parts[reader].version++;
      }
      for (NodeId id : nodes) {
        homes[id].erase(k);
        homes[id].insert(into.begin(), into.end());
      }
      parts[k].alive = false;
      parts[k].nodes.clear();
    }
  }

  /// Groups in launch order, with the outputs that somebody else reads.
  GroupPlan plan() {
    std::vector<Group> groups;
    for (GroupId id = 0; id < parts.size(); id++)
      if (parts[id].alive) groups.push_back(describe(parts[id].nodes, {id}));
    std::vector<char> stored(graph.size(), false), read(graph.size(), false);
    for (const Group& group : groups)
      for (NodeId id : group.inputs) read[id] = true;
    // A recomputed node has several homes; the first one that needs it in memory stores it.
    for (Group& group : groups)
      std::erase_if(group.outputs, [&](NodeId id) {
        if ((!read[id] && !is_output[id]) || stored[id]) return true;
        stored[id] = true;
        return false;
      });
    // Kahn's order, smallest first node first.
    std::map<NodeId, size_t> writer;
    for (size_t k = 0; k < groups.size(); k++)
      for (NodeId id : groups[k].outputs) writer[id] = k;
    std::vector<std::vector<size_t>> after(groups.size());
    std::vector<size_t> waits(groups.size(), 0);
    for (size_t k = 0; k < groups.size(); k++)
      for (NodeId id : groups[k].inputs)
        if (auto found = writer.find(id); found != writer.end()) {
          after[found->second].push_back(k);
          waits[k]++;
        }
    std::set<std::pair<NodeId, size_t>> ready;
    for (size_t k = 0; k < groups.size(); k++)
      if (!waits[k]) ready.insert({groups[k].nodes.front(), k});
    GroupPlan plan;
    while (!ready.empty()) {
      const size_t k = ready.begin()->second;
      ready.erase(ready.begin());
      for (size_t next : after[k])
        if (--waits[next] == 0) ready.insert({groups[next].nodes.front(), next});
      plan.groups.push_back(groups[k]);
    }
    keep_final_refusals(plan);
    return plan;
  }

  /// Of the refusals, those whose two nodes really ended up apart, the last word on each pair of groups.
  void keep_final_refusals(GroupPlan& plan) {
    std::map<std::pair<size_t, size_t>, Refusal> last;
    std::map<NodeId, std::set<size_t>> home;
    for (size_t k = 0; k < plan.groups.size(); k++)
      for (NodeId id : plan.groups[k].nodes) home[id].insert(k);
    for (const Refusal& refusal : refusals) {
      const std::set<size_t>&a = home[refusal.producer], &b = home[refusal.consumer];
      std::vector<size_t> both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      if (!both.empty() || a.empty() || b.empty()) continue;
      const auto pair = std::minmax(*a.begin(), *b.begin());
      const auto known = last.find(pair);
      // That one reads the other says more than that both read a third.
      if (known == last.end() || !refusal.siblings() || known->second.siblings()) last[pair] = refusal;
    }
    for (auto& [pair, refusal] : last) plan.refusals.push_back(refusal);
  }
};

}  // namespace

namespace {

/// Every value that a group reads is there by then: an input, a constant, or written by an earlier group; so is every output.
bool is_complete(const Graph& graph, const GroupPlan& plan) {
  std::vector<char> there(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); id++) there[id] = is_leaf(graph.node(id).op);
  for (const Group& group : plan.groups) {
    for (NodeId id : group.inputs)
      if (!there[id]) return false;
    for (NodeId id : group.outputs) there[id] = true;
  }
  return std::all_of(graph.outputs().begin(), graph.outputs().end(), [&](const Port& port) { return there[port.node]; });
}

}  // namespace

Result<GroupPlan> fuse(const Graph& graph, const FuseOptions& options) {
  Planner planner{graph, options, graph.users(), std::vector<char>(graph.size(), false), {}, {}};
  for (const Port& port : graph.outputs()) planner.is_output[port.node] = true;
  planner.start();
  if (options.merge) {
    planner.merge_chains();
    planner.recompute_cheap();
    planner.merge_best();
    planner.recompute_cheap();
  }
  GroupPlan plan = planner.plan();
  if (!is_complete(graph, plan)) {
    // Two copies of a value, and the group that stores it waits for one that reads it: rare, and one kernel a node is always right.
    if (!options.merge) return internal_error("the plan of graph @" + graph.name() + " is incomplete");
    FuseOptions apart = options;
    apart.merge = false;
    return fuse(graph, apart);
  }
  for (const Group& group : plan.groups)
    if (Result<Kernel> kernel = build(graph, group, {options.numerics}); !kernel) {
      Error error = kernel.error();
      error.kind = Error::internal;
      return error.note("while planning graph @" + graph.name());
    }
  return plan;
}

}  // namespace fusec
