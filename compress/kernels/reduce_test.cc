#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace reduce_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Values(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(7, size, i));
  }
  return values;
}

TEST(ReduceKernels, AllLevelsGiveTheSameBitsAtEveryLength) {
  for (const std::size_t size : {0, 1, 31, 32, 33, 4095, 4096, 4097, 10001, 16384, 40001}) {
    const std::vector<float> values = Values(size);
    const ReduceKernels& scalar = KernelsOf(Level::kScalar).reduce;
    std::vector<float> sum = Values(size), carried(size);
    const std::vector<float> kept = sum;
    scalar.add(values.data(), size, -1, sum.data());
    scalar.carry(values.data(), kept.data(), size, 0.37f, carried.data());
    for (const Level level : LevelsHere()) {
      const ReduceKernels& kernels = KernelsOf(level).reduce;
      EXPECT_EQ(kernels.sum_abs(values.data(), size), scalar.sum_abs(values.data(), size));
      EXPECT_EQ(kernels.sum_squares(values.data(), size), scalar.sum_squares(values.data(), size));
      EXPECT_EQ(kernels.max_abs(values.data(), size), scalar.max_abs(values.data(), size));
      std::vector<float> to = Values(size);
      kernels.add(values.data(), size, -1, to.data());
      EXPECT_EQ(to, sum) << Name(level) << ' ' << size;
      to.assign(size, 0);
      const float largest = kernels.carry(values.data(), kept.data(), size, 0.37f, to.data());
      EXPECT_EQ(to, carried) << Name(level) << ' ' << size;
      EXPECT_EQ(largest, scalar.max_abs(carried.data(), size));
      to = kept;
      kernels.carry(values.data(), to.data(), size, 0.37f, to.data());
      EXPECT_EQ(to, carried) << Name(level) << ' ' << size;
    }
  }
}

TEST(ReduceKernels, AgreeWithTheFormulas) {
  const std::vector<float> values = Values(9999);
  double sum = 0, squares = 0;
  float largest = 0;
  for (const float value : values) {
    sum += std::abs(static_cast<double>(value));
    squares += static_cast<double>(value) * static_cast<double>(value);
    largest = std::max(largest, std::abs(value));
  }
  const ReduceKernels& kernels = ChosenKernels().reduce;
  EXPECT_NEAR(kernels.sum_abs(values.data(), values.size()), sum, 1e-6 * sum);
  EXPECT_NEAR(kernels.sum_squares(values.data(), values.size()), squares, 1e-6 * squares);
  EXPECT_EQ(kernels.max_abs(values.data(), values.size()), largest);
}

TEST(ReduceKernels, ACarriedSumThatOverflowsShows) {
  for (const Level level : LevelsHere()) {
    for (const std::size_t place : {0, 17, 32, 99}) {
      std::vector<float> values(100, 1), kept(100, 1), to(100);
      values[place] = kept[place] = 3e38f;
      EXPECT_EQ(KernelsOf(level).reduce.carry(values.data(), kept.data(), 100, 1, to.data()),
                kInfinity)
          << Name(level) << ' ' << place;
    }
  }
}

TEST(ReduceKernels, NonFiniteValuesShow) {
  for (const Level level : LevelsHere()) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      for (const std::size_t place : {0, 17, 32, 99}) {
        std::vector<float> values = Values(100);
        values[place] = bad;
        const ReduceKernels& kernels = KernelsOf(level).reduce;
        EXPECT_FALSE(std::isfinite(kernels.sum_abs(values.data(), values.size())));
        EXPECT_FALSE(std::isfinite(kernels.max_abs(values.data(), values.size())));
        EXPECT_EQ(std::isnan(kernels.max_abs(values.data(), values.size())), std::isnan(bad));
      }
    }
  }
}

TEST(ReduceKernels, TheLargestIsFoundWhereverItLies) {
  for (const Level level : LevelsHere()) {
    std::vector<float> values = Values(40001);
    for (const std::size_t place : {0, 19999, 20000, 39999, 40000}) {
      const float before = std::exchange(values[place], -1e9f);
      EXPECT_EQ(KernelsOf(level).reduce.max_abs(values.data(), values.size()), 1e9f);
      values[place] = kNan;
      EXPECT_TRUE(std::isnan(KernelsOf(level).reduce.max_abs(values.data(), values.size())));
      values[place] = before;
    }
  }
}

}  // namespace
}  // namespace reduce_test
}  // namespace leeway::compress
