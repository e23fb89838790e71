#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "compress/registry.h"
#include "compress/sparse/rms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace threshold_test {
namespace {

std::vector<float> Carried(const char* text, const std::vector<float>& values,
                           const CodecShape& shape, std::size_t* bytes = nullptr) {
  const auto codec = MakeCodec(text)->codec;
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const auto encoded = codec->Encode(values.data(), {.shape = shape}, out);
  EXPECT_TRUE(encoded.ok()) << encoded.status();
  if (bytes != nullptr) *bytes = *encoded;
  std::vector<float> decoded(values.size(), 5);
  EXPECT_TRUE(codec->Decode(std::span(out).first(*encoded), shape, decoded.data()).ok());
  return decoded;
}

TEST(Threshold, SendsWhatReachesIt) {
  const CodecShape shape = {.elements = 6};
  EXPECT_THAT(Carried("threshold:0.5", {0.5f, -0.5f, 0.4999f, -7, 0, 0.6f}, shape),
              testing::ElementsAre(0.5f, -0.5f, 0, -7, 0, 0.6f));
  EXPECT_THAT(Carried("threshold", {1e-3f, 1.001e-3f, -9.9e-4f, 0, 0, 1}, shape),
              testing::ElementsAre(1e-3f, 1.001e-3f, 0, 0, 0, 1));
}

// float(0.1) is above 0.1, and the next one below it is below; float(0.7) is below 0.7.
TEST(Threshold, IsComparedExactly) {
  const float under = std::nextafter(0.1f, 0.0f), above = std::nextafter(0.7f, 1.0f);
  EXPECT_THAT(Carried("threshold:0.1", {0.1f, under}, {.elements = 2}),
              testing::ElementsAre(0.1f, 0));
  EXPECT_THAT(Carried("threshold:0.7", {0.7f, above}, {.elements = 2}),
              testing::ElementsAre(0, above));
  // Smaller than every number above zero.
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_THAT(Carried("threshold:1e-300", {0, least}, {.elements = 2}),
              testing::ElementsAre(0, least));
}

// The root mean square of 3, 4, 0, 0 is 2.5.
TEST(Threshold, MayBeRelativeToTheMessageOrToEachRow) {
  EXPECT_THAT(Carried("threshold:1.3,relative=1", {3, 4, 0, 0}, {.elements = 4}),
              testing::ElementsAre(0, 4, 0, 0));
  EXPECT_THAT(Carried("threshold:1.2,relative=1", {3, 4, 0, 0}, {.elements = 4}),
              testing::ElementsAre(3, 4, 0, 0));
  EXPECT_THAT(Carried("threshold:1.2,relative=1", {3, 4, 0, 0, 1, 1, 1, 2, 0, 0, 0, 0},
                      {.elements = 12, .columns = 4, .separate_rows = true}),
              testing::ElementsAre(3, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0));
}

TEST(Threshold, NothingToSendIsOneByteAndEverythingOneMoreThanTheValues) {
  std::size_t bytes = 0;
  const std::vector<float> zeros(1000);
  EXPECT_EQ(Carried("threshold:1e-30,relative=1", zeros, {.elements = 1000}, &bytes), zeros);
  EXPECT_EQ(bytes, 1u);
  const std::vector<float> ones(1000, 1);
  EXPECT_EQ(Carried("threshold:0.5", ones, {.elements = 1000}, &bytes), ones);
  EXPECT_EQ(bytes, 4001u);
}

// Squares beyond the range of a float.
TEST(Threshold, SumsOfSquaresAreRightForLargeAndSmallValues) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(1, 0, i));
  }
  for (const float scale : {0x1p-100f, 0x1p-50f, 0x1p-38f, 1.0f, 0x1p60f, 0x1p100f}) {
    std::vector<float> scaled = values;
    double expected = 0;
    for (float& value : scaled) {
      value *= scale;
      expected += static_cast<double>(value) * static_cast<double>(value);
    }
    EXPECT_NEAR(SumOfSquares(scaled.data(), scaled.size()), expected, 1e-6 * expected) << scale;
  }
  values[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(SumOfSquares(values.data(), values.size())));
}

TEST(Threshold, OptionsOutOfRangeAreRefused) {
  for (const char* text :
       {"threshold:0", "threshold:-1", "threshold:2e30", "threshold:1,relative=2",
        "threshold:1,relative=0.5", "threshold:1,values=fp16"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
}

}  // namespace
}  // namespace threshold_test
}  // namespace leeway::compress
