#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace fp8_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Codec> Fp8Of(const std::string& text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->codec : nullptr;
}

std::vector<int> Fp8Bytes(const Codec& codec, const std::vector<float>& values,
                          const CodecShape& shape) {
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  const auto bytes = codec.Encode(values.data(), {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes.value_or(0), out.size());
  std::vector<int> numbers;
  for (const std::byte byte : out) numbers.push_back(static_cast<int>(byte));
  return numbers;
}

absl::StatusOr<std::vector<float>> Fp8Decoded(const Codec& codec, const std::vector<int>& numbers,
                                              const CodecShape& shape) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  std::vector<float> values(shape.elements);
  if (absl::Status status = codec.Decode(bytes, shape, values.data()); !status.ok()) return status;
  return values;
}

TEST(Fp8Codec, E4m3IsAsDescribed) {
  const auto codec = Fp8Of("fp8");
  const CodecShape shape{.elements = 6};
  // 448 is the largest number: the scale is 1. 17 lies between 16 and 18, to the even one.
  const std::vector<int> bytes = Fp8Bytes(*codec, {448, -1, 17, 0.0f, 0x1p-9f, -0x1p-10f}, shape);
  EXPECT_THAT(bytes, ElementsAre(0, 255, 0, 127, 0x7e, 0xb8, 0x58, 0, 1, 0x80));
  EXPECT_THAT(*Fp8Decoded(*codec, bytes, shape), ElementsAre(448, -1, 16, 0, 0x1p-9f, -0.0f));
}

TEST(Fp8Codec, E5m2IsAsDescribed) {
  const auto codec = Fp8Of("fp8:e5m2,group=16");
  const CodecShape shape{.elements = 5};
  const std::vector<int> bytes = Fp8Bytes(*codec, {57344, -1, 9, 0x1p-16f, 0x1p-17f}, shape);
  EXPECT_THAT(bytes, ElementsAre(1, 15, 0, 127, 0x7b, 0xbc, 0x48, 1, 0));
  // The message has its format: a decoder with the other option understands it.
  EXPECT_THAT(*Fp8Decoded(*Fp8Of("fp8:e4m3"), bytes, shape),
              ElementsAre(57344, -1, 8, 0x1p-16f, 0));
}

TEST(Fp8Codec, TheScaleIsTheLeastWithWhichNothingSaturates) {
  const auto codec = Fp8Of("fp8");
  const CodecShape shape{.elements = 1};
  EXPECT_EQ(Fp8Bytes(*codec, {std::nextafter(448.0f, 500.0f)}, shape)[3], 128);
  EXPECT_EQ(Fp8Bytes(*codec, {225}, shape)[3], 127);
  EXPECT_EQ(Fp8Bytes(*codec, {224}, shape)[3], 126);
  EXPECT_EQ(Fp8Bytes(*codec, {0}, shape)[3], 1);
}

TEST(Fp8Codec, SmallGradientsDoNotUnderflowAndLargeOnesDoNotOverflow) {
  for (const char* text : {"fp8", "fp8:e5m2"}) {
    const auto codec = Fp8Of(text);
    const CodecShape shape{.elements = 2};
    for (const float size : {1e-36f, 1e-20f, 1e-7f, 1.0f, 1e30f}) {
      const auto decoded = Fp8Decoded(*codec, Fp8Bytes(*codec, {size, -size / 100}, shape), shape);
      EXPECT_NEAR((*decoded)[0] / size, 1, 0.125) << text << size;
      EXPECT_NEAR((*decoded)[1] / size, -0.01, 0.00125) << text << size;
    }
    constexpr float kLargest = std::numeric_limits<float>::max();
    const auto decoded = Fp8Decoded(*codec, Fp8Bytes(*codec, {kLargest, -kLargest}, shape), shape);
    EXPECT_THAT(*decoded, ElementsAre(0x1.cp127f, -0x1.cp127f));
  }
}

TEST(Fp8Codec, EachGroupAndEachSeparateRowHasItsScale) {
  const auto codec = Fp8Of("fp8:group=16");
  std::vector<float> values(18, 448.0f);
  values[16] = 1e-12f, values[17] = -1e-12f;
  const CodecShape groups{.elements = 18};
  const auto decoded = Fp8Decoded(*codec, Fp8Bytes(*codec, values, groups), groups);
  EXPECT_EQ((*decoded)[15], 448);
  EXPECT_NEAR((*decoded)[17] * 1e12f, -1, 0.0625);

  const CodecShape rows{.elements = 4, .columns = 2, .separate_rows = true};
  EXPECT_THAT(Fp8Bytes(*codec, {448, 1, 7, 1}, rows),
              ElementsAre(0, 15, 0, 127, 121, 0x7e, 0x38, 0x7e, 0x68));
}

TEST(Fp8Codec, BytesThatNoEncoderWritesAreRefused) {
  const auto codec = Fp8Of("fp8");
  const CodecShape shape{.elements = 2};
  const auto error = [&](const std::vector<int>& bytes) {
    return std::string(Fp8Decoded(*codec, bytes, shape).status().message());
  };
  EXPECT_EQ(error({0, 255, 0, 246, 0x7e, 0xfe}), "");
  EXPECT_EQ(error({1, 255, 0, 239, 0x7b, 0xfb}), "");
  EXPECT_THAT(error({2, 255, 0, 127, 0, 0}), HasSubstr("no known format"));
  EXPECT_THAT(error({0, 14, 0, 127, 0, 0}), HasSubstr("groups of 15 elements"));
  EXPECT_THAT(error({0, 255, 0, 127, 0}), HasSubstr("5 bytes are not 2 elements in 1 groups"));
  for (const int scale : {0, 247, 255}) {
    EXPECT_THAT(error({0, 255, 0, scale, 0, 0}), HasSubstr("scale of group 0 is out of range"));
  }
  EXPECT_THAT(error({1, 255, 0, 240, 0, 0}), HasSubstr("scale of group 0 is out of range"));
  for (const int nan : {0x7f, 0xff}) {
    EXPECT_THAT(error({0, 255, 0, 127, 0, nan}), HasSubstr("no finite number"));
  }
  for (const int not_finite : {0x7c, 0x7d, 0xfc, 0xff}) {
    EXPECT_THAT(error({1, 255, 0, 127, 0, not_finite}), HasSubstr("no finite number"));
  }
}

TEST(Fp8Codec, OptionsAreAFormatAndAGroup) {
  EXPECT_EQ(MakeCodec("fp8:e3m4").status().message(),
            "codec fp8: format is e3m4, may be e4m3 or e5m2");
  for (const char* wrong : {"fp8:8", "fp8:e4m3,group=8", "fp8:bits=8", "fp8:group=1e6"}) {
    EXPECT_EQ(MakeCodec(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace fp8_test
}  // namespace leeway::compress
