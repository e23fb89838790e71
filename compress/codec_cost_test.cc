#include "compress/codec_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compress/registry.h"

namespace leeway::compress {
namespace codec_cost_test {
namespace {

const bool kKinds[] = {false, false, true};  // none, zstd, onebit

std::uint32_t Choose(std::vector<double> costs, std::uint32_t present) {
  return ChooseCodec(costs, kKinds, present);
}

TEST(CodecCost, AFastLinkNeedsNoCodec) {
  EXPECT_EQ(Choose({1, 9, 0.9}, 0), 0u);
  EXPECT_EQ(Choose({1, 9, 0.9}, 1), 0u);
  EXPECT_EQ(Choose({1, 9, 0.9}, 2), 0u);
}

TEST(CodecCost, ALossyCodecHasToSaveMoreThanHalf) {
  EXPECT_EQ(Choose({80, 75, 30}, 0), 0u);
  EXPECT_EQ(Choose({80, 75, 3}, 0), 2u);
}

TEST(CodecCost, TheChosenOneIsKeptUntilAnotherIsClearlyBetter) {
  EXPECT_EQ(Choose({80, 75, 30}, 2), 2u);  // saves too little to be chosen, but enough to stay
  EXPECT_EQ(Choose({80, 75, 60}, 2), 1u);
  EXPECT_EQ(Choose({80, 70, 60}, 0), 0u);
  EXPECT_EQ(Choose({80, 60, 60}, 0), 1u);
}

TEST(CodecCost, OfOneKindTheCheapestIsTaken) {
  const bool lossy[] = {true, true};
  EXPECT_EQ(ChooseCodec(std::vector<double>{4, 3}, lossy, 0), 1u);
  EXPECT_EQ(ChooseCodec(std::vector<double>{4, 3.9}, lossy, 0), 0u);
}

TEST(CodecCost, IsWhatACodecTakesAndTheLinkForWhatItLeaves) {
  EXPECT_DOUBLE_EQ(NanosecondsPerByte({.code_seconds_per_byte = 1e-9, .ratio = 0.5}, 1e8), 7);
}

TEST(CodecCost, IsMeasuredOnRealValues) {
  absl::Time time = absl::UnixEpoch();
  const auto now = [&] { return time += absl::Microseconds(4); };
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  const auto codec = MakeCodec("onebit")->codec;
  const auto speed = MeasureCodec(*codec, {.elements = 1000}, bytes, now);
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_DOUBLE_EQ(speed->code_seconds_per_byte, 1e-9);
  EXPECT_LT(speed->ratio, 0.04);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(MeasureCodec(*codec, {.elements = 1000}, bytes, now).ok());
}

}  // namespace
}  // namespace codec_cost_test
}  // namespace leeway::compress
