//   %m = reduce_max %x, axes=[1], keep     %e = exp (sub %x, %m)     %s = sum %e, axes=[1], keep     %y = div %e, %s
//     →   %y = softmax %x, axes=[1]
//
// Each function asks one question of one node and answers with the composite, or not. Known limits: a mask multiplied in between, casts
// between the parts, and statistics over a reshaped copy of x are not looked through.

#include "lib/passes/recognise.h"

#include <charconv>
#include <cmath>

#include "lib/ir/convert.h"
#include "lib/ir/rebuild.h"
#include "lib/passes/row_value.h"
#include "lib/passes/rules.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

struct Found {
  Op op;
  std::vector<NodeId> args;
  Attrs attrs;
};
using Maybe = std::optional<Found>;
using Axes = std::vector<int64_t>;

Found over(Op op, NodeId x, const Axes& axes, double eps = 0) {
  Found f{op, {x}, {}};
  f.attrs.axes = axes;
  f.attrs.eps = eps;
  return f;
}

/// The reduction that stands beside elements of the shape `x` (row_value.h), whatever its axes; null when it does not line up.
const Node* reduction_beside(const Graph& g, NodeId id, Op op, const Shape& x) {
  NodeId below = id;
  while (g.node(below).op == Op::broadcast || g.node(below).op == Op::reshape) below = g.node(below).args[0];
  const Node& n = g.node(below);
  if (n.op != op) return nullptr;
  return row_value(g, id, x, n.attrs->axes) == &n ? &n : nullptr;
}

/// exp(x - max of x over `axes`): x. exp(y) is taken as exp of y itself, not shifted.
struct Exponential {
  NodeId x;
  bool shifted;
};
Exponential exponential(const Graph& g, const Node& e, const Axes& axes) {
  const NodeId inner = e.args[0];
  const Node& sub = g.node(inner);
  if (sub.op == Op::sub && g.node(sub.args[0]).type == e.type) {
    const Node* max = row_value(g, sub.args[1], e.type.shape, axes);
    if (max && max->op == Op::reduce_max && max->args[0] == sub.args[0] && max->attrs->axes == axes) return {sub.args[0], true};
  }
  return {inner, false};
}

Maybe softmax(const Graph& g, const Node& n) {  // e / sum of e
  if (n.op != Op::div || g.node(n.args[0]).op != Op::exp) return std::nullopt;
  const Node& e = g.node(n.args[0]);
  const Node* sum = reduction_beside(g, n.args[1], Op::sum, e.type.shape);
  if (!sum || sum->args[0] != n.args[0] || !(n.type == e.type)) return std::nullopt;
  return over(Op::softmax, exponential(g, e, sum->attrs->axes).x, sum->attrs->axes);
}

Maybe log_softmax(const Graph& g, const Node& n) {
  if (n.op == Op::log && g.node(n.args[0]).op == Op::softmax)
    return over(Op::log_softmax, g.node(n.args[0]).args[0], g.node(n.args[0]).attrs->axes);
  if (n.op != Op::sub || !(g.node(n.args[0]).type == n.type)) return std::nullopt;
  // t - log(sum of exp(t)): with t = x - max the max drops out, and without it the composite brings its own.
  NodeId log = n.args[1];
  while (g.node(log).op == Op::broadcast || g.node(log).op == Op::reshape) log = g.node(log).args[0];
  if (g.node(log).op != Op::log) return std::nullopt;
  const Node* sum = reduction_beside(g, g.node(log).args[0], Op::sum, n.type.shape);
  if (!sum || row_value(g, n.args[1], n.type.shape, sum->attrs->axes) != &g.node(log)) return std::nullopt;
  const Node& e = g.node(sum->args[0]);
  if (e.op != Op::exp || e.args[0] != n.args[0]) return std::nullopt;
  return over(Op::log_softmax, exponential(g, e, sum->attrs->axes).x, sum->attrs->axes);
}

Maybe logsumexp(const Graph& g, const Node& n) {
  const bool adds_max = n.op == Op::add;
  for (int order = 0; order < (adds_max ? 2 : 1); order++) {
    const NodeId log = adds_max ? n.args[order ? 0 : 1] : 0;
    const Node& l = adds_max ? g.node(log) : n;
    if (l.op != Op::log || g.node(l.args[0]).op != Op::sum) continue;
    const Node& sum = g.node(l.args[0]);
    const Node& e = g.node(sum.args[0]);
    if (e.op != Op::exp) continue;
    const Exponential inner = exponential(g, e, sum.attrs->axes);
    if (inner.shifted != adds_max) continue;
    if (adds_max) {
      const Node& max = g.node(n.args[order ? 1 : 0]);
      if (max.op != Op::reduce_max || max.args[0] != inner.x || max.attrs->axes != sum.attrs->axes) continue;
      if (!(max.type == sum.type)) continue;
    }
    Found f = over(Op::logsumexp, inner.x, sum.attrs->axes);
    f.attrs.keep = sum.attrs->keep;
    return f;
  }
  return std::nullopt;
}

/// y as a square (simplify has made pow(x, 2) one): what is squared.
std::optional<NodeId> squared(const Graph& g, NodeId y) {
  const Node& n = g.node(y);
  return n.op == Op::mul && n.args[0] == n.args[1] ? std::optional(n.args[0]) : std::nullopt;
}

/// The number that people would write for a constant: 1e-05, not its f32 neighbour 9.999999747378752e-06.
double shortest(const Tensor& t) {
  double number = element(t, 0);
  if (t.dtype == DType::f64) return number;
  const std::string text = number_text(float(number));
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// d * rsqrt(v + eps), d * reciprocal(sqrt(v + eps)) or d / sqrt(v + eps).
struct Normalised {
  NodeId d;
  NodeId v;  // behind its views and + eps
  double eps;
};
std::optional<Normalised> normalised(const Graph& g, const Node& n) {
  if (n.op != Op::mul && n.op != Op::div) return std::nullopt;
  const auto below = [&](NodeId id) {
    while (g.node(id).op == Op::broadcast || g.node(id).op == Op::reshape) id = g.node(id).args[0];
    return id;
  };
  for (int order = 0; order < (n.op == Op::mul ? 2 : 1); order++) {
    NodeId root = below(n.args[order ? 0 : 1]);
    const bool inverse = g.node(root).op == Op::reciprocal;
    if (inverse && n.op == Op::mul) root = below(g.node(root).args[0]);
    const Op wanted = n.op == Op::mul && !inverse ? Op::rsqrt : Op::sqrt;
    if (g.node(root).op != wanted) continue;
    Normalised out{n.args[order ? 1 : 0], below(g.node(root).args[0]), 0};
    const Node& sum = g.node(out.v);
    if (sum.op == Op::add && g.is_scalar_constant(sum.args[1])) {
      out.eps = shortest(*g.node(sum.args[1]).attrs->value);
      out.v = below(sum.args[0]);
    }
    if (out.eps >= 0 && std::isfinite(out.eps)) return out;
  }
  return std::nullopt;
}

/// Axes of a mean (composite, or a sum divided), with what it is the mean of.
const Node* mean_sum(const Graph& g, const Node& mean) {
  if (mean.op == Op::mean) return &mean;
  if (mean.op != Op::div && mean.op != Op::mul) return nullptr;
  const Node& sum = g.node(mean.args[0]);
  return sum.op == Op::sum ? &sum : nullptr;
}

/// Do the rows of the factor line up with those of d? The whole way from n's operand to the statistic is elementwise on row shapes.
bool lines_up(const Graph& g, const Node& n, NodeId d, const Axes& axes) {
  const NodeId factor = n.args[0] == d && n.args.size() > 1 ? n.args[1] : n.args[0];
  return row_value(g, factor, g.node(d).type.shape, axes) != nullptr;
}

Maybe rms_norm(const Graph& g, const Node& n) {
  const std::optional<Normalised> parts = normalised(g, n);
  if (!parts || !(g.node(parts->d).type == n.type)) return std::nullopt;
  const Node* mean = mean_sum(g, g.node(parts->v));
  if (!mean || squared(g, mean->args[0]) != parts->d) return std::nullopt;
  const Axes& axes = mean->attrs->axes;
  if (!is_mean(g, g.node(parts->v), mean->args[0], axes) || !lines_up(g, n, parts->d, axes)) return std::nullopt;
  return over(Op::rms_norm, parts->d, axes, parts->eps);
}

Maybe layer_norm(const Graph& g, const Node& n) {
  const std::optional<Normalised> parts = normalised(g, n);
  if (!parts || !(g.node(parts->d).type == n.type)) return std::nullopt;
  const Node& deviation = g.node(parts->d);
  if (deviation.op != Op::sub || !(g.node(deviation.args[0]).type == n.type)) return std::nullopt;
  const NodeId x = deviation.args[0];
  const Node& v = g.node(parts->v);
  Axes axes;
  if (v.op == Op::var && v.args[0] == x && v.attrs->ddof == 0) {
    axes = v.attrs->axes;
  } else {
    const Node* mean = mean_sum(g, v);
    if (!mean || squared(g, mean->args[0]) != parts->d) return std::nullopt;
    axes = mean->attrs->axes;
    if (!is_mean(g, v, mean->args[0], axes)) return std::nullopt;
  }
  const Node* mean = row_value(g, deviation.args[1], n.type.shape, axes);
  if (!mean || !is_mean(g, *mean, x, axes) || !lines_up(g, n, parts->d, axes)) return std::nullopt;
  return over(Op::layer_norm, x, axes, parts->eps);
}

Maybe find(const Graph& g, const Node& n) {
  if (!is_float(n.type.dtype)) return std::nullopt;
  for (auto question : {softmax, log_softmax, logsumexp, layer_norm, rms_norm})
    if (Maybe found = question(g, n)) return found;
  return std::nullopt;
}

/// y * scale and y + bias become operands of the norm that y is, when nothing else reads y.
struct Affine {
  const Graph& graph;
  GraphBuilder& b;
  const std::vector<uint32_t>& uses;

  Value absorbed(const Node& node, const std::vector<Value>& args) const {
    if (node.op != Op::mul && node.op != Op::add) return {};
    for (size_t k = 0; k < 2; k++) {
      const Node& norm = b.node(args[k]);
      const bool is_norm = norm.op == Op::layer_norm || norm.op == Op::rms_norm;
      const size_t wanted = node.op == Op::mul ? 1 : 2;  // operands that the norm has when this one is next
      if (!is_norm || norm.args.size() != wanted || wanted >= size_t(info(norm.op).arity)) continue;
      if (uses[node.args[k]] != 1 || !(norm.type == node.type)) continue;
      if (b.type(args[1 - k]).shape == norm.type.shape) continue;  // a whole tensor is no parameter
      std::vector<Value> operands;
      for (NodeId arg : norm.args) operands.push_back({arg});
      operands.push_back(args[1 - k]);
      return b.add(norm.op, std::move(operands), Attrs(*norm.attrs));
    }
    return {};
  }
};

Result<Graph> recognise_reductions(const Graph& graph, RuleControl& rules) {
  GraphBuilder b(graph.name());
  const std::vector<uint32_t> uses = graph.use_counts();
  std::vector<Value> values;
  const Affine affine{graph, b, uses};
  return rebuild(graph, b, values, [&](NodeId id, std::vector<Value> args) {
    const Node& node = graph.node(id);
    if (rules.may_fire("recognise")) {
      if (Maybe found = find(graph, node)) {
        rules.count("recognise");
        std::vector<Value> operands;
        for (NodeId arg : found->args) operands.push_back(values[arg]);
        return b.add(found->op, std::move(operands), std::move(found->attrs));
      }
      if (const Value norm = affine.absorbed(node, args); norm.valid()) {
        rules.count("recognise");
        return norm;
      }
    }
    return b.add(node.op, std::move(args), *node.attrs);
  });
}

}  // namespace

Result<Graph> recognise(const Graph& graph, PassContext& context) {
  if (context.numerics == Numerics::strict) return graph;
  static const RuleSet rules({&activations()});
  Result<Graph> first = rewrite(graph, rules, context.numerics, context.rules);
  if (!first) return first;
  return recognise_reductions(*first, context.rules);
}

}  // namespace fusec
