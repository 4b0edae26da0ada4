// fusec cache: looks at the directory of compiled kernels and empties it.

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iostream>
#include <memory>

#include "runtime/cache_dir.h"
#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

std::string day(int64_t seconds) {
  const std::time_t t = seconds;
  std::tm utc{};
  ::gmtime_r(&t, &utc);
  auto two = [](int n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  return std::to_string(utc.tm_year + 1900) + "-" + two(utc.tm_mon + 1) + "-" + two(utc.tm_mday) + " " + two(utc.tm_hour) + ":" + two(utc.tm_min);
}

void list(const CacheDir& dir) {
  for (const CacheDir::Entry& entry : dir.list()) {
    const std::optional<Artifact> artifact = dir.inspect(entry);
    std::cout << entry.name.substr(0, 12) << "  " << day(entry.used) << "  " << size_text(double(entry.bytes)) << "  "
              << (artifact ? artifact->target.substr(0, 40) + "  " + print(artifact->schedule) : "damaged") << "\n";
  }
}

std::string stats_text(const std::string& path, const std::vector<CacheDir::Entry>& entries) {
  uint64_t bytes = 0;
  for (const CacheDir::Entry& entry : entries) bytes += entry.bytes;
  return path + ": " + std::to_string(entries.size()) + (entries.size() == 1 ? " kernel, " : " kernels, ") + size_text(double(bytes)) + " of at most " +
         size_text(double(CacheDir::default_capacity())) + "\n";
}

int verify(const CacheDir& dir) {
  int good = 0, removed = 0, status = 0;
  for (const CacheDir::Entry& entry : dir.list()) {
    if (dir.inspect(entry)) ++good;
    else if (Status gone = dir.remove(entry); gone) ++removed, status = std::max(status, 1);
    else status = fail(gone.error());
  }
  std::cout << good << " good, " << removed << " damaged and removed\n";
  return status;
}

int clear(const CacheDir& dir) {
  int removed = 0, status = 0;
  for (const CacheDir::Entry& entry : dir.list()) {
    if (Status gone = dir.remove(entry); gone) ++removed;
    else status = fail(gone.error());
  }
  std::cout << removed << (removed == 1 ? " kernel removed\n" : " kernels removed\n");
  return status;
}

int run(const std::string& what) {
  const std::string path = CacheDir::default_path();
  if (what == "path") {
    if (path.empty()) return fail(environment_error(CacheDir::why_no_default()));
    std::cout << path << "\n";
    return 0;
  }
  // Looking makes nothing: a folder that is not there is an empty cache.
  if (struct stat info; !path.empty() && ::stat(path.c_str(), &info) != 0 && errno == ENOENT) {
    if (what == "stats") std::cout << stats_text(path, {});
    if (what == "verify") std::cout << "0 good, 0 damaged and removed\n";
    if (what == "clear") std::cout << "0 kernels removed\n";
    return 0;
  }
  Result<CacheDir> dir = CacheDir::open(path);
  if (!dir) return fail(dir.error());
  if (what == "ls") list(*dir);
  if (what == "stats") std::cout << stats_text(dir->path(), dir->list());
  if (what == "verify") return verify(*dir);
  return what == "clear" ? clear(*dir) : 0;
}

}  // namespace

Action add_cache(CLI::App& app) {
  auto what = std::make_shared<std::string>();
  app.add_option("WHAT", *what, "path; ls: entries, last used first; stats; verify: remove what is damaged, exit 1 if any was; clear")
      ->required()
      ->check(CLI::IsMember({"path", "ls", "stats", "verify", "clear"}));
  return [what] { return run(*what); };
}

}  // namespace fusec::cli
