#pragma once
// The three forms of what the bench measured: lines on a terminal, a Markdown table, JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/fusec/measure.h"

namespace fusec::cli {

/// "2026-11-29", UTC.
std::string today();
/// Text padded to a width in letters.
std::string column(std::string text, size_t width);

struct BenchRow {
  std::string name;
  Figures figures;
  double same = 0;           // copy rate at this footprint, of the small ones; 0: the large copy counts
  std::string error;         // instead of figures
  int status = 0;            // … and whose fault it is, as an exit status
};

struct BenchTable {
  std::string device, description, date;
  Ceilings ceilings;
  std::vector<std::string> notes;  // what is not as the workloads say: sizes, schedules
  std::vector<BenchRow> rows;
};

/// Fraction of the copy rate that counts for a row: of a copy of the same size for small ones, else of the large copy.
double fraction(const BenchTable& table, const BenchRow& row);
/// Geometric mean of the fractions of all rows that move at least a megabyte; 0 without any. `count`: how many those are.
double geomean(const BenchTable& table, int* count);

std::string heading(const BenchTable& table);       // lines about device and ceilings
std::string terminal_head();
std::string terminal_row(const BenchTable& table, const BenchRow& row);
std::string terminal_foot(const BenchTable& table);
std::string markdown(const BenchTable& table);
nlohmann::json json(const BenchTable& table);

}  // namespace fusec::cli
