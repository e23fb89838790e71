#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace halves_test {
namespace {

using testing::ElementsAre;

std::vector<std::uint16_t> HalvesOf(const char* codec, const std::vector<float>& values) {
  const auto made = MakeCodec(codec);
  EXPECT_TRUE(made.ok()) << made.status();
  std::vector<std::byte> out(2 * values.size());
  const CodecShape shape{.elements = values.size()};
  EXPECT_EQ(made->codec->EncodedBytesMax(shape), out.size());
  const auto bytes = made->codec->Encode(values.data(), {.shape = shape}, out);
  EXPECT_EQ(bytes.value_or(0), out.size());
  std::vector<std::uint16_t> halves(values.size());
  std::memcpy(halves.data(), out.data(), out.size());
  return halves;
}

constexpr float kHalfInfinite = std::numeric_limits<float>::infinity();

TEST(Fp16Codec, WritesBinary16) {
  EXPECT_THAT(HalvesOf("fp16", {0, -0.0f, 1, -2.5f, 0.1f, 0x1p-24f, 0x1p-25f, 0x1.8p-24f}),
              ElementsAre(0, 0x8000, 0x3c00, 0xc100, 0x2e66, 1, 0, 2));
  // 1 + 2^-11 lies in the middle: to the even neighbour.
  EXPECT_THAT(HalvesOf("fp16", {0x1.002p0f, 0x1.006p0f}), ElementsAre(0x3c00, 0x3c02));
}

TEST(Fp16Codec, FiniteValuesStayFiniteAndInfinityInfinite) {
  EXPECT_THAT(HalvesOf("fp16", {65504, 65519, 65520, -65536, 1e30f, kHalfInfinite, -kHalfInfinite}),
              ElementsAre(0x7bff, 0x7bff, 0x7bff, 0xfbff, 0x7bff, 0x7c00, 0xfc00));
}

TEST(Bf16Codec, WritesTheUpperHalf) {
  EXPECT_THAT(HalvesOf("bf16", {0, -0.0f, 1, -2.5f, 0.1f, 0x1p-133f}),
              ElementsAre(0, 0x8000, 0x3f80, 0xc020, 0x3dcd, 1));
  // 1 + 2^-8 lies in the middle.
  EXPECT_THAT(HalvesOf("bf16", {0x1.01p0f, 0x1.03p0f}), ElementsAre(0x3f80, 0x3f82));
}

TEST(Bf16Codec, FiniteValuesStayFiniteAndInfinityInfinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  EXPECT_THAT(HalvesOf("bf16", {kLargest, -kLargest, kHalfInfinite, -kHalfInfinite}),
              ElementsAre(0x7f7f, 0xff7f, 0x7f80, 0xff80));
}

TEST(HalfCodecs, LeaveWhatRoundingDroppedAndNothingOfNanAndInfinity) {
  const auto fp16 = MakeCodec("fp16");
  ASSERT_TRUE(fp16.ok());
  std::vector<float> carried = {
      0x1.002p0f, 70000, kHalfInfinite, -kHalfInfinite, std::numeric_limits<float>::quiet_NaN(), 3};
  std::vector<std::byte> out(2 * carried.size());
  ASSERT_TRUE(
      fp16->codec->EncodeAndSubtract(carried.data(), {.shape = {.elements = carried.size()}}, out)
          .ok());
  EXPECT_THAT(carried, ElementsAre(0x1p-11f, 70000 - 65504, 0, 0, 0, 0));
}

TEST(HalfCodecs, AnOddNumberOfBytesIsRefused) {
  for (const char* name : {"fp16", "bf16"}) {
    const auto made = MakeCodec(name);
    ASSERT_TRUE(made.ok());
    const std::byte bytes[5] = {};
    EXPECT_EQ(made->codec->Check(bytes, {.elements = 2}).message(),
              std::string("malformed ") + name + " message: 5 bytes are not 2 elements");
    EXPECT_FALSE(MakeCodec(std::string(name) + ":8").ok());
  }
}

}  // namespace
}  // namespace halves_test
}  // namespace leeway::compress
