// More elements than 31 or 32 bits count. The tensors are larger than most machines' memory: inputs are one page again and again where
// they are zero, and an output is the same 64 MB again and again but for the pages that are looked at.

#include <fusec/fusec.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fusec {
namespace {

constexpr int64_t kChunk = 64 << 20, kPage = 1 << 16;

/// Address space of `bytes`, all zeros; what is written to it takes memory.
class Sparse {
 public:
  explicit Sparse(int64_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
  }
  ~Sparse() {
    if (data_) munmap(data_, size_t(bytes_));
  }
  Sparse(const Sparse&) = delete;
  /// Lets all pages but those around `marks` share kChunk of memory: what is written there is lost.
  bool fold(std::initializer_list<int64_t> marks) {
    const int file = memfd_create("fusec-large", 0);
    if (file < 0 || ftruncate(file, kChunk)) return false;
    for (int64_t at = 0; at < bytes_; at += kChunk)
      if (mmap(data_ + at, size_t(std::min(kChunk, bytes_ - at)), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) return false;
    close(file);
    for (int64_t mark : marks) {
      uint8_t* page = data_ + mark / kPage * kPage;
      if (mmap(page, size_t(std::min<int64_t>(kPage, data_ + bytes_ - page)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    }
    return true;
  }
  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_;
  int64_t bytes_;
};

Result<Program> compiled(const char* text) {
  const Result<Graph> graph = parse(text);
  if (!graph) return graph.error();
  return compile(*graph, {.device = "cpu"});
}

class Large : public testing::Test {
 protected:
  void SetUp() override {
    if (!compiled("graph @g(%x: f32[1]) -> f32[1] { %y = neg %x return %y }")) GTEST_SKIP() << "wants the CPU back end";
  }
};

TEST_F(Large, ElementwiseBeyond31Bits) {
  const int64_t n = (int64_t{1} << 31) + 3, marks[] = {0, (int64_t{1} << 31) - 1, int64_t{1} << 31, n - 1};
  Sparse x(n), y(n);
  if (!x.data() || !y.data() || !y.fold({marks[0], marks[1], marks[2], marks[3]})) GTEST_SKIP() << "no address space";
  for (int64_t m : marks) x.data()[m] = 6;
  const Result<Program> program = compiled("graph @g(%x: u8[N]) -> (u8[N], i64[], i64[], i64[]) { %y = xor %x, 1\n"
                                           "%a = argmax %x {axes=[0], to=i64} %b = argmax %x {axes=[0], to=i64, last=true}\n"
                                           "%w = cast %x {to=i64} %s = sum %w {axes=[0]} return %y, %a, %b, %s }");
  ASSERT_TRUE(program) << program.error().text();
  int64_t first = -1, last = -1, sum = -1;
  const std::vector<int64_t> shape{n}, none;
  const Status done = program->run({{x.data(), shape}}, {{y.data(), shape}, {&first, none}, {&last, none}, {&sum, none}});
  ASSERT_TRUE(done) << done.error().text();
  for (int64_t m : marks) EXPECT_EQ(y.data()[m], 7) << m;
  EXPECT_EQ(y.data()[1], 1);
  EXPECT_EQ(y.data()[marks[2] + 1], 1);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(last, n - 1);
  EXPECT_EQ(sum, 24);
}

TEST_F(Large, SmallInputsBroadcastBeyond32Bits) {
  const int64_t rows = 65536, all = rows * rows;
  std::vector<uint8_t> a(size_t(rows), 0), b(size_t(rows), 0);
  for (size_t i = 0; i < size_t(rows); ++i) a[i] = i % 3 == 0, b[i] = i % 5 == 0;
  Sparse y(all);
  if (!y.data() || !y.fold({0, all - 1})) GTEST_SKIP() << "no address space";
  const Result<Program> program = compiled("graph @g(%a: bool[N,1], %b: bool[1,M]) -> bool[N,M] {\n"
                                           "%c = broadcast %a {shape=[N,M]} %d = broadcast %b {shape=[N,M]} %y = xor %c, %d return %y }");
  ASSERT_TRUE(program) << program.error().text();
  const std::vector<int64_t> column{rows, 1}, row{1, rows}, whole{rows, rows};
  const Status done = program->run({{a.data(), column}, {b.data(), row}}, {{y.data(), whole}});
  ASSERT_TRUE(done) << done.error().text();
  for (int64_t k = 0; k < rows; ++k) {
    ASSERT_EQ(y.data()[k], a[0] ^ b[size_t(k)]) << k;
    ASSERT_EQ(y.data()[all - rows + k], a[size_t(rows) - 1] ^ b[size_t(k)]) << k;
  }
}

TEST_F(Large, CountThatIsTwoIn32Bits) {
  const int64_t n = (int64_t{1} << 32) + 2;
  Sparse x(n), y(n);
  if (!x.data() || !y.data() || !y.fold({0, n - 1})) GTEST_SKIP() << "no address space";
  const Result<Program> program = compiled("graph @g(%x: u8[N]) -> u8[N] { %y = add %x, 1 return %y }");
  ASSERT_TRUE(program) << program.error().text();
  const std::vector<int64_t> shape{n};
  const Status done = program->run({{x.data(), shape}}, {{y.data(), shape}});
  ASSERT_TRUE(done) << done.error().text();
  for (int64_t k : {int64_t(0), int64_t(2), kPage, n / 2, n - 1}) EXPECT_EQ(y.data()[k], 1) << k;
}

}  // namespace
}  // namespace fusec
