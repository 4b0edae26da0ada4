// Bottom-up: every node is made in normal form, then tried against the rules of its op; what a rule puts is made the same way.
//
//   %a = add %x, 1.0     %b = add %a, 2.0   →   %b: add-const fires, puts add %x, 3.0   →   tried again, quiet

#include "lib/rewrite/rewriter.h"

#include "lib/ir/rebuild.h"
#include "lib/rewrite/canonical.h"
#include "lib/rewrite/match.h"

namespace fusec {
namespace {

// What a rule puts may fire in turn. Beyond this many firings inside one another a node waits for the next sweep, which bounds
// the stack: about 1 KB a level.
constexpr int kMaxNesting = 48;

class Sweep {
 public:
  Sweep(const Graph& graph, const RuleSet& rules, Numerics numerics, RuleControl& control)
      : graph_(graph), b_(graph.name()), rules_(rules), numerics_(numerics), control_(control) {}

  Result<Graph> run() {
    const std::vector<uint32_t> uses = graph_.use_counts();
    Result<Graph> result = rebuild(graph_, b_, [&](NodeId id, std::vector<Value> args) {
      const Node& node = graph_.node(id);
      const Value value = make(node.op, std::move(args), *node.attrs);
      if (value.valid()) {
        reads_.resize(std::max<size_t>(reads_.size(), value.id + 1));
        reads_[value.id] += uses[id];
      }
      return value;
    });
    if (!result && rule_) return result.error().note("while applying rule " + rule_->name);
    return result;
  }

 private:
  Value make(Op op, std::vector<Value> args, Attrs attrs) {
    const Value value = add_canonical(b_, op, std::move(args), std::move(attrs));
    return value.valid() ? simplified(value) : value;
  }

  Value simplified(Value value) {
    if (value.id < quiet_.size() && quiet_[value.id]) return value;
    if (nesting_ >= kMaxNesting) return value;
    nesting_++;
    const Value result = fire(value);
    nesting_--;
    if (result == value) {
      quiet_.resize(std::max<size_t>(quiet_.size(), value.id + 1));
      quiet_[value.id] = true;
    }
    return result;
  }

  Value fire(Value value) {
    const ReadOnce once = [&](Value v) { return v.id >= reads_.size() || reads_[v.id] <= 1; };
    for (const RewriteRule* rule : rules_.at(b_.node(value).op)) {
      if (!control_.may_fire(rule->name)) continue;
      const std::optional<Match> found = match(*rule, b_, value, numerics_, once);
      if (!found) continue;
      control_.count(rule->name);
      rule_ = rule;
      const Make maker = [&](Op op, std::vector<Value> args, Attrs attrs) { return make(op, std::move(args), std::move(attrs)); };
      const std::optional<Value> put = build(rule->put, *found, b_, b_.type(value), maker);
      if (b_.error()) return {};
      if (put) return *put;
      control_.uncount(rule->name);
    }
    return value;
  }

  const Graph& graph_;
  GraphBuilder b_;
  const RuleSet& rules_;
  const Numerics numerics_;
  RuleControl& control_;
  std::vector<uint32_t> reads_;  // by new value: readers in the old graph, of the nodes met so far
  std::vector<bool> quiet_;      // by new value: no rule fires there
  const RewriteRule* rule_ = nullptr;
  int nesting_ = 0;
};

}  // namespace

RuleSet::RuleSet(const std::vector<const std::vector<RewriteRule>*>& lists) {
  for (const auto* list : lists)
    for (const RewriteRule& rule : *list) {
      by_op_[size_t(rule.find.op)].push_back(&rule);
      if (rule.find.op == Op::bitwise_not) by_op_[size_t(Op::not_)].push_back(&rule);  // ~ stands for both
    }
}

Result<Graph> rewrite(const Graph& graph, const RuleSet& rules, Numerics numerics, RuleControl& control) {
  Graph current = graph;
  for (;;) {
    const int64_t before = control.fired;
    Result<Graph> next = Sweep(current, rules, numerics, control).run();
    if (!next || control.fired == before) return next;
    current = std::move(*next);
  }
}

Weight weight(Op op) {
  switch (op) {
    case Op::pow: return {4 + 4 * info(op).cost, 2};
    case Op::broadcast: return {1, 1};
    case Op::sub: return {10, 1};        // x - c becomes x + -c
    case Op::clamp: return {16, 1};      // min(relu(x), c) becomes clamp(x, 0, c)
    case Op::reciprocal: return {32, 1};  // 1 / x becomes reciprocal(x)
    case Op::rsqrt: return {24, 1};      // x / sqrt(y) becomes x * rsqrt(y)
    case Op::eq:
    case Op::ne: return {6, 1};          // unsigned x > 0 becomes x != 0
    case Op::is_nan: return {2, 1};      // x != x becomes is_nan(x)
    case Op::not_:
    case Op::bitwise_not: return {4, 1};  // x == x becomes ~is_nan(x)
    default: return {4 + 4 * info(op).cost, 1};
  }
}

}  // namespace fusec
