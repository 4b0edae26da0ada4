// .safetensors: the length of a JSON header (64 bits), the header, the data. https://github.com/huggingface/safetensors#format

#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/files.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::cli {
namespace {

struct Row {
  const char* name;
  DType type;
};
const Row kTypes[] = {{"BOOL", DType::boolean}, {"I8", DType::i8},   {"I16", DType::i16}, {"I32", DType::i32},       {"I64", DType::i64},
                      {"U8", DType::u8},        {"U16", DType::u16}, {"U32", DType::u32}, {"U64", DType::u64},       {"F16", DType::f16},
                      {"BF16", DType::bf16},    {"F32", DType::f32}, {"F64", DType::f64}, {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2}};

/// `twice`: a key that an object has more than once, which the format forbids.
nlohmann::json parse_header(std::string_view text, std::string& twice) {
  std::vector<std::set<std::string>> open;  // the keys of the objects around
  return nlohmann::json::parse(text, [&](int, nlohmann::json::parse_event_t event, nlohmann::json& key) {
    if (event == nlohmann::json::parse_event_t::object_start) open.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) open.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !open.back().insert(key.get<std::string>()).second) twice = "'" + key.get<std::string>() + "'";
    return true;
  }, false);
}

}  // namespace

Result<Tensors> parse_safetensors(std::string_view file) {
  uint64_t length = 0;
  if (file.size() < 8) return input_error("not a .safetensors file");
  for (int i = 0; i < 8; ++i) length |= uint64_t(uint8_t(file[i])) << (8 * i);
  if (length > file.size() - 8) return input_error(".safetensors: the header does not end");
  std::string twice;
  const nlohmann::json header = parse_header(file.substr(8, length), twice);
  if (!header.is_object()) return input_error(".safetensors: the header is no JSON object");
  if (!twice.empty()) return input_error(".safetensors: the header has " + twice + " twice");
  const std::string_view data = file.substr(8 + length);
  Tensors out;
  uint64_t taken = 0;  // tensors share no bytes, so a small file cannot ask for more than it holds
  for (const auto& [name, row] : header.items()) {
    if (name == "__metadata__") continue;
    auto bad = [&](const std::string& what) { return input_error(".safetensors: " + name + ": " + what); };
    if (!row.is_object() || !row.contains("dtype") || !row["dtype"].is_string() || !row.contains("shape") || !row["shape"].is_array() ||
        !row.contains("data_offsets") || !row["data_offsets"].is_array() || row["data_offsets"].size() != 2)
      return bad("dtype, shape and data_offsets are expected");
    Tensor tensor;
    bool known = false;
    for (const Row& type : kTypes)
      if (row["dtype"].get<std::string>() == type.name) tensor.dtype = type.type, known = true;
    if (!known) return bad("element type " + row["dtype"].get<std::string>() + " is not supported");
    if (row["shape"].size() > kMaxRank) return bad(std::to_string(row["shape"].size()) + " axes: the rank is at most 8");
    size_t size = bytes(tensor.dtype);
    for (const nlohmann::json& extent : row["shape"]) {
      if (!extent.is_number_unsigned() || extent.get<uint64_t>() > uint64_t(INT64_MAX)) return bad("a bad shape");
      tensor.extents.push_back(extent.get<int64_t>());
      if (__builtin_mul_overflow(size, extent.get<size_t>(), &size)) return bad("a shape beyond all memory");
    }
    const nlohmann::json &first = row["data_offsets"][0], &last = row["data_offsets"][1];
    if (!first.is_number_unsigned() || !last.is_number_unsigned()) return bad("bad offsets");
    const uint64_t begin = first.get<uint64_t>(), end = last.get<uint64_t>();
    if (begin > end || end > data.size() || end - begin != size) return bad("its offsets do not fit its shape and the file");
    if ((taken += size) > data.size()) return bad("it overlaps another tensor");
    const auto* elements = reinterpret_cast<const std::byte*>(data.data() + begin);
    tensor.data.assign(elements, elements + size);
    out[name] = std::move(tensor);
  }
  return out;
}

namespace {
/// What comes before the tensors' data, which follows in their order.
std::string header_of(const Tensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* type = "";
    for (const Row& row : kTypes)
      if (row.type == tensor.dtype) type = row.name;
    header[name] = {{"dtype", type}, {"shape", tensor.extents}, {"data_offsets", {at, at + tensor.data.size()}}};
    at += tensor.data.size();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), out;
  text.append((8 - text.size() % 8) % 8, ' ');
  for (int i = 0; i < 8; ++i) out.push_back(char(text.size() >> (8 * i)));
  return out + text;
}
std::string_view view(const Tensor& tensor) { return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()}; }
}  // namespace

std::string safetensors_bytes(const Tensors& tensors) {
  std::string out = header_of(tensors);
  for (const auto& [name, tensor] : tensors) out += view(tensor);
  return out;
}

Status write_safetensors(const std::string& path, const Tensors& tensors) {
  const std::string header = header_of(tensors);
  std::vector<std::string_view> pieces{header};
  for (const auto& [name, tensor] : tensors) pieces.push_back(view(tensor));
  return write_file_atomically(path, pieces);
}

}  // namespace fusec::cli
