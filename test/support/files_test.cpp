// Files are replaced whole or not at all, and nothing is left behind.

#include "lib/support/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "lib/support/limits.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::path(testing::TempDir()) / ("fusec files é " + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::permissions(path, fs::perms::owner_all, ignored);
    fs::remove_all(path, ignored);
  }
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator())); }
};

TEST(Files, ComeBackByteForByte) {
  const Folder folder;
  const std::string path = folder.path / "a";
  for (const std::string& bytes : {std::string(), std::string("a\0b\r\n\xff", 6), std::string(3000000, 'x')}) {
    ASSERT_TRUE(write_file_atomically(path, bytes));
    auto back = read_file(path);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, bytes);
    EXPECT_EQ(folder.entries(), 1u);
  }
}

TEST(Files, FailuresNameThePathAndLeaveNothing) {
  const Folder folder;
  EXPECT_EQ(read_file(folder.path / "none").error().message, "cannot read " + (folder.path / "none").string() + ": No such file or directory");
  EXPECT_EQ(read_file(folder.path).error().message, "cannot read " + folder.path.string() + ": Is a directory");
  EXPECT_EQ(read_file(std::string("a\0b", 3)).error().kind, Error::input);
  const std::string inside = folder.path / "none" / "a";
  EXPECT_EQ(write_file_atomically(inside, "x").error().message, "cannot write " + inside + ": No such file or directory");
  EXPECT_EQ(write_file_atomically(folder.path, "x").error().kind, Error::environment);
  // Asked before, the same answer and nothing left either.
  EXPECT_EQ(may_write(inside).error().message, "cannot write " + inside + ": No such file or directory");
  EXPECT_EQ(may_write(folder.path).error().kind, Error::environment);
  EXPECT_FALSE(may_write(std::string("a\0b", 3)));
  EXPECT_TRUE(may_write(folder.path / "a"));
  EXPECT_TRUE(may_write("/dev/null"));
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(Files, AFullDiskKeepsTheOldFile) {
  // /dev/full is no regular file: written directly, its error comes back.
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(write_file_atomically("/dev/full", "x").error().message, "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(write_file_atomically("/dev/null", "x"));
}

/// What has no end is no reason to fill the memory: a device, a pipe by its name, and standard input as either.
TEST(Files, StreamsHaveALimit) {
  const Folder folder;
  const std::string pipe = folder.path / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto writer = [&](size_t bytes) {
    return std::thread([=] {
      const int fd = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
      const std::string block(1 << 20, 'x');
      for (size_t left = bytes; left > 0;) {
        const ssize_t n = ::write(fd, block.data(), std::min(left, block.size()));
        if (n <= 0) break;  // the reader has gone
        left -= static_cast<size_t>(n);
      }
      ::close(fd);
    });
  };
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  for (size_t more : {0, 1}) {
    std::thread thread = writer(size_t{kMaxStreamBytes} + more);
    const Result<std::string> got = read_file(pipe);
    thread.join();
    ASSERT_EQ(bool(got), more == 0);
    if (got) { EXPECT_EQ(got->size(), size_t{kMaxStreamBytes}); }
    else EXPECT_EQ(got.error().message, "cannot read " + pipe + ": more than 256 MiB of what is no regular file");
  }
  std::signal(SIGPIPE, old);
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero here";
  EXPECT_EQ(read_file("/dev/zero").error().message, "cannot read /dev/zero: more than 256 MiB of what is no regular file");
}

TEST(Files, ReadersSeeOldOrNewNeverHalf) {
  const Folder folder;
  const std::string path = folder.path / "shared", a(100000, 'a'), b(200000, 'b');
  ASSERT_TRUE(write_file_atomically(path, a));
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(write_file_atomically(path, i % 2 ? a : b));
  });
  for (int i = 0; i < 200; ++i) {
    auto seen = read_file(path);
    ASSERT_TRUE(seen);
    EXPECT_TRUE(*seen == a || *seen == b) << seen->size();
  }
  writer.join();
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(Files, ModeFollowsTheUmask) {
  const Folder folder;
  const mode_t old = ::umask(027);
  ASSERT_TRUE(write_file_atomically(folder.path / "m", "x"));
  ::umask(old);
  struct stat info;
  ASSERT_EQ(::stat((folder.path / "m").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

}  // namespace
}  // namespace fusec
