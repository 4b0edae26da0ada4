// Types by trial: each row imports a node with operands of each type in turn. What no graph needs to show is the shape of
// the operands: kTrials says it for the operators that do not take any number of equal ones.

#include "lib/import/onnx_table.h"

#include <algorithm>
#include <sstream>

#include "lib/import/onnx_narrow.h"
#include "lib/import/onnx_ops.h"
#include "lib/import/onnx_tensor.h"
#include "lib/ir/convert.h"

namespace fusec::onnx {
namespace {

/// Operands, one a word. Of the type on trial: x f32[2,4,4,4]; m a matrix; c one number a channel; s a scalar; p a pair;
/// v a scalar that is known. Of others: b bool, i i64 and f f32 of x's shape; t, l i64[2,4,4] and i64[4]; g an f32 scalar;
/// [1,2] known i64 numbers; 3 a known i64 scalar.
/// Attributes: name=1, name=[1,2], name=word; name=T the type itself; name=V a tensor of it.
struct Trial {
  std::string_view op;
  int since;  // from this row on
  std::string_view operands, attributes;
};
constexpr Trial kTrials[] = {
    {"ArgMax", 1, "x", "axis=1"},
    {"ArgMin", 1, "x", "axis=1"},
    {"BatchNormalization", 7, "x c c c c", ""},
    {"BitCast", 26, "x", "to=T"},
    {"BitShift", 11, "x x", "direction=LEFT"},
    {"BlackmanWindow", 17, "3", "output_datatype=T"},
    {"Cast", 6, "x", "to=1"},
    {"CastLike", 15, "x f", ""},
    {"Concat", 4, "x x", "axis=0"},
    {"Constant", 1, "", "value=V"},
    {"ConstantOfShape", 9, "[2,3]", "value=V"},
    {"CumProd", 26, "x 1", ""},
    {"CumSum", 11, "x 1", ""},
    {"DepthToSpace", 1, "x", "blocksize=2"},
    {"DequantizeLinear", 10, "x g", ""},
    {"Expand", 8, "x [2,4,4,4]", ""},
    {"EyeLike", 9, "m", ""},
    {"Gather", 1, "x l", ""},
    {"GatherElements", 11, "x i", ""},
    {"GroupNormalization", 18, "x c c", "num_groups=4"},
    {"HammingWindow", 17, "3", "output_datatype=T"},
    {"HannWindow", 17, "3", "output_datatype=T"},
    {"InstanceNormalization", 6, "x c c", ""},
    {"LRN", 1, "x", "size=3"},
    {"LayerNormalization", 17, "x c", ""},
    {"Max", 6, "x x", ""},
    {"Mean", 6, "x x", ""},
    {"Min", 6, "x x", ""},
    {"Mod", 10, "x x", "fmod=1"},
    {"NegativeLogLikelihoodLoss", 12, "x t", ""},
    {"OneHot", 9, "t 3 p", ""},
    {"Pad", 2, "x", "pads=[1,0,0,0,0,0,0,0]"},
    {"Pad", 11, "x [1,0,0,0,0,0,0,0]", ""},
    {"QuantizeLinear", 10, "x s", ""},
    {"RMSNormalization", 23, "x c", ""},
    {"Range", 11, "v v v", ""},
    {"Reshape", 5, "x [-1]", ""},
    {"ReverseSequence", 10, "x l", ""},
    {"Slice", 1, "x", "starts=[0] ends=[1]"},
    {"Slice", 10, "x [0] [1]", ""},
    {"SoftmaxCrossEntropyLoss", 12, "x t", ""},
    {"SpaceToDepth", 1, "x", "blocksize=2"},
    {"Split", 2, "x", ""},
    {"Sum", 6, "x x", ""},
    {"Tile", 6, "x [1,1,2,1]", ""},
    {"Unsqueeze", 1, "x", "axes=[0]"},
    {"Unsqueeze", 13, "x [0]", ""},
    {"Where", 9, "b x x", ""},
};

Trial trial_of(const OpRow& row) {
  Trial out{row.op, 0, "", ""};
  for (const Trial& t : kTrials)
    if (t.op == row.op && t.since <= row.since) out = t;
  return out;
}

/// A type on trial, as TensorProto names it.
struct TrialType {
  int32_t data_type;
  DType dtype;  // held
};

std::vector<int64_t> list(std::string_view text) {
  std::vector<int64_t> out;
  std::stringstream in{std::string(text.substr(1, text.size() - 2))};
  for (std::string word; std::getline(in, word, ',');) out.push_back(std::stoll(word));
  return out;
}

Tensor one(const TrialType& type) { return *scalar_tensor(type.dtype, 1); }

Item operand(GraphBuilder& b, const std::string& word, const TrialType& type, size_t k) {
  const std::string name = "x" + std::to_string(k);
  const Shape x{2, 4, 4, 4};
  const auto own = [&](Shape shape) {
    Item item{b.input(name, {type.dtype, std::move(shape)}), nullptr, nullptr};
    if (narrow_type(type.data_type)) item.narrow = type.data_type;
    return item;
  };
  const auto other = [&](DType dtype, Shape shape) { return Item{b.input(name, {dtype, std::move(shape)}), nullptr, nullptr}; };
  const auto known = [&](Tensor t) {
    Item item;
    item.known = std::make_shared<const Tensor>(std::move(t));
    return item;
  };
  switch (word[0]) {
    case 'x': return own(x);
    case 'm': return own({4, 4});
    case 'c': return own({4});
    case 's': return own({});
    case 'p': return own({2});
    case 'v': {
      Item item = known(one(type));
      if (narrow_type(type.data_type)) item.narrow = type.data_type;
      return item;
    }
    case 'b': return other(DType::boolean, x);
    case 'i': return other(DType::i64, x);
    case 'f': return other(DType::f32, x);
    case 't': return other(DType::i64, {2, 4, 4});
    case 'l': return other(DType::i64, {4});
    case 'g': return other(DType::f32, {});
    case '[': return known(int_tensor(list(word)));
    default: return known(int_tensor({std::stoll(word)}, true));
  }
}

Attribute attribute(std::string_view name, std::string_view text, const TrialType& type, const std::string& tensor) {
  Attribute a{.name = name};
  if (text == "V") {
    a.kind = Attribute::tensor;
    a.t = {.data_type = type.data_type, .message = tensor};
  } else if (text == "T") {
    a.kind = Attribute::integer, a.i = type.data_type;
  } else if (text[0] == '[') {
    a.kind = Attribute::integers, a.ints = list(text);
  } else if (text[0] >= '0' && text[0] <= '9') {
    a.kind = Attribute::integer, a.i = std::stoll(std::string(text));
  } else {
    a.kind = Attribute::string, a.s = text;
  }
  return a;
}

bool takes(const OpRow& row, const TrialType& type) {
  if (!row.import) return false;
  const Trial trial = trial_of(row);
  std::string operands(trial.operands);
  if (!trial.since)
    for (int k = 0; k < row.min_inputs; ++k) operands += " x";
  GraphBuilder b("");
  std::vector<Item> items;
  std::stringstream words(operands);
  for (std::string word; words >> word;) items.push_back(operand(b, word, type, items.size()));
  std::vector<Item*> pointers;
  for (Item& item : items) pointers.push_back(&item);
  for (const Item* item : pointers)
    if (item->narrow && row.narrow == Narrow::refuse) return false;

  const NarrowType* narrow = narrow_type(type.data_type);
  const Tensor number = narrow ? Tensor{DType::u8, {1}, std::vector<std::byte>(1)} : Tensor{type.dtype, {1}, one(type).data};
  const std::string tensor = write_tensor("", number, narrow ? type.data_type : 0);
  NodeMessage node{.op = row.op, .outputs = {"y"}};
  std::stringstream attributes{std::string(trial.attributes)};
  std::vector<std::string> kept;  // what the views of the attributes point into
  for (std::string word; attributes >> word;) kept.push_back(word);
  for (const std::string& word : kept) {
    const size_t at = word.find('=');
    node.attributes.push_back(attribute(std::string_view(word).substr(0, at), std::string_view(word).substr(at + 1), type, tensor));
  }
  TensorSource nowhere{nullptr, DataFiles("")};
  Call call(b, node, row, std::max(row.since, 7), nowhere, std::move(pointers));
  row.import(call);
  return !call.failed() && (call.outputs[0].known || call.outputs[0].dims || call.outputs[0].value.valid());
}

/// Types by group, in the order of the text; a group is named when all of it is taken.
struct TypeGroup {
  std::string_view name;
  std::vector<std::pair<std::string_view, TrialType>> types;
};
const std::vector<TypeGroup>& groups() {
  static const std::vector<TypeGroup> kGroups = {
      {"bool", {{"bool", {9, DType::boolean}}}},
      {"ints", {{"i8", {3, DType::i8}}, {"i16", {5, DType::i16}}, {"i32", {6, DType::i32}}, {"i64", {7, DType::i64}},
                {"u8", {2, DType::u8}}, {"u16", {4, DType::u16}}, {"u32", {12, DType::u32}}, {"u64", {13, DType::u64}}}},
      {"floats", {{"f16", {10, DType::f16}}, {"bf16", {16, DType::bf16}}, {"f32", {1, DType::f32}}, {"f64", {11, DType::f64}}}},
      {"f8", {{"f8e4m3fn", {17, DType::f8e4m3}}, {"f8e5m2", {19, DType::f8e5m2}}}},
      {"narrow", {{"f8e4m3fnuz", {18, DType::f16}}, {"f8e5m2fnuz", {20, DType::f16}}, {"f8e8m0", {24, DType::bf16}}, {"f4e2m1", {23, DType::f8e4m3}},
                  {"i4", {22, DType::i8}}, {"u4", {21, DType::u8}}, {"i2", {26, DType::i8}}, {"u2", {25, DType::u8}}}},
  };
  return kGroups;
}

std::string types_of(const OpRow& row) {
  std::string out;
  const auto put = [&](std::string_view name) { out += (out.empty() ? "" : " ") + std::string(name); };
  for (const TypeGroup& group : groups()) {
    std::vector<std::string_view> taken;
    for (const auto& [name, type] : group.types)
      if (takes(row, type)) taken.push_back(name);
    if (taken.size() == group.types.size()) put(group.name);
    else for (std::string_view name : taken) put(name);
  }
  return out.empty() ? "-" : out;
}

std::string padded(std::string text, size_t width) { return text.append(text.size() < width ? width - text.size() : 1, ' '); }

}  // namespace

std::string operator_table() {
  std::string out = padded("operator", 28) + padded("operator sets", 20) + "element types\n";
  const std::span<const OpRow> rows = all_rows();
  for (size_t first = 0; first < rows.size();) {
    size_t last = first;
    std::string sets = std::to_string(rows[first].since);
    for (; last + 1 < rows.size() && rows[last + 1].op == rows[first].op; ++last) sets += " " + std::to_string(rows[last + 1].since);
    out += padded(std::string(rows[first].op), 28) + padded(sets, 20) + types_of(rows[last]) + "\n";
    first = last + 1;
  }
  return out;
}

}  // namespace fusec::onnx
