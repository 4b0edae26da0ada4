// Graphs by proposal: draw an op, operands that could fit and attributes; infer() decides whether it is legal.

#include "lib/fuzz/random_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "lib/ir/convert.h"

namespace fusec::fuzz {
namespace {

/// What graphs are like: see random_graph.h.
enum class Style : uint8_t { mixed, deep, wide, rows };

struct Draw {
  Random random;
  GraphOptions options;
  GraphBuilder b{"fuzz"};
  Sizes sizes{};
  std::vector<Value> pool{};
  std::vector<Dim> palette{};
  Style style = Style::mixed;
  size_t most_outputs = 4;

  /// A size of 0 counts as 1: the other axes of an empty tensor grow no longer than those of others.
  double elements_of(const Shape& shape) const {
    double product = 1;
    for (const Dim& dim : shape) product *= double(std::max<int64_t>(dim.value(sizes).value_or(INT64_MAX), 1));
    return product;
  }

  void draw_style() {
    static const std::vector<Style> kStyles = {Style::mixed, Style::mixed, Style::mixed, Style::mixed, Style::mixed, Style::mixed,
                                               Style::deep, Style::wide, Style::rows, Style::rows};
    style = random.pick(kStyles);
    const size_t more = options.far && random.chance(8) ? 5 : 1;
    if (style == Style::deep) options.max_nodes *= 4 * more, options.max_elements = std::min(options.max_elements, double(1 << 10));
    if (style == Style::wide) options.max_inputs *= 3 * more, options.max_nodes *= 2 * more, most_outputs *= 4 * more, options.max_elements = std::min(options.max_elements, double(1 << 11));
  }

  void draw_palette() {
    static const std::vector<int64_t> kExtents = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64, 100, 129};
    static const std::vector<int64_t> kLong = {255, 256, 257, 512, 768, 1000, 1023, 1024, 1025, 2047, 2048, 4096, 5000, 8192, 12289};
    if (style == Style::rows)
      for (int k = 0; k < 3; k++) palette.push_back(std::min(random.pick(kLong), int64_t(options.max_elements)));
    for (int k = 0; k < 4; k++) palette.push_back(random.pick(kExtents));
    if (random.chance(3)) {
      sizes["N"] = random.chance(12) ? 0 : random.pick(kExtents);
      palette.push_back(Dim::symbol("N"));
    }
    if (random.chance(6)) {
      sizes["M"] = random.pick(kExtents);
      palette.push_back(Dim::symbol("M"));
    }
    if (random.chance(20)) palette.push_back(0);
  }

  DType draw_dtype() {
    static const std::vector<DType> kCommon = {DType::f32, DType::f32, DType::f32, DType::bf16, DType::f16, DType::i32, DType::f64};
    return random.chance(3) ? DType(random.below(kDTypes)) : random.pick(kCommon);
  }

  Shape draw_shape() {
    Shape shape;
    const size_t rank = random.chance(16) ? 0 : 1 + random.below(random.chance(16) ? 8 : 4);
    for (size_t k = 0; k < rank; k++) shape.push_back(random.pick(palette));
    return bounded(std::move(shape));
  }

  /// Outer dims become 1 until it is no larger than a value may be: without an empty dim a shape may be of any size.
  Shape bounded(Shape shape) const {
    for (size_t k = 0; elements_of(shape) > options.max_elements; k++) shape[k] = 1;
    return shape;
  }

  /// Graphs go on from what they made last, deep ones nearly always.
  Value any_value() {
    if (!random.chance(style == Style::deep ? 8 : 2)) return pool[pool.size() - 1 - random.below(std::min<size_t>(pool.size(), 3))];
    return random.pick(pool);
  }

  /// Every second op of a graph that reduces rows is one that does.
  Op any_op() {
    static const std::vector<Op> kReducing = [] {
      std::vector<Op> out;
      for (int k = 0; k < kOps; k++)
        if (is_reduce(Op(k)) || is_scan(Op(k)) || (is_composite(Op(k)) && info(Op(k)).rule != Rule::shape)) out.push_back(Op(k));
      return out;
    }();
    return style == Style::rows && random.chance(3) ? random.pick(kReducing) : Op(random.below(kOps));
  }

  /// Something of this dtype that broadcasts with `shape`: a pooled value, or a new scalar.
  Value partner(DType dtype, const Shape& shape) {
    for (int tries = 0; tries < 8; tries++) {
      const Value value = random.pick(pool);
      if (b.type(value).dtype == dtype && broadcast(shape, b.type(value).shape)) return value;
    }
    for (int tries = 0; tries < 4; tries++) {
      const Value value = random.pick(pool);
      if (broadcast(shape, b.type(value).shape)) return b.cast(value, dtype);
    }
    Tensor scalar = random_tensor(dtype, {}, random.next());
    return b.constant(std::move(scalar));
  }

  /// Scale, bias or statistics of a norm: exactly of this shape, of the data's dtype or another float.
  Value parameter(DType dtype, const Shape& shape) {
    if (random.chance(4)) dtype = random.chance(2) ? DType::f32 : draw_dtype();
    if (!is_float(dtype)) dtype = DType::f32;
    for (const Value value : pool)
      if (b.type(value).shape == shape && random.chance(3)) return b.type(value).dtype == dtype ? value : b.cast(value, dtype);
    if (random.chance(4)) return b.add(Op::broadcast, {b.constant(random_tensor(dtype, {}, random.next()))}, {.shape = shape});
    return b.input("p" + std::to_string(b.size()), {dtype, shape});
  }

  /// For concat: the other axes are equal.
  Value neighbour(Value x, size_t axis) {
    for (int tries = 0; tries < 8; tries++) {
      const Value value = random.pick(pool);
      const Type &mine = b.type(x), &other = b.type(value);
      Shape shape = other.shape;
      if (shape.size() != mine.shape.size() || axis >= shape.size()) continue;
      shape[axis] = mine.shape[axis];
      if (shape == mine.shape) return other.dtype == mine.dtype ? value : b.cast(value, mine.dtype);
    }
    return x;
  }

  std::vector<int64_t> draw_axes(size_t rank) {
    std::vector<int64_t> axes;
    if (style == Style::rows && rank && !random.chance(4)) return {int64_t(rank) - 1};
    for (size_t k = 0; k < rank; k++)
      if (random.chance(2)) axes.push_back(int64_t(k));
    if (axes.empty() && rank) axes.push_back(int64_t(random.below(rank)));
    return axes;
  }

  Shape draw_reshape(const Shape& from) {
    Shape to;
    Dim run = 1;
    for (const Dim& dim : from) {  // join runs of dims …
      run = run * dim;
      if (random.chance(2)) to.push_back(run), run = 1;
    }
    if (!run.is(1) || to.empty()) to.push_back(run);
    for (size_t k = 0; k < to.size() && to.size() < 5; k++)  // … and cut some of them
      for (int64_t factor : {2, 3, 4, 7})
        if (random.chance(3))
          if (auto outer = exact_quotient(to[k], factor); outer && !to[k].is(0)) {
            to[k] = *outer;
            to.insert(to.begin() + long(k) + 1, factor);
            break;
          }
    return to;
  }

  Attrs draw_attrs(Op op, const Type& type) {
    Attrs attrs;
    const size_t rank = type.shape.size();
    attrs.axes = draw_axes(rank);
    attrs.keep = random.chance(2);
    attrs.last = random.chance(4);
    if (is_scan(op)) attrs.exclusive = random.chance(3), attrs.reverse = random.chance(3);
    attrs.axis = rank ? int64_t(random.below(rank)) : 0;
    if (is_scan(op) && style == Style::rows && rank && !random.chance(4)) attrs.axis = int64_t(rank) - 1;
    attrs.alpha = 0.25 + 0.5 * double(random.below(4));
    attrs.beta = 0.5;
    attrs.eps = random.chance(4) ? 0 : 1e-3;
    attrs.ddof = int64_t(random.below(2));
    attrs.parts = 1 + int64_t(random.below(3));
    attrs.index = int64_t(random.below(uint64_t(attrs.parts)));
    attrs.groups = 1 + int64_t(random.below(4));
    attrs.to = draw_dtype();
    if (op == Op::bitcast)
      while (bytes(*attrs.to) != bytes(type.dtype)) attrs.to = DType(random.below(kDTypes));
    if (op == Op::argmax || op == Op::argmin) attrs.to = random.chance(2) ? DType::i64 : DType::i32;
    if (op == Op::reshape) attrs.shape = draw_reshape(type.shape);
    if (op == Op::broadcast) {
      attrs.shape = type.shape;
      for (Dim& dim : attrs.shape)
        if (dim.is(1) && random.chance(2)) dim = random.pick(palette);
      if (random.chance(2)) attrs.shape.insert(attrs.shape.begin(), random.pick(palette));
    }
    if (op == Op::transpose) {
      attrs.perm.resize(rank);
      std::iota(attrs.perm.begin(), attrs.perm.end(), 0);
      for (size_t k = rank; k > 1; k--) std::swap(attrs.perm[k - 1], attrs.perm[random.below(k)]);
    }
    for (const Dim& dim : type.shape) {
      const int64_t extent = dim.value(sizes).value_or(0);
      if (op == Op::slice) {
        const bool fixed = dim.is_constant() && extent > 0 && random.chance(2), short_of = fixed && random.chance(2);
        const int64_t start = fixed ? int64_t(random.below(uint64_t(extent))) : 0;
        attrs.start.push_back(start);
        attrs.stop.push_back(short_of ? Dim(start + int64_t(random.below(uint64_t(extent - start + 1)))) : dim);
        attrs.step.push_back(dim.is_constant() && random.chance(3) ? 2 + int64_t(random.below(4)) : 1);
      }
      if (op == Op::pad) {
        attrs.low.push_back(int64_t(random.below(3)));
        attrs.high.push_back(int64_t(random.below(3)));
      }
    }
    if (op == Op::pad) attrs.value = std::make_shared<Tensor>(random_tensor(type.dtype, {}, random.next()));
    return attrs;
  }

  /// The operand as the op likes it: numbers, floats, bool …
  Value fitting(Value x, Domain domain) {
    const DType dtype = b.type(x).dtype;
    static const std::vector<DType> kFloats = {DType::f32, DType::f32, DType::bf16, DType::f16, DType::f64};
    static const std::vector<DType> kIntegers = {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64};
    switch (domain) {
      case Domain::any: return x;
      case Domain::numbers: return dtype == DType::boolean ? b.cast(x, DType::f32) : x;
      case Domain::floats: return is_float(dtype) ? x : b.cast(x, random.pick(kFloats));
      case Domain::integers: return is_integer(dtype) ? x : b.cast(x, random.pick(kIntegers));
      case Domain::bits: return is_float(dtype) ? b.cast(x, random.pick(kIntegers)) : x;
      case Domain::boolean: return dtype == DType::boolean ? x : b.cast(x, DType::boolean);
    }
    return x;
  }

  /// Indices from two below the first to two behind the last, computed from an input or from positions.
  Value draw_index(const Type& data, size_t axis) {
    Shape shape = data.shape;
    for (Dim& dim : shape)
      if (random.chance(2)) dim = 1;
    shape[axis] = random.pick(palette);
    shape = bounded(std::move(shape));
    const DType dtype = random.chance(2) ? DType::i64 : DType::i32;
    const int64_t n = data.shape[axis].value(sizes).value_or(1);
    const Value from = random.chance(2) ? b.input("i" + std::to_string(b.size()), {dtype, shape})
                                        : b.add(Op::iota, {}, {.shape = shape, .axis = int64_t(random.below(shape.size())), .to = dtype});
    const Value mixed = b.add(Op::mul, {from, b.scalar(dtype, 1 + 2 * double(random.below(3)))});
    const Value folded = b.add(Op::floor_mod, {mixed, b.scalar(dtype, double(2 * n + 4))});
    return b.add(Op::sub, {folded, b.scalar(dtype, double(n + 2))});
  }

  static bool needs_axis(Op op) { return op == Op::layer_norm || op == Op::rms_norm || op == Op::gather || op == Op::concat; }

  /// An operand behind the first ones. `shape` is what they broadcast to.
  Value operand(Op op, const std::vector<Value>& before, const Shape& shape, const Attrs& attrs) {
    const Type type = b.type(before[0]);
    switch (op) {
      case Op::layer_norm: case Op::rms_norm: {
        // Mostly of the last axis; sometimes of all from another one on, or one number a row.
        Shape wanted(type.shape.end() - (random.chance(4) ? 1 + long(random.below(type.shape.size())) : 1), type.shape.end());
        if (random.chance(4)) wanted.back() = 1;
        return parameter(type.dtype, bounded(wanted));
      }
      case Op::batch_norm: case Op::group_norm: return parameter(type.dtype, {type.shape[size_t(attrs.axis)]});
      case Op::gather: return draw_index(type, size_t(attrs.axis));
      case Op::concat: return neighbour(before[0], size_t(attrs.axis));
      case Op::select: return before.size() == 1 ? partner(draw_dtype(), shape) : partner(b.type(before[1]).dtype, shape);
      default: return partner(type.dtype, shape);
    }
  }

  void leaf(Op op) {
    const Shape shape = draw_shape();
    Attrs attrs;
    if (op == Op::constant) {
      std::vector<int64_t> extents;
      for (const Dim& dim : shape) {
        if (!dim.is_constant()) return;
        extents.push_back(dim.constant());
      }
      pool.push_back(b.constant(random_tensor(draw_dtype(), std::move(extents), random.next(), 16)));
      return;
    }
    if (shape.empty() || op == Op::input) return;
    attrs.shape = op == Op::size ? Shape{random.pick(shape)} : shape;
    attrs.axis = int64_t(random.below(shape.size()));
    attrs.to = draw_dtype();
    Attrs normalised = attrs;
    if (infer(op, {}, normalised)) pool.push_back(b.add(op, {}, attrs));
  }

  void step() {
    const Op op = any_op();
    const OpInfo& card = info(op);
    if (card.form == Form::reserved) return;
    if (card.form == Form::leaf) {
      if (random.chance(2)) leaf(op);
      return;
    }
    // One in two proposals is elementwise: that is what graphs are made of, deep ones above all.
    const bool rest = style == Style::rows && (is_reduce(op) || is_scan(op) || is_composite(op));
    if (!is_elementwise(op) && !rest && random.chance(style == Style::deep ? 1 : 2) && !random.chance(style == Style::deep ? 6 : 0)) return;
    std::vector<Value> args;
    const Value x = fitting(any_value(), card.rule == Rule::select ? Domain::boolean : card.domain);
    args.push_back(x);
    const Type type = b.type(x);
    int arity = card.arity < 0 ? 1 + int(random.below(3)) : card.arity - int(random.below(uint64_t(card.optional_args) + 1));
    Shape shape = type.shape;
    Attrs attrs = draw_attrs(op, type);
    if (needs_axis(op) && shape.empty()) return;
    if (op == Op::batch_norm || op == Op::group_norm) {
      if (shape.size() < 2) return;
      if (op == Op::group_norm || random.chance(2)) attrs.axis = 1;
      if (!exact_quotient(shape[1], attrs.groups)) attrs.groups = 1;
    }
    for (int k = 1; k < arity; k++) {
      args.push_back(operand(op, args, shape, attrs));
      if (auto both = broadcast(shape, b.type(args.back()).shape); both && is_elementwise(op)) shape = *both;
    }
    std::vector<Type> types;
    for (Value arg : args) types.push_back(b.type(arg));
    Attrs normalised = attrs;
    Result<Type> result = infer(op, types, normalised);
    if (!result || result->shape.size() > 8 || elements_of(result->shape) > options.max_elements) return;
    pool.push_back(b.add(op, args, attrs));
  }

  Drawn graph() {
    draw_style();
    draw_palette();
    const size_t inputs = 1 + random.below(options.max_inputs);
    Shape base = draw_shape();
    for (size_t k = 0; k < inputs; k++) {
      Shape shape = base;
      if (random.chance(3)) shape = draw_shape();
      else for (Dim& dim : shape) if (random.chance(5)) dim = 1;
      pool.push_back(b.input("x" + std::to_string(k), {draw_dtype(), bounded(shape)}));
    }
    const size_t target = b.size() + 2 + random.below(options.max_nodes);
    for (int tries = 0; tries < 2000 && b.size() < target; tries++) step();
    // What nobody reads is an output, up to a number of them; and now and then a value that is read.
    std::vector<char> read(b.size(), 0);
    for (NodeId id = 0; id < b.size(); id++)
      for (NodeId arg : b.node({id}).args) read[arg] = 1;
    std::vector<Value> outputs = {pool.back()};
    const size_t most = 1 + random.below(most_outputs);
    for (size_t k = pool.size() - 1; k-- > inputs && outputs.size() < most;)
      if (!read[pool[k].id]) outputs.push_back(pool[k]);
    if (random.chance(3)) outputs.push_back(random.pick(pool));
    Result<Graph> graph = std::move(b).finish(outputs);
    return {graph ? *graph : Graph{}, sizes};
  }
};

}  // namespace

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Drawn random_graph(uint64_t seed, const GraphOptions& options) { return Draw{Random(seed), options}.graph(); }

Tensor random_tensor(DType dtype, std::vector<int64_t> extents, uint64_t seed, unsigned special, Spread spread) {
  Random random(seed);
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  Tensor out{dtype, std::move(extents), std::vector<std::byte>(size_t(count) * bytes(dtype))};
  static const double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(), INFINITY, -INFINITY, 0.0, -0.0, 1e-40, -1e-40, 1, -1,
                                    3e38, -3e38, 0.5, 2147483648.0, -129, 255, 1e-8, 65504, 448, 88.5, -104};
  for (int64_t k = 0; k < count; k++) {
    std::byte* at = out.data.data() + size_t(k) * bytes(dtype);
    if (dtype == DType::boolean) {
      *at = std::byte(random.below(2));
    } else if (!is_float(dtype)) {
      const uint64_t bits = random.chance(special) ? random.next() : uint64_t(int64_t(random.below(20)) - (is_signed(dtype) ? 8 : 0));
      std::memcpy(at, &bits, bytes(dtype));
    } else {
      // A sum of uniforms: bell-shaped, within ±6.
      double value = 0;
      for (int n = 0; n < 4; n++) value += random.unit();
      value = (value - 2) * 3;
      if (spread == Spread::far) value = 1e4 + value / 4;
      if (spread == Spread::tiny) value *= 0x1p-130;
      if (spread == Spread::wide) value = std::ldexp(value, int(random.below(120)) - 60);
      if (random.chance(special)) value = kSpecial[random.below(std::size(kSpecial))];
      convert(DType::f64, reinterpret_cast<const std::byte*>(&value), dtype, at, 1);
    }
  }
  return out;
}

}  // namespace fusec::fuzz
