// The door to all formats, and numpy's .npy: magic, version, header length, a Python dict in ASCII, the elements.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

#include "tools/fusec/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tools/fusec/command.h"
#include "tools/fusec/import.h"

namespace fusec::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  const char* code;  // without byte order
  DType type;
};
const Descr kDescrs[] = {{"b1", DType::boolean}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},
                         {"u1", DType::u8},      {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}, {"f2", DType::f16},
                         {"f4", DType::f32},     {"f8", DType::f64}, {"V2", DType::bf16}, {"V1", DType::f8e4m3}};

/// What stands behind 'key': in the header's dict, up to the next comma outside parentheses.
std::string_view entry(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) return {};
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(": \""), rest.size()));
  size_t end = 0;
  for (int depth = 0; end < rest.size() && (depth || (rest[end] != ',' && rest[end] != '}')); ++end)
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
  return rest.substr(0, end);
}

std::optional<std::vector<int64_t>> tuple(std::string_view text) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::string_view(" ,()L").find(text[i]) != std::string_view::npos) continue;
    if (text[i] < '0' || text[i] > '9') return {};  // -1 above all
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), n);
    if (error != std::errc()) return {};
    out.push_back(n);
    i = end - text.data();
  }
  return out;
}

/// Column-major elements in row-major order.
void reorder(Tensor& tensor) {
  const size_t size = bytes(tensor.dtype), rank = tensor.extents.size();
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (size_t k = 1; k < rank; ++k) stride[k] = stride[k - 1] * tensor.extents[k - 1];
  std::vector<std::byte> out(tensor.data.size());
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i) {
    int64_t from = 0;
    for (size_t k = 0; k < rank; ++k) from += index[k] * stride[k];
    std::memcpy(out.data() + i * size, tensor.data.data() + from * size, size);
    for (size_t k = rank; k-- > 0 && ++index[k] == tensor.extents[k];) index[k] = 0;
  }
  tensor.data = std::move(out);
}

bool ends(const std::string& path, const char* ending) { return path.ends_with(ending); }

}  // namespace

Result<Tensor> parse_npy(std::string_view file, std::optional<DType> wanted) {
  if (!file.starts_with(kMagic) || file.size() < 12) return input_error("not an .npy file");
  const bool old = file[6] == 1;
  if (file[6] < 1 || file[6] > 3) return input_error(".npy: version " + std::to_string(int(uint8_t(file[6]))) + " is not known");
  size_t length = 0;
  for (int i = 0; i < (old ? 2 : 4); ++i) length |= size_t(uint8_t(file[8 + i])) << (8 * i);
  const size_t start = old ? 10 : 12;
  if (length > file.size() - start) return input_error(".npy: the header does not end");
  const std::string_view header = file.substr(start, length);
  std::string_view descr = entry(header, "'descr'");
  if (descr.size() < 5 || descr.front() != '\'') return input_error(".npy: no simple element type, but " + std::string(descr));
  const char order = descr[1];
  descr = descr.substr(2, descr.find('\'', 1) - 2);
  Tensor out;
  if (descr == "f1" && wanted && (*wanted == DType::f8e4m3 || *wanted == DType::f8e5m2)) descr = "V1";  // ml_dtypes' float8_e5m2 calls itself so
  const Descr* found = std::find_if(std::begin(kDescrs), std::end(kDescrs), [&](const Descr& d) { return descr == d.code; });
  if (found == std::end(kDescrs)) return input_error(".npy: element type " + std::string(descr) + " is not supported");
  out.dtype = found->type;
  // numpy knows no bf16 and f8: they are void, or travel as their bits.
  if (wanted && *wanted != out.dtype && bytes(*wanted) == bytes(out.dtype) && (descr[0] == 'V' || descr == "u2" || descr == "u1") &&
      (*wanted == DType::bf16 || *wanted == DType::f8e4m3 || *wanted == DType::f8e5m2))
    out.dtype = *wanted;
  const std::string_view extents = entry(header, "'shape'"), columns = entry(header, "'fortran_order'");
  const std::optional<std::vector<int64_t>> shape = tuple(extents);
  if (!shape || !extents.starts_with('(') || extents.find(')') == extents.npos) return input_error(".npy: a bad shape");
  if (!columns.starts_with("True") && !columns.starts_with("False")) return input_error(".npy: fortran_order is neither True nor False");
  if (shape->size() > kMaxRank) return input_error(".npy: " + std::to_string(shape->size()) + " axes: the rank is at most 8");
  out.extents = *shape;
  size_t size = bytes(out.dtype);
  for (int64_t extent : out.extents)
    if (__builtin_mul_overflow(size, size_t(extent), &size)) return input_error(".npy: a shape beyond all memory");
  if (file.size() - start - length != size)
    return input_error(".npy: the shape asks for " + std::to_string(size) + " bytes, the file holds " + std::to_string(file.size() - start - length));
  const auto* elements = reinterpret_cast<const std::byte*>(file.data() + start + length);
  out.data.assign(elements, elements + size);
  if (const size_t n = bytes(out.dtype); order == '>')
    for (size_t i = 0; i < size; i += n) std::reverse(out.data.begin() + i, out.data.begin() + i + n);
  if (columns.starts_with("True")) reorder(out);
  return out;
}

std::string npy_bytes(const Tensor& tensor) {
  std::string code;
  for (const Descr& d : kDescrs)
    if (d.type == tensor.dtype) code = d.code;
  if (tensor.dtype == DType::f8e5m2) code = "V1";
  std::string shape;
  for (int64_t extent : tensor.extents) shape += std::to_string(extent) + ", ";
  std::string header = std::string("{'descr': '") + (bytes(tensor.dtype) == 1 || code[0] == 'V' ? "|" : "<") + code +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ') += '\n';
  std::string out(kMagic);
  out += {'\1', '\0', char(header.size() & 255), char(header.size() >> 8)};
  out += header;
  return out.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
}

Result<Tensors> read_tensors(const std::string& path, std::optional<DType> wanted) {
  if (ends(path, ".pb")) return parse_tensor_proto(path);
  Result<std::string> file = read_input(path);
  if (!file) return file.error();
  auto named = [&](Result<Tensors> tensors) -> Result<Tensors> {
    if (!tensors) return tensors.error().note("while reading " + path);
    return tensors;
  };
  auto one = [](Result<Tensor> tensor) -> Result<Tensors> {
    if (!tensor) return tensor.error();
    return Tensors{{"", std::move(*tensor)}};
  };
  if (ends(path, ".npy")) return named(one(parse_npy(*file, wanted)));
  if (ends(path, ".npz")) return named(parse_npz(*file, wanted));
  if (ends(path, ".safetensors")) return named(parse_safetensors(*file));
  return input_error("cannot tell what " + path + " holds: .npy, .npz, .safetensors and .pb are known");
}

Result<Tensor> read_tensor(const std::string& path, std::optional<DType> wanted) {
  std::string file = path, name;
  for (const char* ending : {".npz:", ".safetensors:"})
    if (const size_t at = path.rfind(ending); at != path.npos) {
      const size_t colon = at + std::strlen(ending) - 1;
      file = path.substr(0, colon), name = path.substr(colon + 1);
    }
  Result<Tensors> tensors = read_tensors(file, wanted);
  if (!tensors) return tensors.error();
  if (name.empty() && tensors->size() == 1) return std::move(tensors->begin()->second);
  if (auto found = tensors->find(name); found != tensors->end()) return std::move(found->second);
  if (tensors->empty()) return input_error(file + " holds no tensor");
  std::string names;
  for (const auto& [n, tensor] : *tensors) names += (names.empty() ? "" : ", ") + n;
  return input_error(file + (name.empty() ? " holds several tensors; append one of them, as in FILE:NAME: " : " has no " + name + ", only ") + names);
}

Status check_tensor_file(const std::string& path) {
  if (ends(path, ".npy") || ends(path, ".npz") || ends(path, ".safetensors")) return Done{};
  return input_error("cannot tell what to write to " + path + ": .npy, .npz and .safetensors are known");
}

Status write_tensors(const std::string& path, const Tensors& tensors) {
  if (ends(path, ".npz")) return write_output(path, npz_bytes(tensors));
  if (ends(path, ".safetensors")) return write_safetensors(path, tensors);
  if (Status known = check_tensor_file(path); !known) return known;
  if (tensors.size() != 1) return input_error(path + ": .npy holds one tensor, these are " + std::to_string(tensors.size()));
  return write_output(path, npy_bytes(tensors.begin()->second));
}

}  // namespace fusec::cli
