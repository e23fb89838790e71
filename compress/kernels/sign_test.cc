#include <cmath>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sign_test {
namespace {

constexpr std::size_t kSignSizes[] = {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 1000, 4097};

std::vector<float> Drawn(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(seed, size, i));
  }
  return values;
}

std::vector<std::uint8_t> Taken(const SignKernels& kernels, const std::vector<float>& values) {
  std::vector<std::uint8_t> bits((values.size() + 7) / 8, 0xaa);
  kernels.take(values.data(), values.size(), bits.data());
  return bits;
}

TEST(SignKernels, EveryLevelAgreesWithTheFormulas) {
  constexpr float kScale = 0.37f, kFactor = 1.3f;
  for (const std::size_t size : kSignSizes) {
    const std::vector<float> values = Drawn(size, 1), before = Drawn(size, 2);
    std::vector<std::uint8_t> bits((size + 7) / 8);
    std::vector<float> spread(size), added(size), shrunk(size);
    for (std::size_t i = 0; i < size; ++i) {
      const bool negative = std::signbit(values[i]);
      if (negative) bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (1 << (i % 8)));
      spread[i] = negative ? -kScale : kScale;
      added[i] = before[i] + spread[i];
      shrunk[i] = values[i] - spread[i];
    }
    for (const Level level : LevelsHere()) {
      SCOPED_TRACE(testing::Message() << Name(level) << ' ' << size);
      const SignKernels& kernels = KernelsOf(level).sign;
      EXPECT_EQ(Taken(kernels, values), bits);
      std::vector<float> to(size);
      kernels.spread(bits.data(), size, kScale, to.data());
      EXPECT_EQ(to, spread);
      to = before;
      kernels.add(bits.data(), size, kScale, to.data());
      EXPECT_EQ(to, added);
      to = values;
      kernels.shrink(to.data(), size, kScale);
      EXPECT_EQ(to, shrunk);
      std::vector<float> carried(size);
      const float largest =
          kernels.carry(before.data(), values.data(), size, kScale, kFactor, carried.data());
      for (std::size_t i = 0; i < size; ++i) {
        const float kept = kFactor * shrunk[i];
        EXPECT_EQ(carried[i], before[i] + kept) << i;
      }
      EXPECT_EQ(largest, KernelsOf(level).reduce.max_abs(before.data(), size));
    }
  }
}

TEST(SignKernels, OnlyTheSignBitCounts) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values = {0.0f, -0.0f, infinity, -infinity, nan, -nan, 1e-45f, -1e-45f};
  for (int i = 0; i < 2; ++i) values.insert(values.end(), values.begin(), values.end());
  for (const Level level : LevelsHere()) {
    EXPECT_THAT(Taken(KernelsOf(level).sign, values), testing::Each(0xaa)) << Name(level);
  }
}

TEST(SignKernels, AScaleMayBeNegative) {
  const std::uint8_t bits = 0b101;
  for (const Level level : LevelsHere()) {
    float to[3] = {10, 20, 30};
    KernelsOf(level).sign.add(&bits, 3, -2, to);
    EXPECT_THAT(to, testing::ElementsAre(12, 18, 32));
  }
}

}  // namespace
}  // namespace sign_test
}  // namespace leeway::compress
