#include "leeway/dtype.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace leeway {
namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

std::uint16_t Half(float value) { return Float16(value).bits; }
std::uint16_t Brain(float value) { return BFloat16(value).bits; }

template <class T>
T FromBits(unsigned bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

TEST(Float16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    ASSERT_EQ(Half(static_cast<float>(FromBits<Float16>(bits))), bits) << bits;
  }
}

TEST(Float16Test, EveryValueIsWhatTheStandardSays) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = static_cast<float>(FromBits<Float16>(bits));
    const int exponent = bits >> 10 & 0x1f;
    const int fraction = bits & 0x3ff;
    if (exponent == 0x1f && fraction != 0) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    float expected = exponent == 0x1f ? kFloatInfinity
                     : exponent == 0  ? std::ldexp(static_cast<float>(fraction), -24)
                                      : std::ldexp(1024.0f + fraction, exponent - 25);
    if (bits & 0x8000) expected = -expected;
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
  }
}

// Between each pair of neighbours: below the middle down, above it up, at it to the even one.
TEST(Float16Test, RoundsToNearestTiesToEven) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const float low = static_cast<float>(FromBits<Float16>(bits));
    const float high = static_cast<float>(FromBits<Float16>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: float has bits to spare
    const unsigned even = bits + (bits & 1);
    ASSERT_EQ(Half(middle), even) << bits;
    ASSERT_EQ(Half(-middle), even | 0x8000) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, high)), bits + 1) << bits;
  }
}

TEST(Float16Test, Edges) {
  EXPECT_EQ(Half(65519.996f), 0x7bff);
  EXPECT_EQ(Half(65520.0f), 0x7c00);
  EXPECT_EQ(Half(-1e30f), 0xfc00);
  EXPECT_EQ(Half(kFloatInfinity), 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(Half(-0.0f), 0x8000);
  EXPECT_EQ(Half(0x1p-25f), 0);  // half of the smallest: a tie, to even
  EXPECT_EQ(Half(std::nextafter(0x1p-25f, 1.0f)), 1);
  const float thin_nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(thin_nan))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(-thin_nan))));
}

TEST(BFloat16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    ASSERT_EQ(Brain(static_cast<float>(FromBits<BFloat16>(bits))), bits) << bits;
  }
}

TEST(BFloat16Test, RoundsToNearestTiesToEven) {
  for (unsigned bits = 0; bits < 0x7f80; ++bits) {
    const auto whole = bits << 16;
    const unsigned even = bits + (bits & 1);
    ASSERT_EQ(Brain(std::bit_cast<float>(whole | 0x8000)), even) << bits;
    ASSERT_EQ(Brain(std::bit_cast<float>(whole | 0x80008000u)), even | 0x8000) << bits;
    ASSERT_EQ(Brain(std::bit_cast<float>(whole | 0x7fff)), bits) << bits;
    ASSERT_EQ(Brain(std::bit_cast<float>(whole | 0x8001)), bits + 1) << bits;
  }
}

TEST(BFloat16Test, NaNStaysNaN) {
  for (const std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    const BFloat16 value(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(value))) << bits;
  }
  EXPECT_EQ(Brain(kFloatInfinity), 0x7f80);
  EXPECT_EQ(Brain(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(DTypeTest, Names) {
  EXPECT_EQ(Name(DType::kFloat32), "float32");
  EXPECT_EQ(Name(DType::kFloat64), "float64");
  EXPECT_EQ(Name(DType::kFloat16), "float16");
  EXPECT_EQ(Name(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(Name(DType::kInt32), "int32");
  EXPECT_EQ(Name(DType::kInt64), "int64");
  EXPECT_EQ(Name(static_cast<DType>(kDTypeCount)), "unknown");
}

TEST(DTypeTest, HalvesAreComputedInFloat) {
  EXPECT_EQ(ComputeType(DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(ComputeType(DType::kBFloat16), DType::kFloat32);
  for (const DType same : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    EXPECT_EQ(ComputeType(same), same);
  }
}

}  // namespace
}  // namespace leeway
