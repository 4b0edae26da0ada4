#pragma once
// The program as a shell runs it, in a folder of a test's own with a cache of its own.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "test/folder.h"

namespace fs = std::filesystem;

struct Ran {
  int status;
  std::string out, err;
};

struct Cli : testing::Test {
  Cli() {
    ::setenv("FUSEC_CACHE_DIR", (dir / "cache").c_str(), 1);
    ::setenv("TMPDIR", dir.c_str(), 1);
  }

  Ran run(const std::string& arguments, const std::string& before = "") {
    const std::string out = (dir / "out").string(), err = (dir / "err").string();
    const std::string command = before + " </dev/null '" FUSEC_BINARY_DIR "/fusec' " + arguments + " >'" + out + "' 2>'" + err + "'";
    const int status = std::system(("cd '" + dir.string() + "' && " + command).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), read(out), read(err)};
  }
  static std::string read(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const char* name, const std::string& text) { std::ofstream(dir / name, std::ios::binary) << text; }
  size_t files() { return size_t(std::distance(fs::directory_iterator(dir), fs::directory_iterator())); }

  const fusec::Folder folder{"cli"};
  const fs::path dir = folder.path;
};

constexpr char kGraph[] = "graph @f(%x: f32[N,3], %y: f32[3]) -> f32[N,3] {\n  %z = add %x, %y\n  %r = relu %z\n  return %r\n}\n";

/// numpy's own layout, written here by hand: little-endian f32, version 1.0.
inline std::string npy(const std::string& shape, const std::vector<float>& data) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(63 - (10 + header.size()) % 64, ' ') += '\n';
  std::string out = "\x93NUMPY";
  out += {'\1', '\0', char(header.size()), '\0'};
  out += header;
  return out.append(reinterpret_cast<const char*>(data.data()), data.size() * 4);
}
