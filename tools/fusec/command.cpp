#include "tools/fusec/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <iostream>
#include <iterator>

#include "lib/support/files.h"
#include "tools/fusec/import.h"

namespace fusec::cli {

int status_of(const Error& error) {
  switch (error.kind) {
    case Error::input: return 2;
    case Error::environment: return 3;
    case Error::internal: return 70;
  }
  return 70;
}

int fail(const Error& error) {
  std::cout.flush();
  std::cerr << "error: " << printable(error.text()) << (error.text().ends_with('\n') ? "" : "\n");
  return status_of(error);
}

Result<std::string> read_input(const std::string& path) {
  if (path == "-") return read_standard_input();
  return read_file(path);
}

Status write_output(const std::string& path, std::string_view bytes) {
  if (path != "-") return write_file_atomically(path, bytes);
  std::cout.write(bytes.data(), std::streamsize(bytes.size())).flush();
  return std::cout ? Status(Done{}) : Status(environment_error("cannot write to standard output"));
}

Status may_write_output(const std::string& path) { return path.empty() || path == "-" ? Status(Done{}) : may_write(path); }

CLI::Option* add_list(CLI::App& app, const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return app.add_option(names, values, help)->expected(1)->take_all()->allow_extra_args(false);
}

std::string not_seconds(const std::string& text) {
  double seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(seconds) && seconds >= 0;
  return good ? "" : "'" + text + "' is no number of seconds: a finite one, not negative, is expected";
}

std::string not_bytes(const std::string& text) {
  double bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const bool good = error == std::errc() && end == text.data() + text.size() && bytes >= 1 && bytes <= 1e15;
  return good ? "" : "'" + text + "' is no number of bytes from 1 to 1e15";
}

std::string not_whole(const std::string& text, uint64_t most) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && end == text.data() + text.size() && number <= most;
  return good ? "" : "'" + text + "' is no whole number from 0 to " + std::to_string(most);
}

std::string one_line(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return out;
}

std::string printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = uint8_t(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() && uint8_t(text[i + 1]) >= 0x80 && uint8_t(text[i + 1]) < 0xa0;  // U+0080 to U+009f
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || c1) {
      out += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
      if (c1) out += {'\\', 'x', kDigits[uint8_t(text[i + 1]) >> 4], kDigits[uint8_t(text[i + 1]) & 15]}, ++i;
    } else {
      out += char(c);
    }
  }
  return out;
}

Result<std::vector<Graph>> load_graphs(const std::string& path) {
  if (path.ends_with(".onnx")) {
    Result<Model> model = import_model(path);
    if (!model) return model.error();
    return std::vector<Graph>{std::move(model->graph)};
  }
  Result<std::string> text = read_input(path);
  if (!text) return text.error();
  Result<std::vector<Graph>> graphs = parse_all(*text, path);
  if (graphs && graphs->empty()) return input_error(path + ": there is no graph in it");
  return graphs;
}

Result<Graph> load_graph(const std::string& path, const std::string& name) {
  Result<std::vector<Graph>> graphs = load_graphs(path);
  if (!graphs) return graphs.error();
  if (name.empty() && graphs->size() == 1) return graphs->front();
  std::string names;
  for (const Graph& graph : *graphs)
    if (name == "@" + graph.name()) return graph;  // as messages write it
  for (const Graph& graph : *graphs) {
    if (graph.name() == name) return graph;
    names += (names.empty() ? "@" : ", @") + graph.name();
  }
  if (name.empty()) return input_error(path + ": which graph? --graph one of " + names);
  return input_error(path + ": there is no graph @" + name + ", only " + names);
}

std::string fixed(double value, int digits) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, digits);
  return error == std::errc() ? std::string(text, end) : "?";
}

namespace {
std::string scaled(double value, const char* const (&units)[5], double step) {
  size_t unit = 0;
  while (unit < 4 && value >= step * 0.9995) value /= step, ++unit;
  return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) + " " + units[unit];
}
}  // namespace

std::string time_text(double seconds) {
  static const char* const kUnits[5] = {"ns", "µs", "ms", "s", "ks"};
  return scaled(seconds * 1e9, kUnits, 1000);
}
std::string size_text(double bytes) {
  static const char* const kUnits[5] = {"B", "kB", "MB", "GB", "TB"};
  return bytes < 1000 ? fixed(bytes, 0) + " B" : scaled(bytes, kUnits, 1000);
}

}  // namespace fusec::cli
