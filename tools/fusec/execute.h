#pragma once
// A graph on dense tensors, on any device: what run, test and bench share.

#include <span>
#include <string>
#include <vector>

#include "fusec/fusec.h"
#include "runtime/backend.h"
#include "tools/fusec/tensor_file.h"

namespace CLI {
class App;
}

namespace fusec::cli {

struct ExecuteOptions {
  std::string device = "reference";  // auto | cpu | cuda[:N] | simt | reference
  Numerics numerics = Numerics::strict;
  std::vector<std::string> schedule;  // fields of schedules set by hand
  std::string tuning;                 // a tuning file
  std::string switches;              // as CompileOptions::switches
};

struct Timing {
  std::string device;
  double median = 0, best = 0, spread = 0;  // seconds of a warm call; spread: (p90 - p10) / median
  double compile = 0;                       // seconds of compile() and the first call
  Costs costs;                              // of the device up to the first result
  int runs = 0;
  double bytes = 0;                         // of all inputs and outputs, each once
  bool rotate = false;                      // asked for: walk through copies of the buffers, so that no cache holds them between calls
};

/// With `timing`, the call is repeated for about half a second.
Result<std::vector<Tensor>> execute(const ExecuteOptions& options, const Graph& graph, std::span<const Tensor> inputs, Timing* timing = nullptr);

/// "auto" as the device it stands for: the reference evaluator where there is neither a GPU nor LLVM.
std::string resolve(const std::string& device);

/// Can the device be used?
/// Errors   input: an unknown name; environment: not in this build or on this machine.
Status available(const std::string& device);

/// Devices that eval lines run on by default: reference, and those that this build and machine have.
std::vector<std::string> test_devices();

/// An input drawn from a seed: floats roughly normal (mean 0, deviation 1), integers in [-8, 8] or [0, 16], bools even odds.
/// The same for the same seed, name and type everywhere: xorshift64* seeded with the hash of (seed, name), four draws a normal.
Tensor draw(const std::string& name, DType dtype, std::vector<int64_t> extents, uint64_t seed);

struct Inputs {
  std::vector<Tensor> values;       // in the graph's order
  std::vector<std::string> drawn;   // names of those that were not given
};
/// The given tensors, and the rest drawn. `dims` are "N=1024"; other named dims follow from given tensors.
/// Errors   input: a named dim without a size or with two, a tensor of another type.
Result<Inputs> complete_inputs(const Graph& graph, Tensors given, const std::vector<std::string>& dims, uint64_t seed);
/// NAME=FILE, or FILE, in two; the name is empty without '='. Where there are several, the name is the longest one that is known, else what
/// stands in front of the first.
std::pair<std::string, std::string> name_and_file(const std::string& text, const std::vector<std::string>& known);
/// The tensors of -i: NAME=FILE, or a file whose tensors have names. `graph`, which may be null, says what a nameless one is, and what
/// types bytes without one have.
Result<Tensors> read_inputs(const std::vector<std::string>& specs, const Graph* graph);
/// Those of "N=1024" whose dim the graph has.
std::vector<std::string> dims_of(const Graph& graph, const std::vector<std::string>& dims);
Result<Sizes> parse_dims(const std::vector<std::string>& dims);

void add_numerics_option(CLI::App& app, Numerics& numerics);

}  // namespace fusec::cli
