// TensorProto to Tensor and back.
//
// ONNX has two homes for numbers: raw_data, little-endian and dense; and typed fields, in which a small type sits in
// the low bits of a larger one (f16, bf16, f8, bool and small integers in int32_data). What a field holds is a row of
// kTypes.

#include "lib/import/onnx_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/import/onnx_external.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_narrow.h"
#include "lib/import/protobuf.h"
#include "lib/support/limits.h"

namespace fusec::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

/// Fields of TensorProto.
enum Field : uint32_t { kFloat = 4, kInt32 = 5, kInt64 = 7, kDouble = 10, kUint64 = 11 };

struct TypeRow {
  int32_t data_type;
  DType dtype;
  Field field;  // its typed home
};
constexpr TypeRow kTypes[] = {
    {1, DType::f32, kFloat},   {2, DType::u8, kInt32},      {3, DType::i8, kInt32},    {4, DType::u16, kInt32},
    {5, DType::i16, kInt32},   {6, DType::i32, kInt32},     {7, DType::i64, kInt64},   {9, DType::boolean, kInt32},
    {10, DType::f16, kInt32},  {11, DType::f64, kDouble},   {12, DType::u32, kUint64}, {13, DType::u64, kUint64},
    {16, DType::bf16, kInt32}, {17, DType::f8e4m3, kInt32}, {19, DType::f8e5m2, kInt32},
};

const TypeRow* row_of(int32_t data_type) {
  for (const TypeRow& row : kTypes)
    if (row.data_type == data_type) return &row;
  return nullptr;
}

struct Message {
  int32_t data_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;
  std::string_view name;
  bool has_segment = false, is_external = false;
  ExternalData external;
  std::array<std::vector<std::string_view>, 12> chunks;  // typed fields, packed, by field number
  std::vector<uint64_t> singles;                         // typed fields, one by one (never both in one message)
  uint32_t singles_field = 0;
};

void read_entry(pbf_reader in, ExternalData& out) {
  std::string_view key, value;
  while (in.next()) {
    switch (in.tag_and_type()) {
      case chunk(1): key = view(in); break;
      case chunk(2): value = view(in); break;
      default: in.skip();
    }
  }
  if (key == "location") out.location = value;
  if (key == "offset") out.offset = value;
  if (key == "length") out.length = value;
}

Message read_message(std::string_view bytes) {
  Message m;
  auto single = [&](uint32_t field, uint64_t bits) {
    m.singles_field = field;
    m.singles.push_back(bits);
  };
  for (pbf_reader in = reader(bytes); in.next();) {
    switch (in.tag_and_type()) {
      case varint(1): m.dims.push_back(in.get_int64()); break;
      case chunk(1):
        for (int64_t d : in.get_packed_int64()) m.dims.push_back(d);
        break;
      case varint(2): m.data_type = in.get_int32(); break;
      case chunk(3): m.has_segment = true; in.skip(); break;
      case chunk(kFloat): case chunk(kInt32): case chunk(kInt64): case chunk(kDouble): case chunk(kUint64): {
        const uint32_t field = in.tag();
        m.chunks[field].push_back(view(in));
        break;
      }
      case fixed32(kFloat): single(kFloat, in.get_fixed32()); break;
      case fixed64(kDouble): single(kDouble, in.get_fixed64()); break;
      case varint(kInt32): single(kInt32, in.get_uint64()); break;
      case varint(kInt64): single(kInt64, in.get_uint64()); break;
      case varint(kUint64): single(kUint64, in.get_uint64()); break;
      case chunk(8): m.name = view(in); break;
      case chunk(9): m.raw = view(in); break;
      case chunk(13): read_entry(in.get_message(), m.external); break;
      case varint(14): m.is_external = in.get_enum() == 1; break;
      default: in.skip();
    }
  }
  return m;
}

/// Elements of the typed field as little-endian bytes of `size` each; stops past `limit` elements.
std::vector<std::byte> typed_data(const Message& m, const TypeRow& row, uint64_t limit) {
  const size_t size = bytes(row.dtype);
  std::vector<std::byte> out;
  auto put = [&](uint64_t bits) {
    if (row.dtype == DType::boolean) bits = bits != 0;
    if (out.size() > limit * size) return;
    const auto* from = reinterpret_cast<const std::byte*>(&bits);
    out.insert(out.end(), from, from + size);
  };
  for (std::string_view piece : m.chunks[row.field]) {
    if (row.field == kFloat || row.field == kDouble) {
      const auto* from = reinterpret_cast<const std::byte*>(piece.data());
      out.insert(out.end(), from, from + piece.size());
      continue;
    }
    const char* at = piece.data();
    for (const char* end = at + piece.size(); at != end;) put(protozero::decode_varint(&at, end));
  }
  if (m.singles_field == row.field)
    for (uint64_t bits : m.singles) put(bits);
  return out;
}

/// How many elements, when the dims are such as a tensor may have.
Result<uint64_t> elements_of(const Message& m) {
  if (m.has_segment) return input_error("a tensor in segments is not supported");
  if (m.dims.size() > kMaxRank) return input_error("rank " + std::to_string(m.dims.size()) + ", the largest is 8");
  uint64_t elements = 1;
  bool empty = false;
  for (int64_t d : m.dims) {
    if (d < 0) return input_error("a negative dim: " + std::to_string(d));
    if (d == 0) empty = true;
    else if (elements > (uint64_t{1} << 60) / static_cast<uint64_t>(d)) return input_error("more than 2^60 elements");
    else elements *= static_cast<uint64_t>(d);
  }
  return empty ? 0 : elements;
}

/// What stays where it lies, or a copy of it: `alignment` is what its elements need.
TensorData kept(std::span<const std::byte> data, std::shared_ptr<const void> keeper, size_t alignment) {
  if (data.size() >= kLeastView && keeper) {
    if (reinterpret_cast<uintptr_t>(data.data()) % alignment == 0) return TensorData::view(data, std::move(keeper));
    auto shared = std::make_shared<const std::vector<std::byte>>(data.begin(), data.end());  // once, for all copies of the tensor
    return TensorData::view(*shared, shared);
  }
  return std::vector<std::byte>(data.begin(), data.end());
}

Result<Tensor> decode(const Message& m, TensorSource& source, bool packed) {
  const NarrowType* narrow = narrow_type(m.data_type);
  Result<DType> dtype = narrow ? Result<DType>(DType::u8) : dtype_of(m.data_type);
  if (!dtype) return dtype.error();
  const TypeRow& row = *row_of(narrow ? 2 : m.data_type);
  const Result<uint64_t> values = elements_of(m);
  if (!values) return values.error();
  const uint64_t elements = narrow ? packed_bytes(*narrow, *values) : *values;
  const uint64_t wanted = elements * bytes(*dtype);

  Tensor out{*dtype, m.dims, {}};
  if (m.is_external) {
    std::shared_ptr<const void> keeper;
    Result<std::span<const std::byte>> data = source.files.find(m.external, wanted, keeper);
    if (!data) return data.error();
    out.data = kept(*data, std::move(keeper), bytes(*dtype));
  } else if (m.raw) {
    if (m.raw->size() != wanted)
      return input_error("raw_data of " + std::to_string(m.raw->size()) + " bytes, but " + std::to_string(elements) +
                         " elements of " + std::string(name(*dtype)) + " need " + std::to_string(wanted));
    out.data = kept(std::as_bytes(std::span(*m.raw)), source.keeper, bytes(*dtype));
  } else {
    out.data = typed_data(m, row, elements);
    if (out.data.size() != wanted)
      return input_error(std::to_string(out.data.size() / bytes(*dtype)) +
                         (out.data.size() > wanted ? " or more" : "") + " elements of data, but the dims need " +
                         std::to_string(elements));
  }
  const Tensor& read = out;
  if (*dtype == DType::boolean && std::any_of(read.data.begin(), read.data.end(), [](std::byte b) { return b > std::byte{1}; }))
    for (std::byte& b : out.data.own()) b = std::byte(b != std::byte(0));
  if (narrow && packed) out.extents = {static_cast<int64_t>(elements)};
  else if (narrow) out.dtype = narrow->held, out.data = widened(*narrow, {read.data.data(), read.data.size()}, *values);
  return out;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_chunk(std::string& out, uint32_t tag, std::string_view data) {
  put_varint(out, tag << 3 | 2);
  put_varint(out, data.size());
  out += data;
}

}  // namespace

Result<DType> dtype_of(int32_t data_type) {
  if (const TypeRow* row = row_of(data_type)) return row->dtype;
  return input_error(
      dtype_name(data_type) +
      " is not supported: fusec has bool, 8- to 64-bit integers, f16, bf16, f32, f64, f8e4m3fn and f8e5m2");
}

Result<DType> held_type(int32_t data_type) {
  if (const NarrowType* narrow = narrow_type(data_type)) return narrow->held;
  return dtype_of(data_type);
}

int32_t data_type_of(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.data_type;
  return 0;
}

namespace {
/// What `use` makes of a message, or the error for what reading it throws.
template <class Use>
auto reading(std::string_view message, const Use& use) -> decltype(use(Message())) {
  try {
    return use(read_message(message));
  } catch (const protozero::exception& e) {
    return input_error(std::string("damaged tensor: ") + e.what());
  }
}
}  // namespace

Result<Tensor> read_tensor(std::string_view message, TensorSource& source, bool packed) {
  return reading(message, [&](const Message& m) { return decode(m, source, packed); });
}

Result<Type> read_tensor_type(std::string_view message) {
  return reading(message, [](const Message& m) -> Result<Type> {
    const Result<DType> dtype = held_type(m.data_type);
    if (!dtype) return dtype.error();
    if (const Result<uint64_t> elements = elements_of(m); !elements) return elements.error();
    return Type{*dtype, {m.dims.begin(), m.dims.end()}};
  });
}

Result<NamedTensor> read_tensor_file(const std::string& path) {
  Result<std::string> content = read_file(path);
  if (!content) return content.error();
  try {
    const Message m = read_message(*content);
    TensorSource alone{nullptr, DataFiles("")};
    Result<Tensor> tensor = decode(m, alone, false);
    if (!tensor) return tensor.error().note("in " + path);
    return NamedTensor{std::string(m.name), std::move(*tensor)};
  } catch (const protozero::exception& e) {
    return input_error(path + ": no tensor in ONNX's format: " + e.what());
  }
}

std::string write_tensor(std::string_view name, const Tensor& tensor, int32_t data_type) {
  std::string out;
  for (int64_t d : tensor.extents) {
    put_varint(out, 1 << 3);
    put_varint(out, static_cast<uint64_t>(d));
  }
  put_varint(out, 2 << 3);
  put_varint(out, static_cast<uint64_t>(data_type ? data_type : data_type_of(tensor.dtype)));
  put_chunk(out, 8, name);
  put_chunk(out, 9, {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
  return out;
}

Result<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  std::string out;
  std::optional<Error> error;
  if (fd < 0 || fstat(fd, &status) != 0) error = input_error(path + ": " + std::strerror(errno));
  else if (!S_ISREG(status.st_mode)) error = input_error(path + ": not a regular file");
  else if (status.st_size > kMaxModelBytes) error = input_error(path + ": larger than 2 GiB");
  else {
    out.resize(static_cast<size_t>(status.st_size));
    for (size_t done = 0; done < out.size() && !error;) {
      const ssize_t n = read(fd, out.data() + done, out.size() - done);
      if (n <= 0) error = input_error(path + ": cannot be read");
      else done += static_cast<size_t>(n);
    }
  }
  if (fd >= 0) close(fd);
  if (error) return *error;
  return out;
}

}  // namespace fusec::onnx
