#pragma once
// Graph: an immutable, hash-consed DAG of typed values. Equal subgraphs are one node, so common subexpressions cost nothing.
//
//   GraphBuilder b("scale");
//   Value x = b.input("x", {DType::f32, {Dim::symbol("N"), 4}});
//   Value y = b.add(Op::relu, {b.add(Op::mul, {x, b.scalar(DType::f32, 2.0)})});
//   Result<Graph> graph = std::move(b).finish({y});
//
// A pass takes a Graph and builds another; nothing is ever changed in place.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fusec/op.h"
#include "fusec/result.h"
#include "fusec/tensor_data.h"
#include "fusec/type.h"

namespace fusec {

/// Dense row-major data with known dims: constants, and what the reference evaluator computes on.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> extents;
  TensorData data;  // elements * bytes(dtype); bool is 0 or 1

  int64_t elements() const;
  bool operator==(const Tensor&) const = default;
};

/// Liberties of a composite's interior (docs/numerics.md); nodes written by a user have none.
enum Relax : uint8_t { kContract = 1, kReciprocal = 2, kOnline = 4, kFewerTerms = 8, kNear = 16 };

/// Everything about a node but its operands. Which fields an op reads is in its card; the others stay at their defaults.
/// The builder normalises them: axes are non-negative, ascending, without duplicates.
struct Attrs {
  std::vector<int64_t> axes;         // reductions, softmax family, norms, reverse
  std::vector<int64_t> perm;         // transpose
  Shape shape;                       // reshape, broadcast, iota: dims of the result
  std::vector<Dim> start, stop;      // slice, one an axis
  std::vector<int64_t> step;         // slice, one an axis, > 0
  std::vector<Dim> low, high;        // pad, one an axis, >= 0
  int64_t axis = 0;                  // concat, split, iota, batch_norm, scans
  int64_t groups = 1, ddof = 0, parts = 1, index = 0;
  double alpha = 0, beta = 0, eps = 0;
  std::optional<DType> to;           // cast, bitcast, iota (not given: f32); argmax, argmin (i64). A node's is given
  bool keep = false, last = false;
  bool exclusive = false, reverse = false;  // scans: without the element itself; from the end
  uint8_t relax = 0;                 // set of Relax
  std::shared_ptr<const Tensor> value;  // constant; pad: rank 0

  bool operator==(const Attrs& other) const;  // constants by bits: -0.0 and 0.0 differ, a NaN equals itself
  uint64_t hash() const;
};

using NodeId = uint32_t;

struct Node {
  Op op;
  Type type;
  std::vector<NodeId> args;            // earlier nodes
  std::shared_ptr<const Attrs> attrs;  // never null
};

/// A named operand or result.
struct Port {
  std::string name;
  NodeId node;
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  size_t size() const { return nodes_.size(); }
  /// Nodes are in topological order: operands come first.
  const Node& node(NodeId id) const { return nodes_[id]; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Port> inputs() const { return inputs_; }
  std::span<const Port> outputs() const { return outputs_; }
  /// Name given to a node by its author, or "": data for people, no part of its identity.
  const std::string& label(NodeId id) const { return labels_[id]; }
  /// How many operands and outputs refer to each node.
  std::vector<uint32_t> use_counts() const;
  /// For every node, the nodes that read it, ascending.
  std::vector<std::vector<NodeId>> users() const;
  bool is_scalar_constant(NodeId id) const;
  /// Symbols of all types, sorted.
  std::vector<std::string> symbols() const;
  /// The same bits for equal graphs in every process.
  uint64_t hash() const;

 private:
  friend class GraphBuilder;
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<std::string> labels_;
  std::vector<Port> inputs_, outputs_;
};

/// A node of a builder; an invalid one comes from an `add` that failed, and passes through further ones.
struct Value {
  NodeId id = ~NodeId{0};
  bool valid() const { return id != ~NodeId{0}; }
  bool operator==(const Value&) const = default;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  /// A new operand. Its name must be new; any bytes are allowed, at most 64 KB of them: names are data only.
  Value input(std::string name, Type type);
  Value constant(Tensor value);
  /// A rank-0 constant: `number` rounded once to `dtype` (integers: exact, else an error).
  Value scalar(DType dtype, double number);
  /// A node: the type is inferred (lib/ir/infer.cpp), attributes are normalised, an equal node is found again.
  /// An error is kept and reported by `finish`; the result is then invalid.
  Value add(Op op, std::vector<Value> args, Attrs attrs = {});
  Value cast(Value x, DType to);
  /// Names a value for people; the first name stays.
  void label(Value value, std::string name);

  const Node& node(Value value) const { return graph_.nodes_[value.id]; }
  const Type& type(Value value) const { return graph_.nodes_[value.id].type; }
  size_t size() const { return graph_.nodes_.size(); }
  /// The first error so far, if any.
  const Error* error() const { return error_ ? &*error_ : nullptr; }
  void fail(Error error);

  /// The graph with these outputs; nodes that no output needs are left out, inputs stay in their order.
  /// Empty names become "0", "1" …
  Result<Graph> finish(std::vector<Value> outputs, std::vector<std::string> names = {}) &&;

 private:
  Value intern(Node node);

  Graph graph_;
  std::unordered_multimap<uint64_t, NodeId> by_hash_;
  std::unordered_set<std::string> input_names_;
  std::optional<Error> error_;
};

/// Type of a node from its operands' types; `attrs` is normalised on the way. Errors name the op, the types and the axis.
Result<Type> infer(Op op, std::span<const Type> args, Attrs& attrs);

/// Is this a type a value may have: rank 0 … 8, no negative dim, fewer than 2^63 elements?
Status check_type(const Type& type);

/// Text to graph: one `graph @name(...)`. Errors carry line, column and the line's text. `file` names the text in errors.
Result<Graph> parse(std::string_view text, std::string_view file = "");
/// All graphs of a text, in order.
Result<std::vector<Graph>> parse_all(std::string_view text, std::string_view file = "");
/// Graph to text: stable names, always types; parse(print(g)) is g.
std::string print(const Graph& graph);
/// What every graph promises between passes: topological order, types that `infer` repeats, ranks 0 … 8, element counts
/// below 2^63, attributes normalised.
Status verify(const Graph& graph);

/// The reference evaluator: the meaning of the IR, slow and obvious. `inputs` in the graph's order.
Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs);
/// Sizes of the symbols from the inputs' extents; an error names the input and axis that does not fit.
Result<Sizes> bind(const Graph& graph, std::span<const std::vector<int64_t>> extents);

}  // namespace fusec
