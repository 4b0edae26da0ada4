// Measures formulas and keeps the table of docs/numerics.md: largest error found and where, and the numbers of steps.
//
//   formula_exhaustive [--sample] [--millions N] [--write docs/numerics.md] [op …]      (no op: all of them)
//
// f32 with one operand: all 2^32 inputs, unless --sample. The f64 formula is the quick judge, eight lanes at a time;
// whatever may set a new record and every 61st input go to the C library in double; about half a minute an op. The rest:
// N million random inputs (f32: 8 N; N is 1 when absent) against the C library in long double (f32: double).

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "test/ir/formula_native.h"
#include "test/ir/formula_reference.h"
#include "test/ir/formula_sample.h"
#include "test/ir/formula_table.h"

namespace fusec {
namespace {

constexpr double kAlpha = 0.25, kBeta = 0.5;
constexpr size_t kBlock = 4096;

template <class T>
struct Worst {
  double ulps = -1;
  T x = 0, y = 0;
  void see(double error, T a, T b) {
    if (error > ulps) ulps = error, x = a, y = b;
  }
};

/// Errors of out[i] against ref[i] in ulps of float: what ulps() says, for a whole block and without branches.
void quick_errors(const float* out, const double* ref, double* errors) {
  for (size_t i = 0; i < kBlock; ++i) {
    const double exact = ref[i] < -0x1p128 ? -0x1p128 : ref[i] > 0x1p128 ? 0x1p128 : ref[i];
    const double value = out[i] < -0x1.fffffep127f ? -0x1p128 : out[i] > 0x1.fffffep127f ? 0x1p128 : double(out[i]);
    const int64_t raised = std::bit_cast<int64_t>(exact) >> 52 & 2047;
    const int64_t exponent = raised < 1023 - 126 ? 1023 - 126 : raised > 1023 + 127 ? 1023 + 127 : raised;
    const double scale = std::bit_cast<double>((2046 - exponent + 23) << 52);
    const double distance = (value < exact ? exact - value : value - exact) * scale;
    const bool signs = (std::bit_cast<int32_t>(out[i]) < 0) != (std::bit_cast<int64_t>(exact) < 0);
    const bool odd = value == 0 && signs;
    errors[i] = odd ? 1e300 : distance;
  }
}

/// sin, cos or tan of a finite float beyond 2^44: an angle from 128 bits of 1 / (2π), where the f64 formula has none
/// and the C library takes long.
double far_circular(Op op, float x) {
  __extension__ using Wide = unsigned __int128;
  __extension__ using Signed = __int128;
  constexpr uint64_t inverse[4] = {0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158};
  const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(x));
  const uint32_t position = (bits >> 23) - 150, word = position / 64, shift = position % 64;
  const auto joined = [&](uint32_t k) { return shift ? inverse[k] << shift | inverse[k + 1] >> (64 - shift) : inverse[k]; };
  const Wide turns = (Wide{joined(word)} << 64 | joined(word + 1)) * ((bits & 0x7fffff) | 0x800000);
  const double r = static_cast<double>(static_cast<Signed>(turns << 2)) * 0x1.921fb54442d18p-128;
  const int quadrant = static_cast<int>((turns + (Wide{1} << 125)) >> 126) & 3;
  const double s = std::sin(r), c = std::cos(r), sign = x < 0 ? -1 : 1;
  if (op == Op::tan) return sign * (quadrant % 2 ? -c / s : s / c);
  const int turned = op == Op::cos ? quadrant + 1 : quadrant;
  return (turned % 2 ? c : s) * (turned & 2 ? -1 : 1) * (op == Op::cos ? 1 : sign);
}

/// All floats. A NaN on either side makes a NaN of the quick error, and goes to the slow judge too.
Worst<float> all_floats(Op op) {
  static float in[kBlock], out[kBlock];
  static double wide[kBlock], ref[kBlock], errors[kBlock];
  const bool circular = op == Op::sin || op == Op::cos || op == Op::tan;
  Worst<float> worst;
  for (uint64_t start = 0; start < uint64_t{1} << 32; start += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) in[i] = std::bit_cast<float>(static_cast<uint32_t>(start + i));
    for (size_t i = 0; i < kBlock; ++i) wide[i] = in[i];
    formulas::native<float>(op, in, in, out, kBlock, kAlpha, kBeta);
    formulas::native<double>(op, wide, wide, ref, kBlock, kAlpha, kBeta);
    if (circular && std::fabs(in[0]) > 0x1p44f && std::isfinite(in[0]))
      for (size_t i = 0; i < kBlock; ++i) ref[i] = far_circular(op, in[i]);
    quick_errors(out, ref, errors);
    for (size_t i = 0; i < kBlock; ++i) {
      const bool drawn = (start + i) % 61 == 0;
      const bool good = errors[i] <= worst.ulps - 1e-3 || (std::isnan(out[i]) && std::isnan(ref[i]));
      if (good && !drawn) continue;
      worst.see(ulps<float, double>(out[i], reference<double>(op, in[i], in[i], kAlpha, kBeta)), in[i], 0);
    }
  }
  return worst;
}

template <class T, class R>
Worst<T> sampled(Op op, size_t count) {
  static T x[kBlock], y[kBlock], out[kBlock];
  const bool circular = sizeof(T) == 8 && (op == Op::sin || op == Op::cos || op == Op::tan);
  Sample<T> sample(static_cast<uint64_t>(op) + 1000);
  Worst<T> worst;
  for (size_t start = 0; start < count; start += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) {
      x[i] = info(op).arity == 1 ? sample.next(start + i) : sample.any();
      y[i] = sample.any();
    }
    formulas::native<T>(op, x, y, out, kBlock, kAlpha, kBeta);
    for (size_t i = 0; i < kBlock; ++i)
      if (!(circular && std::fabs(x[i]) > T(0x1p45)))
        worst.see(ulps<T, R>(out[i], reference<R>(op, x[i], y[i], kAlpha, kBeta)), x[i], y[i]);
  }
  return worst;
}

std::string digits(double v, int precision, std::chars_format format) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v, format, precision).ptr};
}

template <class T>
std::string place(const Worst<T>& w, int operands) {
  const int precision = sizeof(T) == 4 ? 9 : 17;
  std::string at = digits(w.x, precision, std::chars_format::general);
  return operands == 1 ? at : at + ", " + digits(w.y, precision, std::chars_format::general);
}

/// The row of `op` measured; its bounds come from `old`.
FormulaRow measured(Op op, FormulaRow old, bool all, size_t f64_samples) {
  const int operands = info(op).arity;
  all = all && operands == 1;
  const auto f32 = all ? all_floats(op) : sampled<float, double>(op, 8 * f64_samples);
  const auto f64 = sampled<double, long double>(op, f64_samples);
  old.cells[FormulaRow::op] = name(op);
  old.cells[FormulaRow::f32_steps] = std::to_string(working_steps(*formula(op, DType::f32)));
  old.cells[FormulaRow::f64_steps] = std::to_string(working_steps(*formula(op, DType::f64)));
  old.cells[FormulaRow::f32_found] = digits(f32.ulps, 3, std::chars_format::fixed) + (all ? "" : " (sample)");
  old.cells[FormulaRow::f64_found] = digits(f64.ulps, 3, std::chars_format::fixed);
  old.cells[FormulaRow::f32_at] = place(f32, operands);
  old.cells[FormulaRow::f64_at] = place(f64, operands);
  return old;
}

/// Replaces the row of the same op in the file.
bool write_row(const std::string& path, const FormulaRow& row) {
  std::ifstream in(path);
  std::string all;
  bool found = false;
  for (std::string line; std::getline(in, line);) {
    const auto old = formula_row(line);
    const bool same = old && old->cells[0] == row.cells[0];
    found |= same;
    all += (same ? text(row) : line) + "\n";
  }
  in.close();
  return found && std::ofstream(path).write(all.data(), static_cast<std::streamsize>(all.size())).good();
}

int run(int count, char** arguments) {
  std::string path;
  size_t millions = 1;
  bool all = true;
  std::vector<Op> ops;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--write" && i + 1 < count) path = arguments[++i];
    else if (word == "--sample") all = false;
    else if (word == "--millions" && i + 1 < count) millions = std::strtoull(arguments[++i], nullptr, 10);
    else if (const auto which = op(word); which && info(*which).form == Form::formula) ops.push_back(*which);
    else return std::fprintf(stderr, "%s is no formula\n", word.c_str()), 2;
  }
  if (ops.empty())
    for (int k = 0; k < kOps; ++k)
      if (info(static_cast<Op>(k)).form == Form::formula) ops.push_back(static_cast<Op>(k));
  for (Op which : ops) {
    const auto rows = path.empty() ? std::map<std::string, FormulaRow>{} : formula_rows(path);
    const auto old = rows.find(std::string(name(which)));
    const FormulaRow row = measured(which, old == rows.end() ? FormulaRow{} : old->second, all, millions * 1000000);
    std::puts(text(row).c_str());
    std::fflush(stdout);
    if (!path.empty() && !write_row(path, row)) return std::fprintf(stderr, "%s has no such row\n", path.c_str()), 3;
  }
  return 0;
}

}  // namespace
}  // namespace fusec

int main(int count, char** arguments) { return fusec::run(count, arguments); }
