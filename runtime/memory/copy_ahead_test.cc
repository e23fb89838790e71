#include "runtime/memory/copy_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace leeway::runtime {
namespace {

std::vector<unsigned char> Numbered(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 251);
  return bytes;
}

// The vectors have exactly that size, so that sanitizers see accesses beyond their ends.
TEST(CopyAhead, CopiesThisMuchAndNoMore) {
  for (const std::size_t size : {0, 1, 63, 1023, 1024, 1025, 4095, 4096, 5119, 5120, 5121, 6143,
                                 6144, 65536, 100'001, 1 << 20}) {
    const std::vector<unsigned char> from = Numbered(size);
    std::vector<unsigned char> to(size);
    CopyAhead(from.data(), size, to.data());
    EXPECT_EQ(to, from) << size;
  }
}

TEST(CopyAhead, ToAndFromAnywhere) {
  constexpr std::size_t kSize = 20'000;
  const std::vector<unsigned char> from = Numbered(kSize + 64);
  for (std::size_t start = 0; start < 64; start += 7) {
    std::vector<unsigned char> to(kSize + 128, 0xee);
    CopyAhead(from.data() + start, kSize, to.data() + 63 - start);
    std::vector<unsigned char> expected(kSize + 128, 0xee);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), kSize,
                expected.begin() + static_cast<std::ptrdiff_t>(63 - start));
    EXPECT_EQ(to, expected) << start;
  }
}

}  // namespace
}  // namespace leeway::runtime
