#pragma once
// The workloads of tools/bench/workloads: one graph a file, with what the bench has to know in comments:
//
//   ; rows: 32768      the indices of this extent are independent: a check cuts it, and --bytes shrinks it
//   ; shrinks: 4096    --bytes shrinks this extent, but a check may not
//   ; positive: %v     this input is drawn positive

#include <string>
#include <vector>

#include "tools/fusec/measure.h"

namespace fusec::cli {

struct Workload {
  std::string name;  // of the file, without its ending
  Subject subject;
  int64_t shrinks = 0;
};

/// Takes the comments of a file's text.
/// Errors   input: one that does not parse.
Status read_comments(const std::string& text, Workload& out);
/// The graphs of any file, with the sizes of their named dims, as workloads; the comments of a .fus file with one graph count.
/// Errors   input: a file that does not parse, a dim without a size.
Result<std::vector<Workload>> workloads_of(const std::string& file, const std::vector<std::string>& dims);
/// The folder of workloads: the given one, or beside or below the executable (bin/../share/fusec/workloads, build/../tools/bench/workloads).
Result<std::string> workloads_folder(const std::string& given);
/// All .fus files of a folder, by name.
/// Errors   input: no folder, no such file in `only`, a comment that does not parse.
Result<std::vector<Workload>> load_workloads(const std::string& folder, const std::vector<std::string>& only);
/// The workload with its extent made smaller until it moves at most `bytes`; as it is when it does already.
Result<Workload> shrunk(const Workload& workload, double bytes);
/// Bytes of all inputs and outputs.
/// Errors   input: a dim without a size.
Result<double> footprint(const Graph& graph, const Sizes& sizes);

}  // namespace fusec::cli
