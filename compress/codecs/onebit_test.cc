// Tests of onebit's own properties; codecs_test.cc tests those of every codec.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compress/common/descent.h"
#include "compress/registry.h"
#include "compress/testing/groups_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress::groups_testing {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kOneBitScales = 2;  // where they begin

TEST(OneBit, AMessageByHand) {
  // Magnitudes 1 + 2 + 3 + 4 + 0 + 0 + 0 + 0 + 6 = 16, of 9 elements.
  const auto encoded = Encode("onebit", {1, -2, 3, -4, 0.0f, -0.0f, 0, 0, -6});
  ASSERT_EQ(encoded.size(), 2 + 4 + 2);
  EXPECT_EQ(encoded[0], 0);
  EXPECT_EQ(encoded[1], 0);
  EXPECT_EQ(ScaleIn(encoded, kOneBitScales), 16.0f / 9);
  EXPECT_EQ(encoded[6], 0b00101010);
  EXPECT_EQ(encoded[7], 0b1);
  const float s = 16.0f / 9;
  EXPECT_THAT(Decode("onebit", encoded, {.elements = 9}),
              ElementsAre(s, -s, s, -s, s, -s, s, s, -s));
}

TEST(OneBit, GroupsHaveScalesOfTheirOwn) {
  std::vector<float> values(70, 1);
  for (std::size_t i = 32; i < 64; ++i) values[i] = -3;
  for (std::size_t i = 64; i < 70; ++i) values[i] = 5;
  const auto encoded = Encode("onebit:group=32", values);
  ASSERT_EQ(encoded.size(), 2 + 3 * 4 + 9);
  EXPECT_EQ(encoded[0], 4);
  EXPECT_EQ(ScaleIn(encoded, kOneBitScales, 0), 1);
  EXPECT_EQ(ScaleIn(encoded, kOneBitScales, 1), 3);
  EXPECT_EQ(ScaleIn(encoded, kOneBitScales, 2), 5);
  // A decoder takes the size of groups from the message.
  EXPECT_EQ(Decode("onebit", encoded, {.elements = 70}), values);
}

TEST(OneBit, EachSeparateRowHasAScaleAndBeginsAtAByte) {
  const CodecShape rows = {.elements = 9, .columns = 3, .separate_rows = true};
  const std::vector<float> values = {1, -1, 1, -2, 2, 2, 0, 0, 0};
  for (const char* const codec : {"onebit", "onebit:group=32"}) {
    const auto encoded = Encode(codec, values, {.shape = rows});
    ASSERT_EQ(encoded.size(), 2 + 3 * 4 + 3);
    EXPECT_THAT(LastBytes(encoded, 3), ElementsAre(0b010, 0b001, 0));
    EXPECT_EQ(Decode("onebit", encoded, rows), values);
  }
}

// Rows of 20 elements, in groups of 8, 8 and 4.
TEST(OneBit, GroupsOfSeparateRowsDoNotReachBeyondThem) {
  const CodecShape rows = {.elements = 40, .columns = 20, .separate_rows = true};
  std::vector<float> values(40);
  for (std::size_t i = 0; i < 40; ++i) {
    const auto magnitude = static_cast<float>(1 + i / 20 * 3 + i % 20 / 8);
    values[i] = i % 3 == 0 ? -magnitude : magnitude;
  }
  const auto encoded = Encode("onebit:group=8", values, {.shape = rows});
  ASSERT_EQ(encoded.size(), 2 + 6 * 4 + 6);
  EXPECT_EQ(encoded[0], 1);
  for (std::size_t g = 0; g < 6; ++g) {
    EXPECT_EQ(ScaleIn(encoded, kOneBitScales, g), static_cast<float>(g + 1));
  }
  EXPECT_EQ(Decode("onebit:group=8", encoded, rows), values);
  std::vector<float> carried = values;
  std::vector<std::byte> out(encoded.size());
  ASSERT_TRUE(Make("onebit:group=8")->EncodeAndSubtract(carried.data(), {.shape = rows}, out).ok());
  EXPECT_THAT(carried, Each(0));
}

TEST(OneBit, AddsAFewBytesToItsBits) {
  const auto codec = Make("onebit");
  EXPECT_EQ(codec->EncodedBytesMax({.elements = 131072}), 16384 + 6);
  EXPECT_EQ(codec->EncodedBytesMax({.elements = 128}), 16 + 6);
  EXPECT_EQ(codec->EncodedBytesMax({.elements = 0}), 0);
}

TEST(OneBit, TheScaleIsRightWhereSumsInFloatOverflow) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> values(10000, kLargest);
  values[7] = -kLargest;
  EXPECT_EQ(ScaleIn(Encode("onebit", values), kOneBitScales), kLargest);
  for (std::size_t i = 0; i < 5000; ++i) values[i] = 0;
  EXPECT_EQ(ScaleIn(Encode("onebit", values), kOneBitScales), kLargest / 2);
}

TEST(OneBit, TheSmallestValuesKeepTheirMean) {
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(ScaleIn(Encode("onebit", {3 * kDenormal, -5 * kDenormal}), kOneBitScales),
            4 * kDenormal);
}

TEST(OneBit, OnlyZerosGiveZeros) {
  const auto encoded = Encode("onebit", std::vector<float>(100, -0.0f));
  EXPECT_THAT(Decode("onebit", encoded, {.elements = 100}), Each(0));
}

TEST(OneBit, MalformedMessagesAreRefused) {
  const auto check = [](const std::vector<std::uint8_t>& encoded, const CodecShape& shape) {
    return Checked("onebit", encoded, shape);
  };
  const CodecShape shape = {.elements = 64};
  auto encoded = Encode("onebit:group=32", std::vector<float>(64, 1));
  EXPECT_EQ(check(encoded, shape), "");
  EXPECT_THAT(check({encoded.begin(), encoded.begin() + 1}, shape),
              StartsWith("malformed onebit message: it ends before"));
  EXPECT_THAT(check(encoded, {.elements = 65}), HasSubstr("elements of 1 bits in 3 groups"));
  EXPECT_THAT(check(encoded, {.elements = 64, .columns = 32, .separate_rows = true}),
              HasSubstr("groups of 32 elements"));
  auto large = Encode("onebit", std::vector<float>(64, 1));
  large[1] = 0x80;  // 2^15 · 8, the largest: the same as one group
  EXPECT_EQ(check(large, shape), "");
  large[0] = 1;
  EXPECT_THAT(check(large, shape), HasSubstr("groups of 262152 elements"));
  for (const float scale :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto damaged = encoded;
    std::memcpy(damaged.data() + 6, &scale, sizeof(scale));
    EXPECT_THAT(check(damaged, shape), HasSubstr("scale"));
  }
  EXPECT_EQ(check({}, {.elements = 0}), "");
  EXPECT_THAT(check({0, 0}, {.elements = 0}), HasSubstr("2 bytes for no elements"));
}

TEST(OneBit, OptionsOutOfRangeAreRefused) {
  for (const char* const text : {"onebit:group=31", "onebit:group=4", "onebit:group=-32",
                                 "onebit:group=262152", "onebit:groups=32", "onebit:4"}) {
    EXPECT_EQ(MakeCodec(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  for (const char* const text : {"onebit:group=0", "onebit:group=8", "onebit:group=262144"}) {
    EXPECT_TRUE(MakeCodec(text).ok()) << text;
  }
}

TEST(OneBit, ErrorFeedbackArrivesWhereSignsAloneStandStill) {
  for (const char* const text : {"onebit", "onebit:group=32"}) {
    const auto codec = Make(text);
    EXPECT_LT(DistanceAfterDescent(*codec, Sent::kGradients), 0.05);
    EXPECT_LT(DistanceAfterDescent(*codec, Sent::kCompressedWithFeedback), 0.05);
    EXPECT_GT(DistanceAfterDescent(*codec, Sent::kCompressed), 1);
  }
}

}  // namespace
}  // namespace leeway::compress::groups_testing
