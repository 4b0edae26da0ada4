// Truncated, damaged, foreign and concurrent entries; a directory that cannot be used; one compilation however many ask.

#include "codegen/generator_id.h"
#include "runtime/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

namespace fusec {
namespace {

namespace fs = std::filesystem;

/// A fresh directory name with a space and a letter beyond ASCII; the directory itself is the cache's to make.
struct CacheTest : testing::Test {
  CacheTest() {
    char name[] = "/tmp/fusec-cache-XXXXXX";
    root = ::mkdtemp(name);
    path = (root / "fu sec é").string();
  }
  ~CacheTest() override {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  std::unique_ptr<Cache> cache() { return std::make_unique<Cache>(CacheOptions{.path = path, .capacity = 1 << 20, .warn = false}); }
  fs::path file(const Digest& key) { return fs::path(path) / (hex(key) + ".fusec"); }
  size_t files() {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }
  fs::path root;
  std::string path;
};

Artifact sample(int n) {
  Artifact a;
  a.target = "cpu:avx512";
  a.entry = "g" + std::to_string(n);
  for (int i = 0; i < 1000; ++i) a.bytes.push_back(uint8_t(i * n));
  a.slots = {{.kind = Slot::pointer, .a = 2}, {.kind = Slot::dim, .bytes = 4, .size = Dim::symbol("N") * 2 + 1}};
  a.schedule.threads = 128;
  a.schedule.access = {{.bytes = 16}};
  a.facts = {{"registers", 32}, {"spill_bytes", -1}};
  return a;
}

bool same(const Artifact& a, const Artifact& b) {
  return to_file(Digest{}, a) == to_file(Digest{}, b);
}

Digest key(int n) { return cache_key({"test", std::to_string(n)}); }

/// Asks for artifact n and counts whether it had to be compiled.
int compilations(Cache& cache, int n) {
  int count = 0;
  auto got = cache.get(key(n), [&]() -> Result<Artifact> { return ++count, sample(n); });
  EXPECT_TRUE(got && same(**got, sample(n)));
  return count;
}

TEST(CacheKey, HoldsTheGenerator) {
  // A build must never take code that another build's generator wrote: the key of the same kernel differs with the sources.
  EXPECT_EQ(generator_id().size(), 64u);
  EXPECT_EQ(cache_key({"a", "bc"}), cache_key({"a", "bc"}));
  EXPECT_NE(cache_key({"a", "bc"}), cache_key({"ab", "c"}));
}

TEST(CacheKey, KnowsWherePartsEnd) {
  EXPECT_NE(cache_key({"a", "bc"}), cache_key({"ab", "c"}));
  EXPECT_NE(cache_key({"a", ""}), cache_key({"a"}));
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ArtifactFile, ComesBackWhole) {
  const Digest k = key(1);
  const std::string file = to_file(k, sample(1));
  const std::optional<Artifact> back = from_file(k, file);
  ASSERT_TRUE(back);
  EXPECT_TRUE(same(*back, sample(1)));
  EXPECT_EQ(back->slots[1].size, Dim::symbol("N") * 2 + 1);
  EXPECT_FALSE(from_file(key(2), file)) << "somebody else's key";
}

TEST(ArtifactFile, RefusesEveryTruncationAndEveryFlippedByte) {
  const Digest k = key(1);
  const std::string file = to_file(k, sample(1));
  for (size_t n = 0; n < file.size(); ++n) EXPECT_FALSE(from_file(k, file.substr(0, n)));
  for (size_t n = 0; n < file.size(); ++n) {
    std::string damaged = file;
    damaged[n] ^= 1 << (n % 8);
    EXPECT_FALSE(from_file(k, damaged)) << n;
  }
}

TEST(ArtifactFile, SurvivesLiesUnderAGoodChecksum) {
  // What a checksum cannot stop: contents that were wrong when it was made. Nothing may be read outside or reserved blindly.
  const Digest k = key(1);
  const std::string file = to_file(k, sample(1)).substr(0, to_file(k, sample(1)).size() - 32);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string lie = file;
    for (int i = 0; i < 3; ++i) lie[52 + random() % (lie.size() - 52)] = char(random() % 3 ? 0xff : random());
    const Digest checksum = sha256(lie);
    lie.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
    (void)from_file(k, lie);
  }
}

TEST_F(CacheTest, SecondProcessFindsWhatTheFirstCompiled) {
  EXPECT_EQ(compilations(*cache(), 1), 1);
  EXPECT_EQ(compilations(*cache(), 1), 0);
  auto warm = cache();
  EXPECT_EQ(compilations(*warm, 1), 0);
  EXPECT_EQ(compilations(*warm, 1), 0);
  EXPECT_EQ(warm->stats().disk_hits, 1u);
  EXPECT_EQ(warm->stats().memory_hits, 1u);
}

TEST_F(CacheTest, DirectoryAndFilesBelongToTheUserAlone) {
  const mode_t before = ::umask(0);
  compilations(*cache(), 1);
  ::umask(before);
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(file(key(1)).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CacheTest, DamageIsAMissAndIsRepaired) {
  compilations(*cache(), 1);
  const auto size = fs::file_size(file(key(1)));
  for (uintmax_t cut : {uintmax_t{0}, uintmax_t{1}, size / 2, size - 1}) {
    fs::resize_file(file(key(1)), cut);
    auto c = cache();
    EXPECT_EQ(compilations(*c, 1), 1) << cut;
    EXPECT_EQ(c->stats().removed, 1u);
    EXPECT_EQ(compilations(*cache(), 1), 0) << "repaired";
  }
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::fstream f(file(key(1)), std::ios::in | std::ios::out | std::ios::binary);
    const auto at = random() % size;
    f.seekg(at);
    const char c = f.get();
    f.seekp(at);
    f.put(c ^ (1 << random() % 8));
    f.close();
    EXPECT_EQ(compilations(*cache(), 1), 1) << "byte " << at;
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(CacheTest, StrangeThingsInAnEntrysPlace) {
  compilations(*cache(), 1);
  const fs::path f = file(key(1));
  auto replace = [&](const char* what, auto put) {
    fs::remove_all(f);
    put();
    EXPECT_EQ(compilations(*cache(), 1), 1) << what;
    EXPECT_EQ(compilations(*cache(), 1), 0) << what;
  };
  replace("directory", [&] { fs::create_directory(f); });
  replace("full directory", [&] { fs::create_directory(f), std::ofstream(f / "x") << 1; });
  replace("dangling link", [&] { fs::create_symlink("/nonexistent/x", f); });
  replace("link to itself", [&] { fs::create_symlink(f, f); });
  replace("pipe", [&] { ASSERT_EQ(::mkfifo(f.c_str(), 0600), 0); });
  replace("another entry", [&] {
    compilations(*cache(), 2);
    fs::copy(file(key(2)), f);
  });
  replace("file that others may write", [&] {
    compilations(*cache(), 2);
    fs::copy(file(key(2)), f);
    fs::permissions(f, fs::perms::all);
  });
}

TEST_F(CacheTest, RefusesADirectoryThatOthersCanWrite) {
  fs::create_directories(path);
  fs::permissions(path, fs::perms::all);
  auto c = cache();
  EXPECT_EQ(c->directory(), nullptr);
  EXPECT_NE(c->why_no_directory().find("others may write"), std::string::npos) << c->why_no_directory();
  EXPECT_EQ(compilations(*c, 1), 1);
  EXPECT_EQ(compilations(*c, 1), 0) << "memory still works";
  EXPECT_EQ(files(), 0u);
  fs::permissions(path, fs::perms::owner_all | fs::perms::group_all);
  EXPECT_EQ(cache()->directory(), nullptr);
}

TEST_F(CacheTest, RefusesAForeignDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  fs::create_directories(path);
  fs::permissions(path, fs::perms::owner_all);
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_NE(cache()->why_no_directory().find("belongs to user 12345"), std::string::npos);
}

TEST_F(CacheTest, WorksWhereNothingCanBeWritten) {
  std::ofstream(root / "file") << "x";
  for (const std::string& bad : {std::string("/proc/fusec/cache"), (root / "file").string(), (root / "file" / "below").string(), std::string()}) {
    Cache c(CacheOptions{.path = bad, .warn = false});
    EXPECT_EQ(c.directory(), nullptr);
    EXPECT_EQ(compilations(c, 1), 1);
    EXPECT_EQ(compilations(c, 1), 0);
  }
}

TEST_F(CacheTest, AFullDiskLeavesNothingBehind) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // a file size limit stands for a full disk: writes fail half-way, and nobody is killed by SIGXFSZ
    const rlimit limit{512, 512};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto c = cache();
    const bool good = compilations(*c, 1) == 1 && compilations(*c, 1) == 0 && c->stats().unwritten == 1 && files() == 0;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(CacheTest, LeastRecentlyUsedLeaves) {
  const uint64_t one = to_file(key(0), sample(0)).size();
  Result<CacheDir> dir = CacheDir::open(path, one * 10);
  ASSERT_TRUE(dir);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(dir->write(key(i), sample(i)));
    const timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ::utimensat(AT_FDCWD, file(key(i)).c_str(), old, 0);
  }
  EXPECT_TRUE(dir->read(key(0))) << "and is now the most recently used";
  for (int i = 8; i < 12; ++i) ASSERT_TRUE(dir->write(key(i), sample(i)));
  EXPECT_LE(dir->list().size(), 10u);
  EXPECT_TRUE(dir->read(key(0)));
  EXPECT_TRUE(dir->read(key(11)));
  EXPECT_FALSE(dir->read(key(1)));
}

TEST_F(CacheTest, ForgottenTemporaryFilesGo) {
  compilations(*cache(), 1);
  const fs::path old = fs::path(path) / ".tmp-1-abc", young = fs::path(path) / ".tmp-2-abc";
  std::ofstream(old) << 1, std::ofstream(young) << 1;
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  ::utimensat(AT_FDCWD, old.c_str(), past, 0);
  cache()->directory()->list();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "its process may be at work";
}

TEST_F(CacheTest, ProcessesSideBySide) {
  for (int round = 0; round < 5; ++round) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    std::vector<pid_t> children;
    for (int p = 0; p < 8; ++p) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        auto c = cache();
        for (int n = 0; n < 8; ++n) compilations(*c, n);
        ::_exit(testing::Test::HasFailure() || !c->directory());
      }
      children.push_back(child);
    }
    for (pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_EQ(files(), 8u) << "no temporary file stays";
    auto c = cache();
    for (const CacheDir::Entry& entry : c->directory()->list()) EXPECT_TRUE(c->directory()->inspect(entry)) << entry.name;
  }
}

TEST_F(CacheTest, OneCompilationHoweverManyThreadsAsk) {
  auto c = cache();
  std::atomic<int> count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      auto got = c->get(key(1), [&]() -> Result<Artifact> {
        ++count;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return sample(1);
      });
      EXPECT_TRUE(got && same(**got, sample(1)));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(c->stats().compilations, 1u);
}

TEST_F(CacheTest, AFailureReachesAllWhoWaitAndIsNotKept) {
  auto c = cache();
  std::atomic<int> count = 0, failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      auto got = c->get(key(1), [&]() -> Result<Artifact> {
        ++count;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return environment_error("no compiler today");
      });
      failed += !got && got.error().message == "no compiler today";
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 8);
  EXPECT_GE(count, 1);
  EXPECT_EQ(compilations(*c, 1), 1) << "the next caller tries again";
}

TEST_F(CacheTest, MemoryIsBounded) {
  Cache c(CacheOptions{.path = "", .memory = 3500, .warn = false});
  for (int n = 0; n < 5; ++n) EXPECT_EQ(compilations(c, n), 1);
  EXPECT_EQ(compilations(c, 4), 0);
  EXPECT_EQ(compilations(c, 0), 1);
}

TEST(CachePath, FollowsTheEnvironment) {
  auto with = [](const char* own, const char* xdg, const char* home) {
    for (auto [name, value] : {std::pair{"FUSEC_CACHE_DIR", own}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}})
      value ? ::setenv(name, value, 1) : ::unsetenv(name);
    return CacheDir::default_path();
  };
  EXPECT_EQ(with("/a", "/b", "/tmp"), "/a");
  EXPECT_EQ(with(nullptr, "/b", "/tmp"), "/b/fusec");
  EXPECT_EQ(with(nullptr, "relative", "/tmp"), "/tmp/.cache/fusec");
  EXPECT_EQ(with(nullptr, nullptr, "/nonexistent/home"), "") << "a home that is not there is not made";
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace fusec
