#pragma once
// A folder of a test's own, gone with it.

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace fusec {

struct Folder {
  std::filesystem::path path;

  explicit Folder(const std::string& test) {  // in /tmp whatever TMPDIR is: tests set that to theirs
    std::string name = "/tmp/fusec-" + test + "-XXXXXX";
    if (::mkdtemp(name.data())) path = name;
  }
  ~Folder() {
    std::error_code gone;
    std::filesystem::remove_all(path, gone);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace fusec
