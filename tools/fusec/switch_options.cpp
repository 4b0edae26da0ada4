#include "tools/fusec/switch_options.h"

#include <CLI/CLI.hpp>

namespace fusec::cli {

std::string SwitchOptions::words() const {
  std::string out;
  for (const auto& [name, value] : given) {
    out += name + (value.empty() ? "" : "=\"");
    for (char c : value) out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    out += value.empty() ? " " : "\" ";
  }
  return out;
}

void add_switches(CLI::App& app, SwitchOptions& options) {
  for (const Switch& s : switches()) {
    if (!*s.value) {
      app.add_flag_function(s.name, [&options, name = s.name](int64_t) { options.given.emplace_back(name, ""); }, s.what);
      continue;
    }
    // One value each time: it takes no word that stands for something else.
    auto take = [&options, name = s.name](const std::vector<std::string>& values) {
      for (const std::string& value : values) options.given.emplace_back(name, value);
    };
    app.add_option_function<std::vector<std::string>>(s.name, take, s.what)
        ->type_name(s.value)->expected(1)->take_all()->allow_extra_args(false)
        ->check([&s](const std::string& value) -> std::string {
          Switches scratch;
          if (value.empty() || value.starts_with("--")) return std::string("a value is expected: ") + s.value;
          const Status good = s.set(scratch, value);
          return good ? "" : good.error().message;
        });
  }
}

}  // namespace fusec::cli
