#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/kernels/testing/hard_values.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

template <class T>
class NonFiniteOf : public testing::Test {};
using FloatingTypes = testing::Types<float, double, Float16, BFloat16>;
TYPED_TEST_SUITE(NonFiniteOf, FloatingTypes);

// All bits of the exponent and no others.
template <class T>
T Infinity() {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(0x7f800000u);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(0x7ff0000000000000u);
  if constexpr (std::is_same_v<T, Float16>) return std::bit_cast<Float16>(std::uint16_t{0x7c00});
  if constexpr (std::is_same_v<T, BFloat16>) return std::bit_cast<BFloat16>(std::uint16_t{0x7f80});
}

// Vectors of exactly that size, so that who reads beyond an end is seen.
TYPED_TEST(NonFiniteOf, IsFoundAtEveryPosition) {
  for (const std::size_t size : {1, 2, 31, 63, 64, 65, 127, 128, 129, 700, 1300, 2600}) {
    std::vector<TypeParam> values(size, TypeParam(-1.5f));
    for (const Level level : LevelsHere()) {
      const auto any = KernelsOf(level).any_non_finite.Of<TypeParam>();
      EXPECT_FALSE(any(values.data(), 0));
      EXPECT_FALSE(any(values.data(), size));
      for (std::size_t i = 0; i < size; ++i) {
        const TypeParam finite = std::exchange(values[i], Infinity<TypeParam>());
        EXPECT_TRUE(any(values.data(), size)) << Name(level) << ": " << i << " of " << size;
        EXPECT_FALSE(any(values.data(), i)) << Name(level) << ": before " << i;
        values[i] = finite;
      }
    }
  }
}

TYPED_TEST(NonFiniteOf, AllLevelsSayTheSame) {
  runtime::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<TypeParam> values = HardValues<TypeParam>(random.Below(8), random);
    const bool expected =
        KernelsOf(Level::kScalar).any_non_finite.Of<TypeParam>()(values.data(), values.size());
    for (const Level level : LevelsHere()) {
      ASSERT_EQ(KernelsOf(level).any_non_finite.Of<TypeParam>()(values.data(), values.size()),
                expected)
          << Name(level);
    }
  }
}

}  // namespace
}  // namespace leeway::compress
