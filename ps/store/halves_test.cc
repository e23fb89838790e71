#include "ps/store/halves.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/random.h"

namespace leeway::ps {
namespace {

template <class Half>
class Halves : public testing::Test {};
using HalfTypes = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Halves, HalfTypes);

// Every one of them becomes the float it stands for, and that float becomes it again.
TYPED_TEST(Halves, AllOfThemThereAndBack) {
  std::vector<TypeParam> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> floats(halves.size());
  ToFloat(halves.data(), halves.size(), floats.data());
  std::vector<TypeParam> back(halves.size());
  FromFloat(floats.data(), floats.size(), back.data());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float expected = static_cast<float>(halves[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(floats[i])) << i;
      EXPECT_TRUE(std::isnan(static_cast<float>(back[i]))) << i;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(floats[i]), std::bit_cast<std::uint32_t>(expected));
      EXPECT_EQ(back[i].bits, halves[i].bits);
    }
  }
}

// Floats around every half, where rounding is decided, and many others.
TYPED_TEST(Halves, RoundAsTheTypesDo) {
  std::vector<float> floats = {0.0f,
                               -0.0f,
                               65504.0f,
                               65519.996f,
                               65520.0f,
                               65536.0f,
                               1e30f,
                               -1e30f,
                               3.3895314e38f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::denorm_min(),
                               std::numeric_limits<float>::quiet_NaN()};
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    TypeParam half;
    half.bits = static_cast<std::uint16_t>(i);
    TypeParam next;
    next.bits = static_cast<std::uint16_t>(i + 1);
    const float middle = static_cast<float>((static_cast<double>(static_cast<float>(half)) +
                                             static_cast<double>(static_cast<float>(next))) /
                                            2);
    floats.insert(floats.end(),
                  {middle, std::nextafter(middle, 1e38f), std::nextafter(middle, -1e38f)});
  }
  runtime::Random random(1);
  for (int i = 0; i < 100000; ++i) {
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.Next())));
  }
  std::vector<TypeParam> halves(floats.size());
  FromFloat(floats.data(), floats.size(), halves.data());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const TypeParam expected(floats[i]);
    if (std::isnan(floats[i])) {
      ASSERT_TRUE(std::isnan(static_cast<float>(halves[i]))) << floats[i];
    } else {
      ASSERT_EQ(halves[i].bits, expected.bits) << floats[i];
    }
  }
}

}  // namespace
}  // namespace leeway::ps
