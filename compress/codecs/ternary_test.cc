// Tests of ternary's own properties; codecs_test.cc tests those of every codec, qsgd_test.cc those
// of dithering.
#include <cmath>
#include <vector>

#include "compress/common/descent.h"
#include "compress/testing/groups_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress::groups_testing {
namespace {

using testing::HasSubstr;

constexpr std::size_t kTernaryScales = 3;  // where they begin

TEST(Ternary, AMessageByHand) {
  const CodecShape shape = {.elements = 6};
  // The largest elements are always sent, zeros never.
  const std::vector<float> values = {2, -2, 0, 2, -0.0f, -2};
  const auto encoded = Encode("ternary", values, {.shape = shape});
  ASSERT_EQ(encoded.size(), 1 + 2 + 4 + 2);
  EXPECT_EQ(encoded[0], 2);
  EXPECT_EQ(encoded[1], 512 / 8);
  EXPECT_EQ(encoded[2], 0);
  EXPECT_EQ(ScaleIn(encoded, kTernaryScales), 2);
  EXPECT_EQ(encoded[7], 0b01001101);
  EXPECT_EQ(encoded[8], 0b1100);
  EXPECT_EQ(Decode("ternary", encoded, shape), values);
}

TEST(Ternary, ABlockTakesTwoBitsForAnElement) {
  EXPECT_EQ(Make("ternary")->EncodedBytesMax({.elements = 131072}), 3 + 256 * 4 + 32768);
  EXPECT_EQ(Make("ternary:group=0")->EncodedBytesMax({.elements = 131072}), 3 + 4 + 32768);
}

TEST(Ternary, TheMeanOverManySeedsIsTheElementWithTheLargestAsScale) {
  constexpr int kSeeds = 4000;
  const CodecShape shape = {.elements = 50};
  std::vector<float> values(50);
  for (std::size_t i = 0; i < 50; ++i) values[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
  std::vector<double> sum(50);
  float scale = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto encoded = Encode("ternary:scale=max", values, {.shape = shape, .seed = seed});
    scale = ScaleIn(encoded, kTernaryScales);
    const std::vector<float> decoded = Decode("ternary", encoded, shape);
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_TRUE(decoded[i] == 0 || decoded[i] == std::copysign(scale, values[i]));
      sum[i] += static_cast<double>(decoded[i]);
    }
  }
  for (std::size_t i = 0; i < 50; ++i) {
    const double magnitude = static_cast<double>(std::abs(values[i]));
    const double variance = magnitude * (static_cast<double>(scale) - magnitude);
    EXPECT_NEAR(sum[i] / kSeeds, static_cast<double>(values[i]),
                4 * std::sqrt(variance / kSeeds) + 1e-6);
  }
}

// The remainder is at right angles to the decoded values, so its square is that of the input less
// that of the decoded values: it contracts, whatever is drawn.
TEST(Ternary, AFittedScaleAlwaysLeavesLessThanItWasGiven) {
  const CodecShape shape = {.elements = 1000};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < 1000; ++i) {
      // Every fourth seed has an outlier, the worst case for TernGrad.
      values[i] = static_cast<float>(runtime::NormalAt(seed, 2, i));
      if (seed % 4 == 0 && i % 500 == 7) values[i] = 1000;
    }
    const std::vector<float> decoded =
        Decode("ternary", Encode("ternary", values, {.shape = shape, .seed = seed}), shape);
    double given = 0, sent = 0, left = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      given += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      sent += static_cast<double>(decoded[i]) * static_cast<double>(decoded[i]);
      left += std::pow(static_cast<double>(values[i] - decoded[i]), 2);
    }
    EXPECT_GT(sent, 0.2 * given) << seed;
    EXPECT_NEAR(left, given - sent, 1e-5 * given) << seed;
  }
}

TEST(Ternary, OnlyAFittedScaleContracts) {
  EXPECT_TRUE(Make("ternary")->contracts());
  EXPECT_TRUE(Make("ternary:group=0")->contracts());
  EXPECT_FALSE(Make("ternary:scale=max")->contracts());
  EXPECT_FALSE(Make("qsgd:bits=2")->contracts());
  EXPECT_TRUE(Make("qsgd")->contracts());
}

TEST(Ternary, ClippingMakesTheScaleSmaller) {
  // 99 of magnitude 1 and one of 10: the root of the mean square is √1.99.
  std::vector<float> values(100, 1);
  values[3] = -10;
  const CodecShape shape = {.elements = 100};
  EXPECT_EQ(ScaleIn(Encode("ternary:scale=max", values, {.shape = shape}), kTernaryScales), 10);
  const auto encoded = Encode("ternary:clip=2.5,scale=max", values, {.shape = shape});
  const float scale = static_cast<float>(2.5 * std::sqrt(1.99));
  EXPECT_EQ(ScaleIn(encoded, kTernaryScales), scale);
  EXPECT_EQ(Decode("ternary:clip=2.5,scale=max", encoded, shape)[3], -scale);
  // Equal elements are not clipped, even at the limit.
  const std::vector<float> equal(100, -3);
  EXPECT_EQ(Decode("ternary:clip=1", Encode("ternary:clip=1", equal, {.shape = shape}), shape),
            equal);
}

TEST(Ternary, ClippingWorksAtTheEndsOfTheRange) {
  const CodecShape shape = {.elements = 100};
  for (const float size : {1e-45f, 1e-30f, 1e30f, 3e38f}) {
    const std::vector<float> equal(100, size);
    EXPECT_EQ(
        Decode("ternary:clip=2.5", Encode("ternary:clip=2.5", equal, {.shape = shape}), shape),
        equal);
  }
}

TEST(Ternary, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(MakeCodec("ternary:clip=0.5").status().message(), HasSubstr("0 or from 1 to 100"));
  for (const char* const text : {"ternary:clip=-1", "ternary:clip=101", "ternary:group=33",
                                 "ternary:bits=2", "ternary:2.5", "ternary:scale=1"}) {
    EXPECT_EQ(MakeCodec(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Ternary, DescentArrivesWithErrorFeedback) {
  for (const char* const text :
       {"ternary", "ternary:clip=2.5", "ternary:group=32", "ternary:group=0"}) {
    EXPECT_LT(DistanceAfterDescent(*Make(text), Sent::kCompressedWithFeedback), 0.05) << text;
  }
}

}  // namespace
}  // namespace leeway::compress::groups_testing
