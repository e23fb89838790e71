#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace int8_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Codec> Int8Of(const std::string& text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->codec : nullptr;
}

std::vector<std::byte> Int8Bytes(const Codec& codec, const std::vector<float>& values,
                                 const CodecShape& shape) {
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  const auto bytes = codec.Encode(values.data(), {.shape = shape, .seed = 3}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes.value_or(0), out.size());
  return out;
}

std::vector<float> Int8Decoded(const Codec& codec, std::span<const std::byte> bytes,
                               const CodecShape& shape) {
  std::vector<float> values(shape.elements);
  EXPECT_TRUE(codec.Decode(bytes, shape, values.data()).ok());
  return values;
}

float FloatAt(const std::vector<std::byte>& bytes, std::size_t at) {
  float value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

TEST(Int8Codec, TheMessageIsAsDescribed) {
  const auto codec = Int8Of("int8:group=16");
  std::vector<float> values(18, 0.0f);
  values[0] = 254;     // scale 2
  values[1] = -5;      // −2.5: to the even neighbour
  values[2] = 7;       // 3.5
  values[16] = -0.5f;  // another group
  const CodecShape shape{.elements = 18};
  const std::vector<std::byte> bytes = Int8Bytes(*codec, values, shape);
  ASSERT_EQ(bytes.size(), 2 + 2 * 4 + 18);
  EXPECT_EQ(bytes[0], std::byte{15});
  EXPECT_EQ(bytes[1], std::byte{0});
  EXPECT_EQ(FloatAt(bytes, 2), 2);
  EXPECT_EQ(FloatAt(bytes, 6), 0.5f / 127);
  const auto* const codes = reinterpret_cast<const std::int8_t*>(bytes.data() + 10);
  EXPECT_THAT(std::vector(codes, codes + 4), ElementsAre(127, -2, 4, 0));
  EXPECT_THAT(std::vector(codes + 16, codes + 18), ElementsAre(-127, 0));
  // The message has its options: a decoder with others understands it.
  const std::vector<float> decoded = Int8Decoded(*Int8Of("int8:stochastic=1"), bytes, shape);
  EXPECT_THAT(std::vector(decoded.begin(), decoded.begin() + 4), ElementsAre(254, -4, 8, 0));
  EXPECT_FLOAT_EQ(decoded[16], -0.5f);
}

TEST(Int8Codec, EachSeparateRowHasItsScale) {
  const auto codec = Int8Of("int8");
  const CodecShape rows{.elements = 6, .columns = 2, .separate_rows = true};
  const std::vector<std::byte> bytes = Int8Bytes(*codec, {127, 1, 12700, 100, 0, 0}, rows);
  ASSERT_EQ(bytes.size(), 2 + 3 * 4 + 6);
  EXPECT_EQ(FloatAt(bytes, 2), 1);
  EXPECT_EQ(FloatAt(bytes, 6), 100);
  EXPECT_THAT(Int8Decoded(*codec, bytes, rows), ElementsAre(127, 1, 12700, 100, 0, 0));
}

TEST(Int8Codec, TheErrorIsAtMostHalfAScale) {
  const auto codec = Int8Of("int8");
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * std::pow(10.0f, static_cast<float>(i / 256));
  }
  const CodecShape shape{.elements = values.size()};
  const std::vector<std::byte> bytes = Int8Bytes(*codec, values, shape);
  const std::vector<float> decoded = Int8Decoded(*codec, bytes, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(decoded[i] - values[i]), FloatAt(bytes, 2 + 4 * (i / 256)) * 0.50001f) << i;
  }
}

TEST(Int8Codec, TheLargestFloatsComeBackNearlyAndTheLeastAsZero) {
  const auto codec = Int8Of("int8");
  const CodecShape shape{.elements = 2};
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> decoded =
      Int8Decoded(*codec, Int8Bytes(*codec, {kLargest, -kLargest}, shape), shape);
  EXPECT_NEAR(decoded[0] / kLargest, 1, 1e-6);
  EXPECT_EQ(decoded[1], -decoded[0]);
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  decoded = Int8Decoded(*codec, Int8Bytes(*codec, {kLeast, 0x1p-120f}, shape), shape);
  EXPECT_EQ(decoded[0], 0);
  EXPECT_NEAR(decoded[1] / 0x1p-120f, 1, 0.01);
}

TEST(Int8Codec, StochasticRoundingIsRightInTheMean) {
  const auto codec = Int8Of("int8:stochastic=1");
  std::vector<float> values(256, 0.3f);
  values[0] = 127;
  const CodecShape shape{.elements = values.size()};
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  std::vector<float> decoded(values.size());
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    ASSERT_TRUE(codec->Encode(values.data(), {.shape = shape, .seed = seed}, out).ok());
    ASSERT_TRUE(codec->Decode(out, shape, decoded.data()).ok());
    for (std::size_t i = 1; i < values.size(); ++i) {
      ASSERT_TRUE(decoded[i] == 0 || decoded[i] == 1);
      mean += static_cast<double>(decoded[i]) / (200 * 255);
    }
  }
  EXPECT_NEAR(mean, 0.3, 0.01);  // five deviations
}

TEST(Int8Codec, BytesThatNoEncoderWritesAreRefused) {
  const auto codec = Int8Of("int8");
  const CodecShape shape{.elements = 20};
  const std::vector<std::byte> good = Int8Bytes(*codec, std::vector<float>(20, 1.0f), shape);
  ASSERT_TRUE(codec->Check(good, shape).ok());
  const auto with = [&](std::size_t at, auto value) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return std::string(codec->Check(bytes, shape).message());
  };
  EXPECT_THAT(with(0, std::uint16_t{14}), HasSubstr("groups of 15 elements"));
  EXPECT_THAT(with(0, std::uint16_t{15}), HasSubstr("26 bytes are not 20 elements in 2 groups"));
  for (const float scale : {0.0f, -1.0f, 0x1p-127f, 3e36f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(with(2, scale), HasSubstr("the scale of group 0 is out of range"));
  }
  EXPECT_THAT(with(25, std::int8_t{-128}), HasSubstr("a byte is no finite number"));
  EXPECT_EQ(with(25, std::int8_t{-127}), "");
}

TEST(Int8Codec, OptionsHaveTheirRanges) {
  for (const char* wrong : {"int8:group=15", "int8:group=65537", "int8:group=20.5",
                            "int8:stochastic=2", "int8:8", "int8:bits=8"}) {
    EXPECT_EQ(MakeCodec(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_TRUE(MakeCodec("int8:group=65536,stochastic=0").ok());
}

}  // namespace
}  // namespace int8_test
}  // namespace leeway::compress
