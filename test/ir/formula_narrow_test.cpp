// Formulas of f16, bf16 and f8 results over every operand there is: the table "Narrow results" of docs/numerics.md states
// the largest error of each, no error is above 0.55 ulp of the result, and NaN, infinities, zeros and overflow are exact.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "fusec/fusec.h"
#include "lib/ir/convert.h"
#include "test/ir/formula_reference.h"
#include "test/ir/formula_table.h"

namespace fusec {
namespace {

constexpr double kAlpha = 0.25, kMost = 0.55;

struct Storage {
  DType type;
  int digits, least;  // of the significand, the first one included; exponent of the smallest denormal
  double end;         // numbers from here on are infinite (f8e4m3: NaN)
};
const Storage kStorages[] = {{DType::bf16, 8, -133, 0x1.ffp127},
                             {DType::f16, 11, -24, 65520},
                             {DType::f8e4m3, 4, -9, 464},
                             {DType::f8e5m2, 3, -16, 61440}};

const std::vector<Op> kOpsWithNarrowForms = {
#define NARROW(name, operands, scalars, body) Op::name,
#include "lib/ir/formulas_narrow.def"
#undef NARROW
};

/// Every value of a storage type, and `op` of each.
struct Values {
  Tensor x, y;
};
Values values(Op op, DType type) {
  const int64_t count = int64_t{1} << 8 * bytes(type);
  Values v;
  v.x = {type, {count}, std::vector<std::byte>(size_t(count) * bytes(type))};
  for (int64_t i = 0; i < count; ++i) std::memcpy(&v.x.data[size_t(i) * bytes(type)], &i, bytes(type));  // little endian
  GraphBuilder b("g");
  Attrs a;
  a.alpha = kAlpha;
  const Value x = b.input("x", {type, {count}});
  const Value y = b.add(op, {x}, info(op).attributes.find("alpha") == std::string_view::npos ? Attrs{} : a);
  const Result<Graph> graph = std::move(b).finish({y});
  EXPECT_TRUE(graph);
  auto out = evaluate(*graph, std::span(&v.x, 1));
  EXPECT_TRUE(out);
  v.y = (*out)[0];
  return v;
}

struct Worst {
  double error = 0, at = 0;
};

/// The largest error over all operands; where the true value is no number of the type's range, the result has to be it.
Worst worst(Op op, const Storage& s) {
  const Values v = values(op, s.type);
  Worst out;
  for (int64_t i = 0; i < v.x.elements(); ++i) {
    const double x = element(v.x, i), y = element(v.y, i);
    const long double exact = reference<long double>(op, x, 0, kAlpha, 0);
    const std::string at = std::string(name(op)) + " of " + std::to_string(x) + " gave " + std::to_string(y);
    if (std::isnan(exact) || (s.type == DType::f8e4m3 && std::fabs(exact) > s.end * 1.001L)) {
      EXPECT_TRUE(std::isnan(y)) << at;
      continue;
    }
    if (s.type == DType::f8e4m3 && std::fabs(exact) > s.end * 0.999L) continue;
    EXPECT_EQ(std::signbit(y), std::signbit(exact)) << at;
    if (exact == 0) { EXPECT_EQ(y, 0) << at; }
    if (std::fabs(exact) >= s.end * 1.001L) {
      EXPECT_TRUE(std::isinf(y)) << at;
      continue;
    }
    int exponent;
    std::frexp(exact, &exponent);
    const long double end = std::ldexp(1.0L, s.type == DType::bf16 ? 128 : 16);
    const long double value = std::isinf(y) ? std::copysign(end, (long double)y) : y;
    const double error = double(std::fabs(value - exact) / std::ldexp(1.0L, std::max(exponent - s.digits, s.least)));
    EXPECT_LE(error, std::isinf(x) ? 0.5 : kMost) << at;
    if (error > out.error) out = {error, x};
  }
  return out;
}

std::string decimals(double x, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

/// A row of the table as it should be.
std::string row(Op op) {
  std::string out = "| " + std::string(name(op)) + " | " + std::to_string(working_steps(*formula(op, DType::f32))) + " |";
  for (size_t k : {0u, 1u}) {
    const Worst w = worst(op, kStorages[k]);
    out += " " + std::to_string(working_steps(*formula(op, kStorages[k].type))) + " | " + decimals(w.error, "%.3f") + " | " +
           decimals(w.at, "%.6g") + " |";
  }
  return out;
}

TEST(FormulaNarrow, the_table_states_the_largest_error_over_all_operands) {
  std::ifstream in(std::string(FUSEC_SOURCE_DIR) + "/docs/numerics.md");
  std::stringstream text;
  text << in.rdbuf();
  for (Op op : kOpsWithNarrowForms) {
    const std::string expected = row(op);
    EXPECT_NE(text.str().find(expected + "\n"), std::string::npos) << "docs/numerics.md lacks this row:\n" << expected;
  }
}

TEST(FormulaNarrow, f8_results_are_at_least_as_good) {
  for (Op op : kOpsWithNarrowForms)
    for (size_t k : {2u, 3u}) {
      SCOPED_TRACE(std::string(name(op)) + " " + std::string(name(kStorages[k].type)));
      EXPECT_EQ(formula(op, kStorages[k].type), formula(op, DType::bf16));
      EXPECT_LE(worst(op, kStorages[k]).error, kMost);
    }
}

// Rules move max and min through ops whose card says kMonotone.
TEST(FormulaNarrow, monotone_ops_never_step_back) {
  for (Op op : kOpsWithNarrowForms) {
    if (!has(op, kMonotone)) continue;
    for (const Storage& s : kStorages) {
      const Values v = values(op, s.type);
      std::vector<std::pair<double, double>> points;
      for (int64_t i = 0; i < v.x.elements(); ++i)
        if (!std::isnan(element(v.x, i)) && !std::isnan(element(v.y, i))) points.push_back({element(v.x, i), element(v.y, i)});
      std::sort(points.begin(), points.end());
      for (size_t i = 1; i < points.size(); ++i)
        ASSERT_LE(points[i - 1].second, points[i].second) << name(op) << " " << name(s.type) << " at " << points[i].first;
    }
  }
}

/// All ops of every value on a device: the reference's bits, but for those of a NaN. An absent device skips.
void expect_same_bits(const std::string& device) {
  for (const Storage& s : kStorages) {
    const Values first = values(Op::exp, s.type);
    GraphBuilder b("g");
    const Value x = b.input("x", {s.type, {first.x.extents[0]}});
    std::vector<Value> results;
    for (Op op : kOpsWithNarrowForms) {
      Attrs a;
      if (info(op).attributes.find("alpha") != std::string_view::npos) a.alpha = kAlpha;
      results.push_back(b.add(op, {x}, a));
    }
    const Result<Graph> graph = std::move(b).finish(results);
    ASSERT_TRUE(graph);
    CompileOptions options;
    options.device = device, options.cache = false;
    const Result<Program> program = compile(*graph, options);
    if (!program && program.error().kind == Error::environment) GTEST_SKIP() << program.error().message;
    ASSERT_TRUE(program) << program.error().text();
    const auto wanted = evaluate(*graph, std::span(&first.x, 1));
    ASSERT_TRUE(wanted);
    std::vector<Tensor> got = *wanted;
    Tensor input = first.x;
    std::vector<Buffer> outputs;
    for (Tensor& t : got) t.data.own().assign(t.data.size(), std::byte{0x5a}), outputs.push_back({t.data.data(), t.extents});
    const Buffer in{input.data.data(), input.extents};
    const Status done = program->run(std::span(&in, 1), outputs);
    ASSERT_TRUE(done) << done.error().text();
    for (size_t k = 0; k < got.size(); ++k)
      for (int64_t i = 0; i < input.elements(); ++i) {
        const double g = element(got[k], i), w = element((*wanted)[k], i);
        ASSERT_TRUE(g == w ? std::signbit(g) == std::signbit(w) : std::isnan(g) && std::isnan(w))
            << device << " " << name(s.type) << " " << name(kOpsWithNarrowForms[k]) << " of " << element(input, i) << ": " << g << ", not " << w;
      }
  }
}

TEST(FormulaNarrow, the_cpu_gives_the_bits_of_the_reference) { expect_same_bits("cpu"); }
TEST(FormulaNarrow, cuda_text_on_the_host_gives_the_bits_of_the_reference) { expect_same_bits("simt"); }

TEST(FormulaNarrow, ops_without_a_form_take_that_of_f32) {
  for (DType type : {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    EXPECT_EQ(formula(Op::atan2, type), formula(Op::atan2, DType::f32));
    EXPECT_EQ(formula(Op::cbrt, type), formula(Op::cbrt, DType::f32));
  }
  EXPECT_NE(formula(Op::exp, DType::bf16), formula(Op::exp, DType::f16));
}

}  // namespace
}  // namespace fusec
