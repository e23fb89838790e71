#include <cstring>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace shuffle_test {
namespace {

std::vector<std::byte> ShuffledBytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(runtime::RandomAt(1, 2, i));
  }
  return bytes;
}

TEST(ShuffleKernels, PlanesHoldTheBytesOfEqualSignificanceAndJoinAgain) {
  for (const Level level : LevelsHere()) {
    const ShuffleKernels& kernels = KernelsOf(level).shuffle;
    const struct {
      std::size_t bytes;
      decltype(kernels.split2) split;
      decltype(kernels.join2) join;
    } widths[] = {{2, kernels.split2, kernels.join2},
                  {4, kernels.split4, kernels.join4},
                  {8, kernels.split8, kernels.join8}};
    for (const auto& width : widths) {
      for (const std::size_t size : {0, 1, 7, 31, 32, 33, 64, 1001}) {
        const std::size_t bytes = size * width.bytes;
        const std::vector<std::byte> memory = ShuffledBytes(bytes + 1);
        const std::byte* const from = memory.data() + 1;  // at no alignment
        std::vector<std::byte> planes(bytes), joined(bytes + 1);
        width.split(from, size, planes.data());
        for (std::size_t p = 0; p < width.bytes; ++p) {
          for (std::size_t i = 0; i < size; ++i) {
            ASSERT_EQ(planes[p * size + i], from[i * width.bytes + p]) << Name(level);
          }
        }
        const std::byte* apart[8] = {};
        for (std::size_t p = 0; p < width.bytes; ++p) apart[p] = planes.data() + p * size;
        width.join(apart, size, joined.data() + 1);
        EXPECT_EQ(std::vector(joined.begin() + 1, joined.end()),
                  std::vector(memory.begin() + 1, memory.end()))
            << Name(level) << ' ' << size;
      }
    }
  }
}

TEST(ShuffleKernels, JoinedFloatsAreAdded) {
  for (const Level level : LevelsHere()) {
    for (const std::size_t size : {0, 1, 31, 33, 1001}) {
      std::vector<float> values(size), sum(size, 0.3f), expected = sum;
      for (std::size_t i = 0; i < size; ++i) {
        values[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
        expected[i] += -1 * values[i];
      }
      std::vector<std::byte> planes(4 * size);
      const ShuffleKernels& kernels = KernelsOf(level).shuffle;
      kernels.split4(reinterpret_cast<const std::byte*>(values.data()), size, planes.data());
      const std::byte* const apart[] = {planes.data(), planes.data() + size,
                                        planes.data() + 2 * size, planes.data() + 3 * size};
      kernels.join_add(apart, size, -1, sum.data());
      EXPECT_EQ(sum, expected) << Name(level) << ' ' << size;
    }
  }
}

}  // namespace
}  // namespace shuffle_test
}  // namespace leeway::compress
