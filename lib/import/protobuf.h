#pragma once
// protozero for lib/import: fields are told apart by number and wire type together. A field of a known number and a
// foreign wire type is skipped like an unknown one, as protobuf itself does; protozero's getters would only assert.
//
//   while (in.next()) switch (in.tag_and_type()) {
//     case varint(1): id = in.get_int64(); break;
//     default: in.skip();
//   }

#include <string_view>

#include <protozero/pbf_reader.hpp>

namespace fusec::onnx {

using protozero::pbf_reader;

constexpr uint32_t varint(protozero::pbf_tag_type tag) { return tag_and_type(tag, protozero::pbf_wire_type::varint); }
constexpr uint32_t fixed32(protozero::pbf_tag_type tag) { return tag_and_type(tag, protozero::pbf_wire_type::fixed32); }
constexpr uint32_t fixed64(protozero::pbf_tag_type tag) { return tag_and_type(tag, protozero::pbf_wire_type::fixed64); }
/// Strings, messages, packed numbers.
constexpr uint32_t chunk(protozero::pbf_tag_type tag) {
  return tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

inline std::string_view view(pbf_reader& in) {
  auto v = in.get_view();
  return {v.data(), v.size()};
}
inline pbf_reader reader(std::string_view message) { return pbf_reader(message.data(), message.size()); }

}  // namespace fusec::onnx
