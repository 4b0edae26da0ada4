#pragma once
// What every subcommand is made of: a function that declares its options on a CLI11 app and returns what to do once they are parsed.
// main.cpp holds the table. Results go to stdout, messages to stderr.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/graph.h"

namespace CLI {
class App;
class Option;
}

namespace fusec::cli {

/// Exit statuses: 0 good, 1 a check failed, 2 the input is at fault, 3 the environment is, 70 fusec itself.
using Action = std::function<int()>;
/// What `fusec test` runs on a graph of a test: the text that the command would print for it.
using TextAction = std::function<Result<std::string>(const Graph&)>;

/// Prints the error to stderr and returns its exit status.
int fail(const Error& error);
/// That exit status alone.
int status_of(const Error& error);

/// A whole file; "-" is stdin.
Result<std::string> read_input(const std::string& path);
/// Replaces a file in one step: no partial one is ever seen. "-" is stdout.
Status write_output(const std::string& path, std::string_view bytes);
/// Whether write_output() could, of "" and "-" always: asked before what takes minutes.
Status may_write_output(const std::string& path);

/// An option that may repeat, with one value each time: it takes no word that stands for something else.
CLI::Option* add_list(CLI::App& app, const std::string& names, std::vector<std::string>& values, const std::string& help);
/// "" or what is wrong with a number of seconds: it is finite and not negative.
std::string not_seconds(const std::string& text);

/// "" or what is wrong with a number of bytes, which may be written as 16e6: 1 to 1e15. CLI11's ranges let NaN through.
std::string not_bytes(const std::string& text);

/// "" or what is wrong with a whole number from 0 to `most`: CLI11 would read the nearest number that fits.
std::string not_whole(const std::string& text, uint64_t most);

/// Line ends as \n and \r, so that a comment of one line stays one.
std::string one_line(std::string_view text);

/// For a terminal: control characters, which names of a graph may have, as \x1b; line ends and tabs stay.
std::string printable(std::string_view text);

/// Graphs of a .fus or .onnx file ("-" is .fus on stdin).
Result<std::vector<Graph>> load_graphs(const std::string& path);
/// The graph of that name; "" is the only one of the file.
Result<Graph> load_graph(const std::string& path, const std::string& name);

/// "1.23 ms", "4.5 µs": three digits.
std::string time_text(double seconds);
/// "1.5 GB", "320 B": decimal units.
std::string size_text(double bytes);
/// Locale-free, with `digits` after the point.
std::string fixed(double value, int digits);

}  // namespace fusec::cli
