#include "tools/fusec/bench_table.h"

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

constexpr double kLarge = 1e6;  // bytes from which a rate says something

double rate(const BenchRow& row) { return row.figures.bytes / std::max(row.figures.time.median, 1e-12); }
double of_copy(const BenchTable& table, const BenchRow& row) { return rate(row) / std::max(table.ceilings.copy, 1e-12); }
std::string known(int64_t n) { return n < 0 ? "–" : std::to_string(n); }
std::string microseconds(double seconds) { return fixed(seconds * 1e6, seconds < 1e-4 ? 2 : 1); }
std::string nvrtc(const Figures& f) { return f.compile_us() < 0 ? "–" : fixed(double(f.compile_us()) * 1e-3, 0); }

std::string host(const Figures& f) {
  return f.host > 0 ? fixed(f.host * 1e6, 2) + " / " + fixed(f.bare * 1e6, 2) + " / " + fixed(f.replay * 1e6, 2) : "–";
}

/// The eleven figures of a row, as Markdown and the terminal show them.
std::vector<std::string> cells(const BenchTable& table, const BenchRow& row) {
  const Figures& f = row.figures;
  return {fixed(f.bytes * 1e-6, 1),
          microseconds(f.time.median),
          fixed(f.time.spread * 100, 1) + " %",
          fixed(rate(row) * 1e-9, rate(row) < 1e11 ? 1 : 0),
          f.bytes < kLarge ? "–" : fixed(of_copy(table, row), 3),
          row.same > 0 ? fixed(rate(row) / row.same, 3) : "–",
          std::to_string(f.kernels.size()),
          known(f.registers()),
          known(f.spill_bytes()),
          nvrtc(f),
          f.from_disk > 0 ? fixed(f.from_disk * 1e3, 2) : "–",
          host(f)};
}

struct Column {
  const char* name;
  size_t width;
};
const Column kColumns[] = {{"MB", 8}, {"µs", 9}, {"spread", 8}, {"GB/s", 7}, {"of copy", 9}, {"of same", 9}, {"kernels", 9}, {"regs", 6}, {"spills", 8}, {"compile ms", 12}, {"disk ms", 9}, {"host / bare / replay µs", 24}};

}  // namespace

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return text;
}

std::string column(std::string text, size_t width) {
  size_t shown = 0;  // letters, not bytes: µ is two bytes
  for (char c : text) shown += (c & 0xc0) != 0x80;
  return text.append(shown < width ? width - shown : 1, ' ');
}

double fraction(const BenchTable& table, const BenchRow& row) { return row.same > 0 ? rate(row) / row.same : of_copy(table, row); }

double geomean(const BenchTable& table, int* count) {
  double sum = 0;
  *count = 0;
  for (const BenchRow& row : table.rows)
    if (row.error.empty() && row.figures.bytes >= kLarge) sum += std::log(std::max(fraction(table, row), 1e-12)), ++*count;
  return *count ? std::exp(sum / *count) : 0;
}

std::string heading(const BenchTable& table) {
  const Ceilings& c = table.ceilings;
  std::string out = table.device + ": " + table.description + ", " + table.date + "\n";
  out += "copy of " + size_text(double(c.block)) + ": " + size_text(c.copy) + "/s (read + written), read " + size_text(c.read) + "/s, write " + size_text(c.write) + "/s";
  if (c.launch > 0) out += "; empty kernel: " + time_text(c.launch) + " between events, " + time_text(c.host_launch) + " of the host";
  out += "\n";
  for (const std::string& note : table.notes) out += note + "\n";
  return out;
}

std::string terminal_head() {
  std::string out = column("workload", 36);
  for (const Column& c : kColumns) out += column(c.name, c.width);
  return out + "check\n";
}

std::string terminal_row(const BenchTable& table, const BenchRow& row) {
  std::string out = column(row.name, 36);
  if (!row.error.empty()) return out + "failed: " + row.error + "\n";
  const std::vector<std::string> all = cells(table, row);
  for (size_t i = 0; i < all.size(); ++i) out += column(all[i], kColumns[i].width);
  return out + (row.figures.checked ? row.figures.check : "not checked") + "\n";
}

std::string terminal_foot(const BenchTable& table) {
  int count = 0;
  const double mean = geomean(table, &count);
  return count ? "geometric mean of " + std::to_string(count) + ": " + fixed(mean, 3) + "\n" : "";
}

std::string markdown(const BenchTable& table) {
  std::string out = heading(table);
  for (size_t at = 0; (at = out.find('\n', at)) != out.npos; at += 2) out.insert(at, "\n");
  out += "| workload |";
  for (const Column& c : kColumns) out += std::string(" ") + c.name + " |";
  out += " check |\n|---|";
  for (size_t i = 0; i < std::size(kColumns); ++i) out += "---|";
  out += "---|\n";
  for (const BenchRow& row : table.rows) {
    out += "| " + row.name + " |";
    if (row.error.empty()) {
      for (const std::string& cell : cells(table, row)) out += " " + cell + " |";
      out += " " + (row.figures.checked ? row.figures.check : std::string("not checked"));
    } else {
      for (size_t i = 0; i < std::size(kColumns); ++i) out += " – |";
      out += " failed: " + row.error;
    }
    out += " |\n";
  }
  const std::string foot = terminal_foot(table);
  return out + (foot.empty() ? "" : "\n" + foot);
}

nlohmann::json json(const BenchTable& table) {
  const Ceilings& c = table.ceilings;
  nlohmann::json out = {{"device", table.device}, {"description", table.description}, {"date", table.date}, {"notes", table.notes},
                        {"ceilings", {{"block_bytes", c.block}, {"copy_bytes_per_s", c.copy}, {"read_bytes_per_s", c.read}, {"write_bytes_per_s", c.write},
                                      {"launch_s", c.launch}, {"host_launch_s", c.host_launch}}}};
  out["workloads"] = nlohmann::json::array();
  for (const BenchRow& row : table.rows) {
    if (!row.error.empty()) {
      out["workloads"].push_back({{"name", row.name}, {"error", row.error}});
      continue;
    }
    const Figures& f = row.figures;
    nlohmann::json one = {{"name", row.name}, {"bytes", f.bytes}, {"median_s", f.time.median}, {"best_s", f.time.best}, {"spread", f.time.spread},
                          {"runs", f.time.runs}, {"bytes_per_s", rate(row)}, {"of_copy", of_copy(table, row)}, {"fraction", fraction(table, row)},
                          {"compile_and_first_call_s", f.compile}, {"host_s", f.host}, {"bare_launch_s", f.bare}, {"replay_s", f.replay}, {"disk_to_launch_s", f.from_disk}};
    if (row.same > 0) one["same_size_copy_bytes_per_s"] = row.same;
    if (f.checked) one["right"] = f.good, one["check"] = f.check;
    one["kernels"] = nlohmann::json::array();
    for (const KernelFigures& k : f.kernels) {
      nlohmann::json kernel = {{"schedule", k.schedule}};
      for (auto [key, value] : {std::pair{"registers", k.registers}, {"spill_bytes", k.spill_bytes}, {"compile_us", k.compile_us}})
        if (value >= 0) kernel[key] = value;
      one["kernels"].push_back(std::move(kernel));
    }
    out["workloads"].push_back(std::move(one));
  }
  int count = 0;
  const double mean = geomean(table, &count);
  if (count) out["geomean"] = mean, out["geomean_of"] = count;
  return out;
}

}  // namespace fusec::cli
