#include <cmath>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace fp4_test {
namespace {

using testing::ElementsAre;

std::vector<float> ThereAndBack(const std::vector<float>& values, const std::string& text = "fp4") {
  const auto codec = MakeCodec(text)->codec;
  const CodecShape shape{.elements = values.size()};
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const auto bytes = codec->Encode(values.data(), {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<float> decoded(values.size());
  const absl::Status status = codec->Decode(std::span(out).first(*bytes), shape, decoded.data());
  EXPECT_TRUE(status.ok()) << status;
  return decoded;
}

TEST(Fp4Codec, KeepsSignsAndPowersOfTwoOfTheLargestMagnitude) {
  EXPECT_THAT(ThereAndBack({-3, 1.5f, 0.75f, -0.375f, 3 / 64.0f, 0}),
              ElementsAre(-3, 1.5f, 0.75f, -0.375f, 3 / 64.0f, 0));
}

TEST(Fp4Codec, RoundsToTheNearestPower) {
  // Between 0.5 and 1 the middle is 0.75.
  EXPECT_THAT(ThereAndBack({1, 0.76f, -0.75f, 0.74f, 0.37f, -0.38f}),
              ElementsAre(1, 1, -1, 0.5f, 0.25f, -0.5f));
  // The smallest is 2^-6; half of it and more counts as it.
  EXPECT_THAT(ThereAndBack({1, 0x1p-6f, 0x1p-7f, -0x1p-7f, 0x0.fp-7f, 0x1p-20f}),
              ElementsAre(1, 0x1p-6f, 0x1p-6f, -0x1p-6f, 0, 0));
}

TEST(Fp4Codec, TheLossIsShorterThanThePush) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::sin(static_cast<float>(i * i)));
  const std::vector<float> decoded = ThereAndBack(values);
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    lost += std::pow(values[i] - decoded[i], 2);
    all += std::pow(values[i], 2);
  }
  EXPECT_LT(lost, all / 9);
}

TEST(Fp4Codec, ExtremesAndZerosComeBack) {
  EXPECT_THAT(ThereAndBack({0, 0, 0}), ElementsAre(0, 0, 0));
  const float largest = std::numeric_limits<float>::max();
  EXPECT_THAT(ThereAndBack({largest, -largest / 2}), ElementsAre(largest, -largest / 2));
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(ThereAndBack({smallest})[0], smallest);
}

TEST(Fp4Codec, HalfAByteAnElementAndAScaleAGroup) {
  const auto codec = MakeCodec("fp4:group=64")->codec;
  EXPECT_EQ(codec->EncodedBytesMax({.elements = 130}), 2 + 3 * 4 + 32 + 32 + 1u);
  for (const char* wrong : {"fp4:group=7", "fp4:8", "fp4:group=1e9", "fp4:bits=4"}) {
    EXPECT_EQ(MakeCodec(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  const CodecShape shape{.elements = 2};
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const float bad[] = {1, std::numeric_limits<float>::infinity()};
  EXPECT_FALSE(codec->Encode(bad, {.shape = shape}, out).ok());
  float values[2];
  EXPECT_FALSE(codec->Decode(std::span(out).first(5), shape, values).ok());
}

}  // namespace
}  // namespace fp4_test
}  // namespace leeway::compress
