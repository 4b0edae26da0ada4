#pragma once
// The table "Formulas" of docs/numerics.md, which states a bound for each formula: read by the tests, rewritten by
// test/long/formula_exhaustive.cpp.
//
//   | op | f32 steps | f32 bound | f32 found | at | f64 steps | f64 bound | f64 found | at |

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "lib/ir/formula.h"

namespace fusec {

struct FormulaRow {
  enum Column { op, f32_steps, f32_bound, f32_found, f32_at, f64_steps, f64_bound, f64_found, f64_at, columns };
  std::string cells[columns];

  double bound(DType type) const { return std::stod(cells[type == DType::f32 ? f32_bound : f64_bound]); }
};

/// The cells of a row of the table, nullopt for any other line.
inline std::optional<FormulaRow> formula_row(const std::string& line) {
  FormulaRow row;
  std::istringstream in(line);
  std::string cell;
  if (!std::getline(in, cell, '|') || !cell.empty()) return std::nullopt;
  for (std::string& c : row.cells) {
    if (!std::getline(in, cell, '|')) return std::nullopt;
    const size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    c = first == std::string::npos ? "" : cell.substr(first, last - first + 1);
  }
  const std::optional<Op> op = fusec::op(row.cells[FormulaRow::op]);
  if (!op || info(*op).form != Form::formula) return std::nullopt;
  return row;
}

inline std::string text(const FormulaRow& row) {
  std::string line = "|";
  for (const std::string& cell : row.cells) line += " " + cell + " |";
  return line;
}

inline std::map<std::string, FormulaRow> formula_rows(const std::string& path) {
  std::map<std::string, FormulaRow> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (const auto row = formula_row(line)) rows[row->cells[0]] = *row;
  return rows;
}

/// Steps that cost an instruction: all but parameters, constants and bitcasts.
inline int working_steps(const Formula& f) {
  int count = 0;
  for (const Step& step : f.steps) count += step.kind == Step::compute && step.op != Op::bitcast;
  return count;
}

}  // namespace fusec
