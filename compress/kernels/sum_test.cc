#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/kernels/testing/hard_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

template <class T>
class SumOf : public testing::Test {};
using EveryType = testing::Types<float, double, Float16, BFloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(SumOf, EveryType);

template <class Stored>
struct Summed {
  std::vector<std::vector<Stored>> arrays;
  std::size_t first;
  std::size_t size;
  ComputeOf<Stored> scale;

  std::vector<ComputeOf<Stored>> At(Level level, std::size_t start) const {
    std::vector<const Stored*> from;
    for (const std::vector<Stored>& array : arrays) from.push_back(array.data());
    std::vector<ComputeOf<Stored>> to(start + size + kGuard, 7);
    KernelsOf(level).sum.Of<Stored>()(from.data(), from.size(), first, size, scale,
                                      to.data() + start);
    return to;
  }
};

template <class Stored>
void ExpectAllLevelsAlike(const Summed<Stored>& summed, std::size_t start) {
  const auto expected = summed.At(Level::kScalar, start);
  for (const Level level : LevelsHere()) {
    const auto sum = summed.At(level, start);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      ASSERT_TRUE(Same(sum[i], expected[i]))
          << Name(level) << ": element " << i << " of " << summed.size << " from " << start
          << " is " << sum[i] << ", not " << expected[i] << ", of " << summed.arrays.size()
          << " arrays";
    }
  }
}

TYPED_TEST(SumOf, AllLevelsGiveTheSameBits) {
  runtime::Random random(1);
  for (std::size_t size = 0; size <= kSizeMax; ++size) {
    for (const std::size_t count : {1, 2, 3, 8, 9}) {
      Summed<TypeParam> summed{.arrays = {},
                               .first = random.Below(kStartMax + 1),
                               .size = size,
                               .scale = static_cast<ComputeOf<TypeParam>>(1.0f / count)};
      if (random.Below(2) == 0) summed.scale = 1;
      for (std::size_t k = 0; k < count; ++k) {
        summed.arrays.push_back(HardValues<TypeParam>(summed.first + size, random));
      }
      ExpectAllLevelsAlike(summed, random.Below(kStartMax + 1));
      if (this->HasFatalFailure()) return;
    }
  }
}

// A block's worth, of more workers than there are registers.
TYPED_TEST(SumOf, ManyLargeArrays) {
  runtime::Random random(2);
  Summed<TypeParam> summed{.arrays = {}, .first = 1, .size = 5000, .scale = 1};
  for (int k = 0; k < 40; ++k) summed.arrays.push_back(HardValues<TypeParam>(5001, random));
  ExpectAllLevelsAlike(summed, 1);
}

// 2^24 + 1 + 1: only the order says whether the ones are seen.
TEST(SumOfFloats, IsInTheOrderOfTheArrays) {
  const float large = 16777216.0f;
  for (const Level level : LevelsHere()) {
    for (const std::size_t size : {1, 15, 16, 64, 65}) {
      const Summed<float> ascending{
          .arrays = {std::vector<float>(size, 1.0f), std::vector<float>(size, 1.0f),
                     std::vector<float>(size, large)},
          .first = 0,
          .size = size,
          .scale = 1};
      const Summed<float> descending{
          .arrays = {std::vector<float>(size, large), std::vector<float>(size, 1.0f),
                     std::vector<float>(size, 1.0f)},
          .first = 0,
          .size = size,
          .scale = 1};
      EXPECT_EQ(ascending.At(level, 0)[size - 1], large + 2) << Name(level);
      EXPECT_EQ(descending.At(level, 0)[size - 1], large) << Name(level);
    }
  }
}

TEST(SumOfIntegers, WrapsAround) {
  const std::vector<std::int32_t> most(20, std::numeric_limits<std::int32_t>::max());
  const std::vector<std::int32_t> one(20, 1);
  for (const Level level : LevelsHere()) {
    const Summed<std::int32_t> summed{.arrays = {most, one}, .first = 0, .size = 20, .scale = 1};
    EXPECT_EQ(summed.At(level, 0)[19], std::numeric_limits<std::int32_t>::min()) << Name(level);
  }
}

// Halves have no 2049.
TEST(SumOfHalves, IsAFloat) {
  for (const Level level : LevelsHere()) {
    const Summed<Float16> summed{
        .arrays = {std::vector<Float16>(33, Float16(2048)), std::vector<Float16>(33, Float16(1))},
        .first = 0,
        .size = 33,
        .scale = 0.5};
    EXPECT_EQ(summed.At(level, 0)[32], 1024.5f) << Name(level);
  }
}

}  // namespace
}  // namespace leeway::compress
