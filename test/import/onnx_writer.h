#pragma once
// ONNX models for tests, written with protozero.
//
//   Model m{.opset = 13};
//   m.inputs = {value("x", kFloat, {2, "N"})};
//   m.outputs = {value("y", kFloat, {})};
//   m.nodes = {node("Softmax", {"x"}, {"y"}, {integer("axis", 0)})};
//   import_onnx_bytes(m.bytes());

#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace fusec::test {

using protozero::pbf_writer;
using Bytes = std::string;  // one message

enum DataType {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16,
  kE4m3 = 17,
  kE5m2 = 19,
  kUint4 = 21,
  kInt4 = 22
};

inline Bytes attribute(const std::string& name, int type, auto&& fill) {
  Bytes out;
  pbf_writer w(out);
  w.add_string(1, name);
  fill(w);
  w.add_enum(20, type);
  return out;
}
inline Bytes real(const std::string& name, float f) {
  return attribute(name, 1, [&](pbf_writer& w) { w.add_float(2, f); });
}
inline Bytes integer(const std::string& name, int64_t i) {
  return attribute(name, 2, [&](pbf_writer& w) { w.add_int64(3, i); });
}
inline Bytes text(const std::string& name, const std::string& s) {
  return attribute(name, 3, [&](pbf_writer& w) { w.add_bytes(4, s); });
}
inline Bytes tensor_attribute(const std::string& name, const Bytes& t) {
  return attribute(name, 4, [&](pbf_writer& w) { w.add_message(5, t); });
}
inline Bytes integers(const std::string& name, const std::vector<int64_t>& v) {
  return attribute(name, 7, [&](pbf_writer& w) { for (int64_t i : v) w.add_int64(8, i); });
}

inline Bytes node(const std::string& op, const std::vector<std::string>& in, const std::vector<std::string>& out,
                  const std::vector<Bytes>& attributes = {}, const std::string& name = "",
                  const std::string& domain = "") {
  Bytes bytes;
  pbf_writer w(bytes);
  for (const auto& s : in) w.add_string(1, s);
  for (const auto& s : out) w.add_string(2, s);
  if (!name.empty()) w.add_string(3, name);
  w.add_string(4, op);
  for (const auto& a : attributes) w.add_message(5, a);
  if (!domain.empty()) w.add_string(7, domain);
  return bytes;
}

struct Extent {
  std::variant<int64_t, std::string> v;
  Extent(int n) : v(int64_t{n}) {}
  Extent(int64_t n) : v(n) {}
  Extent(const char* symbol) : v(std::string(symbol)) {}
};
/// A typed value; the symbol "" is an unknown dim.
inline Bytes value(const std::string& name, int data_type, const std::vector<Extent>& dims) {
  Bytes shape;
  pbf_writer s(shape);
  for (const Extent& e : dims) {
    Bytes dim;
    pbf_writer d(dim);
    if (const auto* n = std::get_if<int64_t>(&e.v)) d.add_int64(1, *n);
    else if (const auto& symbol = std::get<std::string>(e.v); !symbol.empty()) d.add_string(2, symbol);
    s.add_message(1, dim);
  }
  Bytes tensor, type, out;
  pbf_writer t(tensor), y(type), o(out);
  t.add_enum(1, data_type);
  t.add_message(2, shape);
  y.add_message(1, tensor);
  o.add_string(1, name);
  o.add_message(2, type);
  return out;
}

/// A tensor with raw data.
inline Bytes raw(const std::string& name, int data_type, const std::vector<int64_t>& dims, const std::string& data) {
  Bytes out;
  pbf_writer w(out);
  for (int64_t d : dims) w.add_int64(1, d);
  w.add_enum(2, data_type);
  w.add_string(8, name);
  w.add_bytes(9, data);
  return out;
}
template <class T>
std::string bytes_of(const std::vector<T>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
}
inline Bytes floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& v) {
  return raw(name, kFloat, dims, bytes_of(v));
}
inline Bytes longs(const std::string& name, const std::vector<int64_t>& v) {
  return raw(name, kInt64, {static_cast<int64_t>(v.size())}, bytes_of(v));
}

/// A tensor whose data lies in a file.
inline Bytes external(const std::string& name, int data_type, const std::vector<int64_t>& dims,
                      const std::string& location, const std::string& offset = "", const std::string& length = "") {
  Bytes out;
  pbf_writer w(out);
  for (int64_t d : dims) w.add_int64(1, d);
  w.add_enum(2, data_type);
  w.add_string(8, name);
  const auto entry = [&](const char* key, const std::string& text) {
    Bytes e;
    pbf_writer p(e);
    p.add_string(1, key);
    p.add_bytes(2, text);
    w.add_message(13, e);
  };
  entry("location", location);
  if (!offset.empty()) entry("offset", offset);
  if (!length.empty()) entry("length", length);
  w.add_enum(14, 1);
  return out;
}

/// An operator of the model's own; `opset` is that of its nodes.
inline Bytes function(const std::string& domain, const std::string& name, const std::vector<std::string>& in,
                      const std::vector<std::string>& out_names, const std::vector<Bytes>& nodes, int64_t opset,
                      const std::vector<Bytes>& defaults = {}) {
  Bytes out, set;
  pbf_writer w(out), s(set);
  s.add_int64(2, opset);
  w.add_string(1, name);
  for (const auto& i : in) w.add_string(4, i);
  for (const auto& o : out_names) w.add_string(5, o);
  for (const auto& n : nodes) w.add_message(7, n);
  w.add_message(9, set);
  w.add_string(10, domain);
  for (const auto& a : defaults) w.add_message(11, a);
  return out;
}
/// In a function: the attribute `name` is the call's `of`.
inline Bytes reference(const std::string& name, int type, const std::string& of) {
  return attribute(name, type, [&](pbf_writer& w) { w.add_string(21, of); });
}

struct Model {
  int64_t opset = 17;
  int64_t ir = 8;
  std::string domain;  // of the operator set
  std::vector<Bytes> nodes, inputs, outputs, initializers, functions;

  Bytes bytes() const {
    Bytes graph, set, out;
    pbf_writer g(graph), s(set), o(out);
    for (const auto& n : nodes) g.add_message(1, n);
    g.add_string(2, "test");
    for (const auto& t : initializers) g.add_message(5, t);
    for (const auto& v : inputs) g.add_message(11, v);
    for (const auto& v : outputs) g.add_message(12, v);
    s.add_string(1, domain);
    s.add_int64(2, opset);
    o.add_int64(1, ir);
    o.add_message(7, graph);
    o.add_message(8, set);
    for (const auto& f : functions) o.add_message(25, f);
    return out;
  }
};

}  // namespace fusec::test
