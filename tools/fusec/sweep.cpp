#include "tools/fusec/sweep.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tools/fusec/bench_table.h"
#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

const int64_t kLengths[] = {16,    17,    31,    32,     33,     48,     63,     64,     65,     96,     100,    127,    128,    129,    192,     255,
                            256,   257,   384,   509,    512,    513,    768,    1000,   1021,   1024,   1025,   1536,   2047,   2048,   2049,    3072,
                            4093,  4096,  4097,  5120,   6144,   8191,   8192,   8193,   10240,  12288,  14336,  16381,  16384,  16385,  20480,   24576,
                            32768, 32769, 40960, 50256,  50257,  65521,  65536,  65537,  98304,  131071, 131072, 131073, 196608, 262144, 262145,  393216,
                            524287, 524288, 524289, 786432, 1048573, 1048576};
const int64_t kQuick[] = {16,    17,    64,    127,   128,   256,   257,    1000,   1024,   1025,   2048,   4096,    4097,
                          8192,  16384, 16385, 32768, 50256, 50257, 65536, 65537, 131072, 262144, 262145, 524288, 1048573, 1048576};

struct Op {
  const char* name;
  const char* parameters;  // beside %x; T is the type of values, C the length of a row
  const char* body;        // from %v to %y
  enum { rows, row_values, column_values } result;
};
const Op kOps[] = {
    {"softmax", "", "%y = softmax %v {axes=[1]}", Op::rows},
    {"layer_norm", ", %g: T[C], %b: T[C]", "%y = layer_norm %v, %g, %b {axes=[1], eps=1e-05}", Op::rows},
    {"rms_norm", ", %g: T[C]", "%n = rms_norm %v {axes=[1], eps=1e-06}\n  %y = mul %n, %g", Op::rows},
    {"row_sum", "", "%w = cast %v {to=f32}\n  %y = sum %w {axes=[1]}", Op::row_values},
    {"col_sum", "", "%w = cast %v {to=f32}\n  %y = sum %w {axes=[0]}", Op::column_values},
    {"bias_gelu", ", %b: T[C]", "%t = add %v, %b\n  %y = gelu %t", Op::rows},
};

struct Types {
  const char* name;
  const char* in;
  const char* value;
  int in_bytes, value_bytes;
};
const Types kTypes[] = {{"f32", "f32", "f32", 4, 4}, {"bf16", "bf16", "bf16", 2, 2}, {"u8", "u8", "f32", 1, 4}};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) text.replace(at, what.size(), with);
  return text;
}

struct Point {
  const Op* op;
  const Types* types;
  int64_t length, rows;
  Subject subject;
  std::optional<Result<Program>> program;
  std::optional<Figures> figures;
  std::future<Result<Checked>> check;
  std::string wrong;      // what failed
  double fraction = 0;
  std::string flag;       // what is below its bound
  int status = 1;         // exit status of what failed
};

Point make_point(const Op& op, const Types& types, int64_t length, double bytes) {
  const int each = types.in_bytes + (op.result == Op::rows ? types.value_bytes : 0);
  int64_t rows = std::max<int64_t>(1, int64_t(bytes / (double(length) * each)));
  if (rows == length) --rows;  // the check tells rows and columns apart by their extent
  const std::string r = std::to_string(rows), c = std::to_string(length);
  const std::string value = types.value, sums = "f32";
  const std::string result = op.result == Op::rows ? value + "[" + r + "," + c + "]" : op.result == Op::row_values ? sums + "[" + r + "]" : sums + "[" + c + "]";
  std::string text = std::string("graph @") + op.name + "(%x: " + types.in + "[" + r + "," + c + "]" + replaced(replaced(op.parameters, "T[", value + "["), "[C]", "[" + c + "]") +
                     ") -> " + result + " {\n";
  text += std::string(types.in) == types.value ? replaced(op.body, "%v", "%x") : "  %v = cast %x {to=" + value + "}\n  " + op.body;
  text += "\n  return %y\n}\n";
  // The axes in brackets are 0 and 1.
  const int64_t independent = op.result == Op::column_values ? length : rows;
  return {&op, &types, length, rows, {std::move(text), {}, {}, independent > 1 ? independent : 0}, {}, {}, {}, "", 0, "", 1};
}

bool wanted(const SweepOptions& o, const Op& op, const Types& types) {
  const std::string op_name = op.name, type = types.name;
  return o.only.empty() || std::any_of(o.only.begin(), o.only.end(), [&](const std::string& w) { return w == op_name || w == type || w == op_name + "_" + type; });
}

double bound(int64_t length) { return length <= 16384 ? 0.97 : length <= 524288 ? 0.93 : 0.83; }

/// Compiles all points on all cores.
void compile_all(const Measurer& measurer, const SweepOptions& o, std::vector<Point>& points) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < points.size();) points[i].program.emplace(measurer.compile(points[i].subject, o.measure));
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

void measure_point(Measurer& measurer, const SweepOptions& o, double copy, bool beside, Point& p) {
  Result<Program>& program = *p.program;
  Result<Figures> figures = program ? measurer.measure(*program, p.subject, o.measure, beside ? &p.check : nullptr) : Result<Figures>(program.error());
  p.program.reset();
  if (!figures) {
    p.wrong = figures.error().message, p.status = status_of(figures.error());
    return;
  }
  p.figures = std::move(*figures);
  if (p.figures->checked && !p.figures->good) p.wrong = p.figures->check;
  p.fraction = p.figures->bytes / std::max(p.figures->time.median, 1e-12) / std::max(copy, 1e-12);
}

/// The even length next to an odd one: as near as it gets, within 2 %.
const Point* even_neighbour(const std::vector<Point>& points, const Point& odd) {
  const Point* best = nullptr;
  for (const Point& p : points) {
    if (p.op != odd.op || p.types != odd.types || p.length % 2 || !p.figures) continue;
    const int64_t away = std::abs(p.length - odd.length);
    if (away > std::max<int64_t>(1, odd.length / 50)) continue;
    if (!best || away < std::abs(best->length - odd.length)) best = &p;
  }
  return best;
}

void flag(std::vector<Point>& points) {
  for (Point& p : points) {
    if (!p.figures) continue;
    if (p.fraction < bound(p.length)) p.flag = fixed(p.fraction, 3) + " is below " + fixed(bound(p.length), 2);
    if (p.length % 2 == 0) continue;
    const Point* even = even_neighbour(points, p);
    if (even && p.fraction < 0.95 * even->fraction)
      p.flag += (p.flag.empty() ? fixed(p.fraction, 3) + " is" : ";") + std::string(" more than 5 % below ") + fixed(even->fraction, 3) + " at " + std::to_string(even->length);
  }
}

std::string label(const Point& p) { return std::string(p.op->name) + "_" + p.types->name; }

std::string cell(const Point& p) {
  if (!p.figures) return "failed";
  return fixed(p.fraction, 3) + (p.fraction < bound(p.length) ? "!" : "");
}

nlohmann::json as_json(const BenchTable& table, const std::vector<Point>& points) {
  nlohmann::json out = json(table);
  out.erase("workloads");
  out["points"] = nlohmann::json::array();
  for (const Point& p : points) {
    nlohmann::json one = {{"op", p.op->name}, {"types", p.types->name}, {"length", p.length}, {"rows", p.rows}};
    if (!p.wrong.empty()) one["wrong"] = p.wrong;
    if (!p.flag.empty()) one["flag"] = p.flag;
    if (p.figures) {
      one["fraction"] = p.fraction, one["median_s"] = p.figures->time.median, one["spread"] = p.figures->time.spread, one["bytes"] = p.figures->bytes;
      for (const KernelFigures& k : p.figures->kernels) one["schedules"].push_back(k.schedule);
    }
    out["points"].push_back(std::move(one));
  }
  return out;
}

}  // namespace

int sweep(const Backend& device, const SweepOptions& o) {
  const double bytes = o.bytes > 0 ? o.bytes : is_gpu(device) ? 1e9 : 32e6;
  std::vector<int64_t> lengths = o.lengths;
  if (lengths.empty()) lengths = o.quick ? std::vector<int64_t>(std::begin(kQuick), std::end(kQuick)) : std::vector<int64_t>(std::begin(kLengths), std::end(kLengths));
  std::vector<Point> points;
  size_t width = 0;  // points of a length
  for (int64_t length : lengths) {
    width = 0;
    for (const Types& types : kTypes)
      for (const Op& op : kOps)
        if (wanted(o, op, types)) points.push_back(make_point(op, types, length, bytes)), ++width;
  }
  if (points.empty()) return fail(input_error("--only: softmax, layer_norm, rms_norm, row_sum, col_sum, bias_gelu, f32, bf16, u8 and pairs such as softmax_f32 are known"));

  Result<Flush> flush = Flush::make(device);
  if (!flush) return fail(flush.error());
  BenchTable table{device.name(), device.description(), today(), {}, {"each point moves about " + size_text(bytes)}, {}};
  Result<Ceilings> ceilings = measure_ceilings(device, *flush, is_gpu(device) ? 0 : size_t(std::max(bytes, 65536.0)) / 32 * 16, o.measure.runs);
  if (!ceilings) return fail(ceilings.error());
  table.ceilings = *ceilings;
  Measurer measurer(device, *flush);
  std::ostream& shown = o.json == "-" ? std::cerr : std::cout;  // standard output belongs to the JSON
  shown << heading(table) << "compiling " << points.size() << " graphs" << std::endl;
  compile_all(measurer, o, points);

  shown << "\n" << (o.markdown ? "| length |" : column("length", 9));
  for (size_t i = 0; i < width; ++i) shown << (o.markdown ? " " + label(points[i]) + " |" : column(label(points[i]), 16));
  if (o.markdown) {
    shown << "\n|---|";
    for (size_t i = 0; i < width; ++i) shown << "---|";
  }
  shown << std::endl;
  const bool beside = is_gpu(device);  // on a CPU a comparison would disturb what is measured
  for (size_t at = 0; at < points.size(); at += width) {
    const std::string length = std::to_string(points[at].length);
    shown << (o.markdown ? "| " + length + " |" : column(length, 9));
    for (size_t i = at; i < at + width; ++i) {
      measure_point(measurer, o, ceilings->copy, beside, points[i]);
      shown << (o.markdown ? " " + cell(points[i]) + " |" : column(cell(points[i]), 16));
    }
    shown << std::endl;
  }
  for (Point& p : points) {
    if (!p.check.valid()) continue;
    if (Result<Checked> found = p.check.get(); !found) p.wrong = found.error().message, p.status = status_of(found.error());
    else if (!found->good) p.wrong = found->text;
  }
  flag(points);
  size_t below = 0;
  int status = 0;
  shown << "\n";
  for (const Point& p : points) {
    const std::string where = column(label(p), 16) + column(std::to_string(p.rows) + " x " + std::to_string(p.length), 20);
    if (!p.wrong.empty()) shown << where << "WRONG: " << p.wrong << "\n", status = std::max(status, p.status);
    if (p.flag.empty()) continue;
    ++below;
    shown << where << p.flag << ": " << p.figures->kernels.front().schedule << "\n";
  }
  shown << below << " of " << points.size() << " points are below their bounds (0.97 up to 16384, 0.93 up to 524288, 0.83 beyond; odd within 5 % of even)\n";
  if (!o.json.empty())
    if (Status s = write_output(o.json, as_json(table, points).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); !s) return fail(s.error());
  return status;
}

}  // namespace fusec::cli
