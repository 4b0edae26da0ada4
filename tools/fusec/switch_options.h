#pragma once
// The switches of lib/passes/switches.h as options of a subcommand.

#include <string>
#include <utility>
#include <vector>

#include "lib/passes/switches.h"

namespace CLI {
class App;
}

namespace fusec::cli {

struct SwitchOptions {
  std::vector<std::pair<std::string, std::string>> given;  // name and value, in order
  /// As read_switches takes them.
  std::string words() const;
};
void add_switches(CLI::App& app, SwitchOptions& options);

}  // namespace fusec::cli
