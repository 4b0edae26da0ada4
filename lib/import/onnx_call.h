#pragma once
// One node of an ONNX file on its way into a graph: what an operator's import function sees.
//
//   void softsign(Call& c) {
//     const Value x = c.in(0);
//     c.out(c.add(Op::div, {x, c.add(Op::add, {c.add(Op::abs, {x}), c.like(x, 1)})}));
//   }
//
// Errors stick to the builder: after a failure values are invalid and pass through, so import functions seldom test
// for them.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/graph.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_tensor.h"

namespace fusec::onnx {

class Quotients;

/// What is known about one value of the file.
struct Item {
  Value value;                          // in the graph; invalid as long as nobody reads it there
  std::shared_ptr<const Tensor> known;  // its bits, where import knows them
  /// A scalar or vector of i64, or i32 behind a Cast, whose elements are dims: what Shape gives and shape arithmetic makes of it.
  std::shared_ptr<const std::vector<Dim>> dims;
  bool dims_scalar = false;
  DType dims_type = DType::i64;
  /// TensorProto.DataType of a narrow type whose numbers these are (onnx_narrow.h); 0 when the dtype says it all.
  int32_t narrow = 0;

  bool constant() const { return known != nullptr; }
};

/// What an operator does with operands of narrow types: most take none; some move the first one's elements and give its
/// type on; some look for themselves.
enum class Narrow : uint8_t { refuse, pass, handle };

/// A row of the operator tables: one operator from one version of the operator set on, until its next row.
class Call;
struct OpRow {
  std::string_view op;
  int since;                    // first version with this row's attributes and meaning
  int min_inputs, max_inputs;   // kAny = no limit
  int max_outputs;
  std::string_view attributes;  // names it takes, separated by spaces; any other is an error
  void (*import)(Call&);
  Narrow narrow = Narrow::refuse;
};
inline constexpr int kAny = 1 << 30;

class Call {
 public:
  Call(GraphBuilder& builder, const NodeMessage& node, const OpRow& row, int opset, TensorSource& source,
       std::vector<Item*> inputs)
      : b(builder),
        node(node),
        row(row),
        opset(opset),
        source(source),
        outputs(node.outputs.size()),
        inputs_(std::move(inputs)) {}

  GraphBuilder& b;
  const NodeMessage& node;
  const OpRow& row;
  const int opset;
  TensorSource& source;
  std::vector<Item> outputs;
  Quotients* quotients = nullptr;  // where dims that are no polynomials get symbols; null: they have none

  // --- operands -----------------------------------------------------------------------------------------------------
  size_t size() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  const Item& item(size_t i) const { return *inputs_[i]; }
  /// Its narrow type, or 0.
  int32_t narrow(size_t i) const { return has(i) ? item(i).narrow : 0; }
  /// Operand `i` in the graph.
  Value in(size_t i);
  /// Bits of an operand that has to be known while the graph is built; null, with an error, when they are not.
  const Tensor* known(size_t i);
  /// Elements of a known integer operand; nullopt, with an error, when it is unknown or of another type.
  std::optional<std::vector<int64_t>> ints(size_t i);
  /// Elements of a shape operand: known numbers, or dims from shape arithmetic.
  std::optional<std::vector<Dim>> dims(size_t i);
  /// One integer operand.
  std::optional<int64_t> integer(size_t i);
  /// Which operand was asked for and is unknown: the importer may make it known and try again.
  std::optional<size_t> needed() const { return needed_; }

  // --- attributes: value, or the default when absent
  // ------------------------------------------------------------------
  const Attribute* attribute(std::string_view name) const;
  bool given(std::string_view name) const { return attribute(name) != nullptr; }
  int64_t i(std::string_view name, int64_t absent);
  double f(std::string_view name, double absent);
  std::string_view s(std::string_view name, std::string_view absent);
  std::optional<std::vector<int64_t>> list(std::string_view name);
  /// An error when it is absent.
  int64_t required(std::string_view name);

  // --- building
  // -------------------------------------------------------------------------------------------------------
  const Type& type(Value v) const;
  const Shape& shape(Value v) const { return type(v).shape; }
  DType dtype(Value v) const { return type(v).dtype; }
  int64_t rank(Value v) const { return static_cast<int64_t>(shape(v).size()); }
  Value add(Op op, std::vector<Value> args, Attrs attrs = {}) { return b.add(op, std::move(args), std::move(attrs)); }
  Value cast(Value x, DType to) { return x.valid() && dtype(x) == to ? x : b.cast(x, to); }
  /// A scalar of x's dtype.
  Value like(Value x, double number) { return x.valid() ? b.scalar(dtype(x), number) : Value{}; }
  Value reshape(Value x, Shape to);
  Value broadcast(Value x, Shape to);
  Value transpose(Value x, std::vector<int64_t> perm);
  Value reduce(Op op, Value x, std::vector<int64_t> axes, bool keep);
  /// Axis of a value of that rank, counted from the front; an error, and 0, when out of range.
  int64_t axis(int64_t axis, int64_t rank);
  /// Sorted; an error on repetition.
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank);
  /// A dim that has to be a number here.
  int64_t number(const Dim& dim, std::string_view what);

  // --- results
  // --------------------------------------------------------------------------------------------------------
  bool wants(size_t k) const { return k < node.outputs.size() && !node.outputs[k].empty(); }
  void out(Value v, size_t k = 0);
  /// The same, of a narrow type (or 0).
  void out_narrow(Value v, int32_t data_type);
  void out(Tensor tensor);
  void out(std::vector<Dim> dims, bool scalar);
  void fail(std::string message) { b.fail(input_error(std::move(message))); }
  bool failed() const { return b.error() != nullptr; }

 private:
  std::vector<Item*> inputs_;  // null = left out
  std::optional<size_t> needed_;
};

/// The value in the graph; a constant or sizes are put there when somebody first asks.
Value value_of(GraphBuilder& b, Item& item);
/// An i64 tensor of rank 1, or 0 when `scalar`.
Tensor int_tensor(const std::vector<int64_t>& values, bool scalar = false);
/// Elements of an i64 or i32 tensor; nullopt for other types.
std::optional<std::vector<int64_t>> int_values(const Tensor& tensor);
/// The dims of a known i64 or i32 tensor of rank 0 or 1, or of shape arithmetic; nullopt otherwise.
std::optional<std::vector<Dim>> dims_of(const Item& item);

}  // namespace fusec::onnx
