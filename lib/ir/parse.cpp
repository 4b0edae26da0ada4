// Text to graph. One pass over the text, one token of look-ahead, no recursion: depth costs nothing.
//
//   graph @scale(%x: f32[N,4]) -> f32[N,4] {
//     %y = mul %x, 0.5            ; the literal takes the type of %x; a type after %y is checked when given
//     return y=%y
//   }
//
// Limits are those of lib/support/limits.h. Errors carry line, column and the line's text.

#include <stdexcept>
#include <unordered_map>

#include "fusec/graph.h"
#include "lib/ir/literal.h"
#include "lib/ir/text_form.h"
#include "lib/support/caught.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

/// An operand as written: a value, or a literal whose type its neighbours tell.
struct Operand {
  Value value;
  std::string_view literal;
  size_t at;
};

class Parser {
 public:
  explicit Parser(Cursor& cursor) : cursor_(cursor) {}
  Result<Graph> graph();

 private:
  Status header();
  Status results();
  Status statement();
  Result<Graph> returns();

  Result<std::string> value_name();
  Result<Value> use();
  Result<std::vector<Operand>> operands();
  Result<std::vector<Value>> type_literals(Op op, const std::vector<Operand>& operands);
  Status attributes(Op op, const std::vector<Value>& args, Attrs& attrs);
  Status attribute(Op op, std::string_view field, const std::vector<Value>& args, Attrs& attrs);
  Result<int64_t> integer();
  Result<std::vector<int64_t>> integers();
  Result<double> number();
  Result<bool> boolean();
  Result<uint8_t> relax();

  Cursor& cursor_;
  std::optional<GraphBuilder> builder_;
  std::vector<Type> results_;
  std::unordered_map<std::string, Value> values_;  // keyed as value_name() gives them
};

/// Names and numbers live apart: %0 is a number of the printer, %"0" a name.
std::string key_of(std::string name, bool quoted) {
  const bool numbered = !quoted && name[0] >= '0' && name[0] <= '9';
  return (numbered ? '#' : '%') + std::move(name);
}

/// The name that a key gives to a value, "" for numbers.
std::string label_of(const std::string& key) { return key[0] == '#' ? "" : key.substr(1); }

Result<std::string> Parser::value_name() {
  if (auto sign = cursor_.expect("%", "before the name of a value"); !sign) return sign.error();
  const bool quoted = cursor_.peek() == '"';
  auto name = cursor_.name("the name of a value");
  if (!name) return name.error();
  return key_of(std::move(*name), quoted);
}

Result<Value> Parser::use() {
  const size_t at = cursor_.here();
  auto key = value_name();
  if (!key) return key.error();
  const auto found = values_.find(*key);
  if (found == values_.end()) return cursor_.error_at(at, "%" + brief(key->substr(1)) + " is not defined before this");
  return found->second;
}

Status Parser::header() {
  if (!cursor_.take_word("graph")) return cursor_.error("expected 'graph @name(…)', not " + cursor_.found());
  if (auto at = cursor_.expect("@", "before the graph's name"); !at) return at;
  auto name = cursor_.name("the graph's name");
  if (!name) return name.error();
  builder_.emplace(std::move(*name));
  if (auto open = cursor_.expect("(", "before the inputs"); !open) return open;
  if (cursor_.take(")")) return results();
  do {
    const size_t at = cursor_.here();
    auto key = value_name();
    if (!key) return key.error();
    if (auto colon = cursor_.expect(":", "between an input and its type"); !colon) return colon;
    auto type = cursor_.type();
    if (!type) return type.error();
    if (builder_->size() >= size_t{kMaxNodes}) return cursor_.error_at(at, "more than 1,000,000 nodes");
    const Value value = builder_->input(key->substr(1), std::move(*type));
    if (!value.valid()) return cursor_.error_at(at, builder_->error()->message);
    values_.emplace(std::move(*key), value);
  } while (cursor_.take(","));
  if (auto close = cursor_.expect(")", "after the inputs"); !close) return close;
  return results();
}

Status Parser::results() {
  if (auto arrow = cursor_.expect("->", "before the result types"); !arrow) return arrow;
  if (!cursor_.take("(")) {
    auto type = cursor_.type();
    if (!type) return type.error();
    results_.push_back(std::move(*type));
  } else if (!cursor_.take(")")) {
    do {
      auto type = cursor_.type();
      if (!type) return type.error();
      results_.push_back(std::move(*type));
    } while (cursor_.take(","));
    if (auto close = cursor_.expect(")", "after the result types"); !close) return close;
  }
  return cursor_.expect("{", "before the first node");
}

Result<std::vector<Operand>> Parser::operands() {
  std::vector<Operand> list;
  if (cursor_.peek() != '%' && !cursor_.at_literal()) return list;
  do {
    const size_t at = cursor_.here();
    if (cursor_.at_literal()) {
      list.push_back({{}, cursor_.literal(), at});
      continue;
    }
    auto value = use();
    if (!value) return value.error();
    list.push_back({*value, {}, at});
  } while (cursor_.take(","));
  return list;
}

Result<std::vector<Value>> Parser::type_literals(Op op, const std::vector<Operand>& operands) {
  std::vector<Value> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = operands[i];
    if (o.value.valid()) {
      values.push_back(o.value);
      continue;
    }
    std::optional<DType> type;
    for (size_t j = 0; j < operands.size() && !type; ++j)
      if (operands[j].value.valid() && types_literal(op, i, j)) type = builder_->type(operands[j].value).dtype;
    if (!type && (o.literal == "true" || o.literal == "false")) type = DType::boolean;
    if (!type)
      return cursor_.error_at(o.at, std::string(name(op)) + ": the type of the literal " + std::string(o.literal.substr(0, 64)) +
                                        " cannot be told: write %c = constant {value=f32[] …}");
    Tensor t{*type, {}, std::vector<std::byte>(bytes(*type))};
    if (auto done = parse_element(*type, o.literal, t.data.data()); !done)
      return cursor_.error_at(o.at, std::string(name(op)) + ": " + done.error().message);
    values.push_back(builder_->constant(std::move(t)));
  }
  return values;
}

Result<int64_t> Parser::integer() {
  const size_t at = cursor_.here();
  int64_t value = 0;
  if (auto done = parse_element(DType::i64, cursor_.literal(), reinterpret_cast<std::byte*>(&value)); !done)
    return cursor_.error_at(at, "expected a whole number");
  return value;
}

Result<std::vector<int64_t>> Parser::integers() {
  if (auto open = cursor_.expect("[", "before a list of numbers"); !open) return open.error();
  std::vector<int64_t> list;
  if (cursor_.take("]")) return list;
  do {
    auto n = integer();
    if (!n) return n.error();
    list.push_back(*n);
  } while (cursor_.take(","));
  if (auto close = cursor_.expect("]", "after a list of numbers"); !close) return close.error();
  return list;
}

Result<double> Parser::number() {
  const size_t at = cursor_.here();
  const std::string_view digits = cursor_.literal();
  double value = 0;
  if (digits.empty()) return cursor_.error("expected a number, not " + cursor_.found());
  if (auto done = parse_element(DType::f64, digits, reinterpret_cast<std::byte*>(&value)); !done)
    return cursor_.error_at(at, done.error().message);
  return value;
}

Result<bool> Parser::boolean() {
  if (cursor_.take_word("true")) return true;
  if (cursor_.take_word("false")) return false;
  return cursor_.error("expected true or false, not " + cursor_.found());
}

Result<uint8_t> Parser::relax() {
  if (auto open = cursor_.expect("[", "before the liberties"); !open) return open.error();
  uint8_t flags = 0;
  if (cursor_.take("]")) return flags;
  do {
    const size_t at = cursor_.here();
    const std::string_view word = cursor_.word();
    uint8_t flag = 0;
    for (const RelaxName& r : kRelaxNames)
      if (r.name == word) flag = r.flag;
    if (!flag) return cursor_.error_at(at, "relax knows contract, reciprocal, online, fewer_terms and near");
    flags |= flag;
  } while (cursor_.take(","));
  if (auto close = cursor_.expect("]", "after the liberties"); !close) return close.error();
  return flags;
}

/// Stores a Result<T> in a field.
template <class T, class Field>
Status put(Result<T> value, Field& field) {
  if (!value) return value.error();
  field = std::move(*value);
  return Done{};
}

Status Parser::attribute(Op op, std::string_view field, const std::vector<Value>& args, Attrs& a) {
  if (field == "axes") return put(integers(), a.axes);
  if (field == "perm") return put(integers(), a.perm);
  if (field == "step") return put(integers(), a.step);
  if (field == "shape") return put(cursor_.shape(), a.shape);
  if (field == "start") return put(cursor_.shape(), a.start);
  if (field == "stop") return put(cursor_.shape(), a.stop);
  if (field == "low") return put(cursor_.shape(), a.low);
  if (field == "high") return put(cursor_.shape(), a.high);
  if (field == "axis") return put(integer(), a.axis);
  if (field == "groups") return put(integer(), a.groups);
  if (field == "ddof") return put(integer(), a.ddof);
  if (field == "parts") return put(integer(), a.parts);
  if (field == "index") return put(integer(), a.index);
  if (field == "alpha") return put(number(), a.alpha);
  if (field == "beta") return put(number(), a.beta);
  if (field == "eps") return put(number(), a.eps);
  if (field == "to") return put(cursor_.dtype(), a.to);
  if (field == "keep") return put(boolean(), a.keep);
  if (field == "last") return put(boolean(), a.last);
  if (field == "exclusive") return put(boolean(), a.exclusive);
  if (field == "reverse") return put(boolean(), a.reverse);
  if (field == "relax") return put(relax(), a.relax);
  if (field == "value") {
    auto tensor = op == Op::pad && !args.empty() ? take_elements(cursor_, builder_->type(args[0]).dtype, {}) : take_tensor(cursor_);
    if (!tensor) return tensor.error();
    a.value = std::make_shared<const Tensor>(std::move(*tensor));
    return Done{};
  }
  return cursor_.error("no reader for the attribute " + std::string(field));
}

bool takes_attribute(Op op, std::string_view field) {
  if (field == "relax") return !is_leaf(op) && !is_view(op) && !is_scan(op);
  std::string_view list = info(op).attributes;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == field) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Status Parser::attributes(Op op, const std::vector<Value>& args, Attrs& attrs) {
  if (!cursor_.take("{") || cursor_.take("}")) return Done{};
  std::set<std::string_view> seen;
  do {
    const size_t at = cursor_.here();
    const std::string_view field = cursor_.word();
    if (!takes_attribute(op, field)) {
      const std::string_view list = info(op).attributes;
      return cursor_.error_at(at, std::string(name(op)) + ": no attribute " + quoted(field.substr(0, 64)) +
                                      (list.empty() ? "; it takes none" : "; it takes: " + std::string(list)));
    }
    if (!seen.insert(field).second) return cursor_.error_at(at, std::string(name(op)) + ": " + std::string(field) + " is given twice");
    if (auto equals = cursor_.expect("=", "after an attribute's name"); !equals) return equals;
    if (auto done = attribute(op, field, args, attrs); !done) return done;
  } while (cursor_.take(","));
  return cursor_.expect("}", "after the attributes");
}

Status Parser::statement() {
  const size_t begin = cursor_.here();
  auto key = value_name();
  if (!key) return key.error();
  if (values_.contains(*key)) return cursor_.error_at(begin, "%" + brief(key->substr(1)) + " is defined twice");
  std::optional<Type> given;
  const size_t type_at = cursor_.here() + 1;
  if (cursor_.take(":")) {
    auto type = cursor_.type();
    if (!type) return type.error();
    given = std::move(*type);
  }
  if (auto equals = cursor_.expect("=", "before the op"); !equals) return equals;

  const size_t at = cursor_.here();
  const std::string_view word = cursor_.word();
  const auto op = fusec::op(word);
  if (!op || *op == Op::input) return cursor_.error_at(at, "no op is called " + quoted(word.substr(0, 64)));
  auto written = operands();
  if (!written) return written.error();
  auto args = type_literals(*op, *written);
  if (!args) return args.error();
  Attrs attrs;
  if (auto done = attributes(*op, *args, attrs); !done) return done;
  if (builder_->size() >= size_t{kMaxNodes}) return cursor_.error_at(begin, "more than 1,000,000 nodes");
  const Value value = builder_->add(*op, std::move(*args), std::move(attrs));
  if (!value.valid()) return cursor_.error_at(at, builder_->error()->message);
  if (given && !(*given == builder_->type(value)))
    return cursor_.error_at(type_at, "the type is given as " + text(*given) + ", but " + std::string(word) + " gives " +
                                         text(builder_->type(value)));
  builder_->label(value, label_of(*key));
  values_.emplace(std::move(*key), value);
  return Done{};
}

Result<Graph> Parser::returns() {
  const size_t begin = cursor_.here();
  std::vector<Value> outputs;
  std::vector<std::string> names;
  std::set<std::string> taken;
  if (!cursor_.take("}")) {
    do {
      const size_t at = cursor_.here();
      std::optional<std::string> port;
      if (cursor_.peek() != '%') {
        auto name = cursor_.name("a value");
        if (!name) return name.error();
        if (auto equals = cursor_.expect("=", "after an output's name"); !equals) return equals.error();
        port = std::move(*name);
      }
      const size_t value_at = cursor_.here();
      auto key = value_name();
      if (!key) return key.error();
      const auto found = values_.find(*key);
      if (found == values_.end()) return cursor_.error_at(value_at, "%" + brief(key->substr(1)) + " is not defined before this");
      const size_t i = outputs.size();
      if (!port) port = default_output_name(label_of(*key), i, taken);
      if (port->empty()) return cursor_.error_at(at, "an output's name is empty");
      if (!taken.insert(*port).second) return cursor_.error_at(at, "output " + quoted(port->substr(0, 80)) + " is named twice");
      if (i < results_.size() && !(builder_->type(found->second) == results_[i]))
        return cursor_.error_at(value_at, "%" + brief(key->substr(1)) + " is " + text(builder_->type(found->second)) + ", but result " +
                                              std::to_string(i) + " is declared as " + text(results_[i]));
      outputs.push_back(found->second);
      names.push_back(std::move(*port));
    } while (cursor_.take(","));
    if (auto close = cursor_.expect("}", "after the last output"); !close) return close.error();
  }
  if (outputs.size() != results_.size())
    return cursor_.error_at(begin, std::to_string(outputs.size()) + " values are returned, " + std::to_string(results_.size()) +
                                       " are declared");
  return std::move(*builder_).finish(std::move(outputs), std::move(names));
}

Result<Graph> Parser::graph() {
  if (auto done = header(); !done) return done.error();
  while (!cursor_.take_word("return")) {
    if (cursor_.peek() != '%') return cursor_.error("expected a node or 'return', not " + cursor_.found());
    if (auto done = statement(); !done) return done.error();
  }
  return returns();
}

}  // namespace

namespace {

Result<std::vector<Graph>> parsed_all(std::string_view text, std::string_view file) {
  Cursor cursor(text, file);
  std::vector<Graph> graphs;
  std::unordered_set<std::string> names;
  while (!cursor.done()) {
    const size_t at = cursor.here();
    auto graph = Parser(cursor).graph();
    if (!graph) return graph.error();
    if (!names.insert(graph->name()).second) return cursor.error_at(at, "graph @" + brief(graph->name()) + " is there already: a name is one graph's");
    graphs.push_back(std::move(*graph));
  }
  return graphs;
}

Result<Graph> parsed(std::string_view text, std::string_view file) {
  Cursor cursor(text, file);
  auto graph = Parser(cursor).graph();
  if (graph && !cursor.done()) return cursor.error("expected one graph, not " + cursor.found());
  return graph;
}

}  // namespace

Result<std::vector<Graph>> parse_all(std::string_view text, std::string_view file) {
  return caught("reading stopped", [&] { return parsed_all(text, file); });
}

Result<Graph> parse(std::string_view text, std::string_view file) {
  return caught("reading stopped", [&] { return parsed(text, file); });
}

}  // namespace fusec
