// ModelProto to plain structs. protozero walks the wire format and throws on damage; the one catch is in read_model.
//
// Protobuf lets any field be absent or repeated: a repeated message is merged, of a repeated scalar the last one
// counts, and repeated numbers come packed or one by one.

#include "lib/import/onnx_model.h"

#include "lib/import/onnx_functions.h"
#include "lib/import/protobuf.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec::onnx {
namespace {

constexpr size_t kMostExpanded = 200'000;  // nodes: a few bytes of calls can ask for any number

struct TooMany {};

struct Reader {
  size_t items = 0;
  // Where reading has got to, for an error.
  const char* at = nullptr;
  std::string_view part;
  size_t index = 0;

  bool next(pbf_reader& in) {
    at = in.data().data();
    return in.next();
  }
  void enter(std::string_view what, size_t which) { part = what, index = which; }

  void count() {
    // An empty message costs two bytes in the file and about a hundred in memory.
    if (++items > size_t{kMaxModelItems}) throw TooMany{};
  }

  TensorMessage tensor(std::string_view message) {
    TensorMessage out{.message = message};
    for (pbf_reader in = reader(message); next(in);) {
      switch (in.tag_and_type()) {
        case varint(2): out.data_type = in.get_int32(); break;
        case chunk(8): out.name = view(in); break;
        default: in.skip();
      }
    }
    return out;
  }

  Attribute attribute(pbf_reader in) {
    Attribute out;
    int32_t seen = Attribute::undefined;  // models before IR version 2 carry no type: the field that is there tells it
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): out.name = view(in); break;
        case fixed32(2): out.f = in.get_float(); seen = Attribute::real; break;
        case varint(3): out.i = in.get_int64(); seen = Attribute::integer; break;
        case chunk(4): out.s = view(in); seen = Attribute::string; break;
        case chunk(5): out.t = tensor(view(in)); seen = Attribute::tensor; break;
        case chunk(6): out.g = view(in); seen = Attribute::graph; break;
        case fixed32(7): out.floats.push_back(in.get_float()); seen = Attribute::reals; break;
        case chunk(7):
          for (float f : in.get_packed_float()) out.floats.push_back(f);
          seen = Attribute::reals;
          break;
        case varint(8): out.ints.push_back(in.get_int64()); seen = Attribute::integers; break;
        case chunk(8):
          for (int64_t i : in.get_packed_int64()) out.ints.push_back(i);
          seen = Attribute::integers;
          break;
        case chunk(9): in.skip(); seen = Attribute::strings; break;
        case chunk(21): out.ref = view(in); break;
        case varint(20): out.kind = in.get_enum(); break;
        default: in.skip();
      }
    }
    if (out.kind == Attribute::undefined) out.kind = seen;
    return out;
  }

  NodeMessage node(pbf_reader in) {
    NodeMessage out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): count(); out.inputs.push_back(view(in)); break;
        case chunk(2): count(); out.outputs.push_back(view(in)); break;
        case chunk(3): out.name = view(in); break;
        case chunk(4): out.op = view(in); break;
        case chunk(5): count(); out.attributes.push_back(attribute(in.get_message())); break;
        case chunk(7): out.domain = view(in); break;
        case chunk(8): out.overload = view(in); break;
        default: in.skip();
      }
    }
    return out;
  }

  void add_node(std::vector<NodeMessage>& nodes, pbf_reader in) {
    count();
    nodes.push_back(node(in));
    nodes.back().index = nodes.size() - 1;
  }

  FunctionMessage function(pbf_reader in) {
    FunctionMessage out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): out.name = view(in); break;
        case chunk(4): count(); out.inputs.push_back(view(in)); break;
        case chunk(5): count(); out.outputs.push_back(view(in)); break;
        case chunk(7): add_node(out.nodes, in.get_message()); break;
        case chunk(9): count(); out.operator_sets.push_back(operator_set(in.get_message())); break;
        case chunk(10): out.domain = view(in); break;
        case chunk(11): count(); out.defaults.push_back(attribute(in.get_message())); break;
        case chunk(13): out.overload = view(in); break;
        default: in.skip();
      }
    }
    return out;
  }

  DimMessage dim(pbf_reader in) {
    DimMessage out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case varint(1): out.value = in.get_int64(); break;
        case chunk(2): out.name = view(in); break;
        default: in.skip();
      }
    }
    return out;
  }

  void shape(pbf_reader in, ValueInfo& out) {
    out.has_shape = true;
    while (in.next(1, protozero::pbf_wire_type::length_delimited)) {
      count();
      out.dims.push_back(dim(in.get_message()));
    }
  }

  void tensor_type(pbf_reader in, ValueInfo& out) {
    out.kind = ValueInfo::tensor;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case varint(1): out.data_type = in.get_enum(); break;
        case chunk(2): shape(in.get_message(), out); break;
        default: in.skip();
      }
    }
  }

  void type(pbf_reader in, ValueInfo& out) {
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): tensor_type(in.get_message(), out); break;
        case chunk(4):
        case chunk(5):
        case chunk(7):
        case chunk(8):
        case chunk(9):
          out.kind = ValueInfo::other;
          in.skip();
          break;
        default: in.skip();
      }
    }
  }

  ValueInfo value_info(pbf_reader in) {
    ValueInfo out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): out.name = view(in); break;
        case chunk(2): type(in.get_message(), out); break;
        default: in.skip();
      }
    }
    return out;
  }

  void graph(pbf_reader in, ModelMessage& out) {
    out.has_graph = true;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): enter("node", out.nodes.size()); add_node(out.nodes, in.get_message()); break;
        case chunk(2): out.graph_name = view(in); break;
        case chunk(5): enter("initialiser", out.initializers.size()); count(); out.initializers.push_back(tensor(view(in))); break;
        case chunk(11): enter("input", out.inputs.size()); count(); out.inputs.push_back(value_info(in.get_message())); break;
        case chunk(12): enter("output", out.outputs.size()); count(); out.outputs.push_back(value_info(in.get_message())); break;
        case chunk(13): enter("value type", out.values.size()); count(); out.values.push_back(value_info(in.get_message())); break;
        case chunk(15): out.has_sparse_initializers = true; in.skip(); break;
        default: in.skip();
      }
    }
  }

  OperatorSet operator_set(pbf_reader in) {
    OperatorSet out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(1): out.domain = view(in); break;
        case varint(2): out.version = in.get_int64(); break;
        default: in.skip();
      }
    }
    return out;
  }

  ModelMessage model(pbf_reader in) {
    ModelMessage out;
    while (next(in)) {
      switch (in.tag_and_type()) {
        case chunk(2): out.producer = view(in); break;
        case chunk(3): out.producer_version = view(in); break;
        case varint(1): out.ir_version = in.get_int64(); break;
        case chunk(7): graph(in.get_message(), out); break;
        case chunk(8): count(); out.operator_sets.push_back(operator_set(in.get_message())); break;
        case chunk(25): enter("function", out.functions.size()); count(); out.functions.push_back(function(in.get_message())); break;
        default: in.skip();
      }
    }
    return out;
  }
};

}  // namespace

std::string quote(std::string_view name) {
  return name.size() <= 80 ? quoted(name) : quoted(name.substr(0, 80)) + "…";
}

std::string dtype_name(int32_t data_type) {
  constexpr std::string_view kNames[] = {
      "undefined", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  if (data_type >= 0 && static_cast<size_t>(data_type) < std::size(kNames)) return std::string(kNames[data_type]);
  return "data type " + std::to_string(data_type);
}

namespace {
/// What `read` gives, or the error for what it throws.
template <class Read>
Result<ModelMessage> guarded(std::string_view bytes, const Read& read) {
  Reader reader;
  try {
    return read(reader);
  } catch (const TooMany&) {
    return input_error("more than " + std::to_string(kMaxModelItems) + " nodes, names and attributes");
  } catch (const protozero::exception& e) {
    const std::string byte = reader.at && !bytes.empty() ? " at byte " + std::to_string(reader.at - bytes.data()) : "";
    const std::string part = reader.part.empty() ? "" : ", in or behind " + std::string(reader.part) + " " + std::to_string(reader.index);
    return input_error("damaged or truncated ONNX file" + byte + part + ": " + e.what());
  }
}
}  // namespace

Result<ModelMessage> read_model(std::string_view bytes) {
  Result<ModelMessage> model = guarded(bytes, [&](Reader& r) { return r.model(reader(bytes)); });
  if (model && !model->has_graph) return input_error("no graph in it: not an ONNX model, or a truncated one");
  if (model)
    if (auto done = inline_functions(*model, kMostExpanded); !done) return done.error();
  return model;
}

Result<ModelMessage> read_graph(std::string_view bytes) {
  return guarded(bytes, [&](Reader& r) {
    ModelMessage out;
    r.graph(reader(bytes), out);
    return out;
  });
}

}  // namespace fusec::onnx
