#include <cstring>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace nonzero_test {
namespace {

// Each element has one set bit, or none: every bit has to count.
TEST(NonzeroKernels, EveryBitOfAnElementCounts) {
  for (const Level level : LevelsHere()) {
    const NonzeroKernels& kernels = KernelsOf(level).nonzero;
    const std::pair<std::size_t, decltype(kernels.mark2)> widths[] = {
        {2, kernels.mark2}, {4, kernels.mark4}, {8, kernels.mark8}};
    for (const auto& [width, mark] : widths) {
      for (const std::size_t size : {0, 1, 7, 63, 64, 65, 127, 128, 1001}) {
        for (const std::uint64_t every : {1, 2, 5, 300}) {
          std::vector<std::byte> memory(size * width + 1);  // at no alignment
          std::vector<std::uint64_t> expected((size + 63) / 64), words(expected.size(), ~0ull);
          for (std::size_t i = 0; i < size; ++i) {
            const std::uint64_t random = runtime::RandomAt(1, every, i);
            if (random % every != 0) continue;
            const std::uint64_t bit = (random >> 32) % (8 * width);
            memory[1 + i * width + bit / 8] = static_cast<std::byte>(1u << (bit % 8));
            expected[i / 64] |= std::uint64_t{1} << (i % 64);
          }
          mark(memory.data() + 1, size, words.data());
          EXPECT_EQ(words, expected) << Name(level) << ' ' << width << ' ' << size << ' ' << every;
        }
      }
    }
  }
}

// Elements of two arrays differ in one bit, or in none.
TEST(NonzeroKernels, EveryBitInWhichElementsDifferCounts) {
  for (const Level level : LevelsHere()) {
    const NonzeroKernels& kernels = KernelsOf(level).nonzero;
    const std::pair<std::size_t, decltype(kernels.differ1)> widths[] = {
        {1, kernels.differ1}, {2, kernels.differ2}, {4, kernels.differ4}, {8, kernels.differ8}};
    for (const auto& [width, differ] : widths) {
      for (const std::size_t size : {0, 1, 7, 63, 64, 65, 127, 128, 1001}) {
        for (const std::uint64_t every : {1, 2, 5, 300}) {
          std::vector<std::byte> from(size * width + 1);  // at no alignment
          for (std::size_t i = 0; i < from.size(); ++i) {
            from[i] = static_cast<std::byte>(runtime::RandomAt(2, every, i));
          }
          std::vector<std::byte> others(from.begin() + 1, from.end());
          std::vector<std::uint64_t> expected((size + 63) / 64), words(expected.size(), ~0ull);
          for (std::size_t i = 0; i < size; ++i) {
            const std::uint64_t random = runtime::RandomAt(1, every, i);
            if (random % every != 0) continue;
            const std::uint64_t bit = (random >> 32) % (8 * width);
            others[i * width + bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
            expected[i / 64] |= std::uint64_t{1} << (i % 64);
          }
          differ(from.data() + 1, others.data(), size, words.data());
          EXPECT_EQ(words, expected) << Name(level) << ' ' << width << ' ' << size << ' ' << every;
        }
      }
    }
  }
}

}  // namespace
}  // namespace nonzero_test
}  // namespace leeway::compress
