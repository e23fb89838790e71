// What is special about ternary; what holds for every codec is in codecs_test.cc, what holds for
// dithering in qsgd_test.cc.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "compress/codecs/descent.h"
#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/random.h"

namespace leeway::compress {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Codec> Make(const std::string& text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->codec;
}

std::vector<std::uint8_t> Encode(const Codec& codec, const std::vector<float>& values,
                                 const EncodeTerms& terms) {
  std::vector<std::uint8_t> out(codec.EncodedBytesMax(terms.shape));
  const auto bytes = codec.Encode(values.data(), terms, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  out.resize(bytes.value_or(0));
  return out;
}

std::vector<float> Decode(const Codec& codec, const std::vector<std::uint8_t>& encoded,
                          const CodecShape& shape) {
  std::vector<float> values(shape.elements);
  const absl::Status decoded =
      codec.Decode(std::as_bytes(std::span(encoded)), shape, values.data());
  EXPECT_TRUE(decoded.ok()) << decoded;
  return values;
}

float ScaleIn(const std::vector<std::uint8_t>& encoded) {
  float scale;
  std::memcpy(&scale, encoded.data() + 3, sizeof(scale));
  return scale;
}

TEST(Ternary, AMessageByHand) {
  const auto codec = Make("ternary");
  const CodecShape shape = {.elements = 6};
  // The largest are sent for certain, zeros never.
  const std::vector<float> values = {2, -2, 0, 2, -0.0f, -2};
  const auto encoded = Encode(*codec, values, {.shape = shape});
  ASSERT_EQ(encoded.size(), 1 + 2 + 4 + 2);
  EXPECT_EQ(encoded[0], 2);
  EXPECT_EQ(encoded[1] + encoded[2], 0);
  EXPECT_EQ(ScaleIn(encoded), 2);
  EXPECT_EQ(encoded[7], 0b01001101);
  EXPECT_EQ(encoded[8], 0b1100);
  EXPECT_EQ(Decode(*codec, encoded, shape), values);
}

TEST(Ternary, ABlockTakesTwoBitsForAnElement) {
  EXPECT_EQ(Make("ternary")->EncodedBytesMax({.elements = 131072}), 32768 + 7);
  EXPECT_EQ(Make("ternary:group=1024")->EncodedBytesMax({.elements = 131072}), 32768 + 3 + 128 * 4);
}

TEST(Ternary, TheMeanOverManySeedsIsTheElement) {
  constexpr int kSeeds = 4000;
  const auto codec = Make("ternary");
  const CodecShape shape = {.elements = 50};
  std::vector<float> values(50);
  for (std::size_t i = 0; i < 50; ++i) values[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
  std::vector<double> sum(50);
  float scale = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto encoded = Encode(*codec, values, {.shape = shape, .seed = seed});
    scale = ScaleIn(encoded);
    const std::vector<float> decoded = Decode(*codec, encoded, shape);
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

TEST(Ternary, ClippingMakesTheScaleSmaller) {
  // 99 of magnitude 1 and one of 10: the root of the mean square is √1.99.
  std::vector<float> values(100, 1);
  values[3] = -10;
  const CodecShape shape = {.elements = 100};
  EXPECT_EQ(ScaleIn(Encode(*Make("ternary"), values, {.shape = shape})), 10);
  const auto codec = Make("ternary:clip=2.5");
  const auto encoded = Encode(*codec, values, {.shape = shape});
  const float scale = static_cast<float>(2.5 * std::sqrt(1.99));
  EXPECT_EQ(ScaleIn(encoded), scale);
  EXPECT_EQ(Decode(*codec, encoded, shape)[3], -scale);
  // Equal elements are not clipped, even at the limit.
  const std::vector<float> equal(100, -3);
  EXPECT_EQ(Decode(*Make("ternary:clip=1"),
                   Encode(*Make("ternary:clip=1"), equal, {.shape = shape}), shape),
            equal);
}

TEST(Ternary, ClippingWorksAtTheEndsOfTheRange) {
  const CodecShape shape = {.elements = 100};
  for (const float size : {1e-45f, 1e-30f, 1e30f, 3e38f}) {
    const std::vector<float> equal(100, size);
    const auto codec = Make("ternary:clip=2.5");
    EXPECT_EQ(Decode(*codec, Encode(*codec, equal, {.shape = shape}), shape), equal);
  }
}

TEST(Ternary, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(MakeCodec("ternary:clip=0.5").status().message(), HasSubstr("0 or from 1 to 100"));
  for (const char* const text : {"ternary:clip=-1", "ternary:clip=101", "ternary:group=33",
                                 "ternary:bits=2", "ternary:2.5"}) {
    EXPECT_EQ(MakeCodec(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Ternary, DescentArrivesWithErrorFeedback) {
  for (const char* const text : {"ternary", "ternary:clip=2.5", "ternary:group=32"}) {
    EXPECT_LT(DistanceAfterDescent(*Make(text), Sent::kCompressedWithFeedback), 0.05) << text;
  }
}

}  // namespace
}  // namespace leeway::compress
