#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "compress/common/byte_io.h"
#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace randomk_test {
namespace {

std::vector<std::byte> Encode(const Codec& codec, const std::vector<float>& values,
                              const EncodeTerms& terms) {
  std::vector<std::byte> out(codec.EncodedBytesMax(terms.shape));
  const auto bytes = codec.Encode(values.data(), terms, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, out.size());
  return out;
}

std::vector<float> Carried(const Codec& codec, const std::vector<float>& values,
                           const EncodeTerms& terms) {
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(codec.Decode(Encode(codec, values, terms), terms.shape, decoded.data()).ok());
  return decoded;
}

// 7 elements in stretches of 2, 2 and 3, so that stretches differ: each place is nevertheless taken
// in 3/7 of all messages, and each message has exactly 3.
TEST(RandomK, TakesEachPlaceEquallyOften) {
  const auto codec = MakeCodec("randomk:0.4")->codec;
  constexpr int kMessages = 20'000;
  std::vector<int> taken(7);
  for (int seed = 0; seed < kMessages; ++seed) {
    const std::vector<float> carried =
        Carried(*codec, {1, 2, 3, 4, 5, 6, 7},
                {.shape = {.elements = 7}, .seed = static_cast<std::uint64_t>(seed)});
    int count = 0;
    for (std::size_t i = 0; i < 7; ++i) {
      if (carried[i] == 0) continue;
      EXPECT_EQ(carried[i], static_cast<float>(i + 1));
      ++taken[i];
      ++count;
    }
    ASSERT_EQ(count, 3);
  }
  // One standard deviation is 70.
  for (const int times : taken) EXPECT_NEAR(times, kMessages * 3 / 7, 350);
}

TEST(RandomK, EachRowHasItsOwnPlaces) {
  const auto codec = MakeCodec("randomk:0.25")->codec;
  const CodecShape shape = {.elements = 800, .columns = 8, .separate_rows = true};
  const std::vector<float> carried = Carried(*codec, std::vector<float>(800, 1), {.shape = shape});
  int as_before = 0;
  for (std::size_t row = 0; row < 100; ++row) {
    int count = 0, same = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      if (carried[row * 8 + i] == 0) continue;
      ++count;
      if (row > 0 && carried[row * 8 + i - 8] != 0) ++same;
    }
    EXPECT_EQ(count, 2);
    as_before += same == 2 ? 1 : 0;
  }
  EXPECT_LT(as_before, 20);  // 4 at random
}

TEST(RandomK, ScaledItIsRightOnAverage) {
  const auto codec = MakeCodec("randomk:0.25,scale=1")->codec;
  const std::vector<float> values = {1, -2, 3, 0.5f, 8, 0, -1, 4};
  std::vector<double> mean(8);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::vector<float> carried =
        Carried(*codec, values, {.shape = {.elements = 8}, .seed = seed});
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_TRUE(carried[i] == 0 || carried[i] == 4 * values[i]);
      mean[i] += static_cast<double>(carried[i]) / 20'000;
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const double value = static_cast<double>(values[i]);
    EXPECT_NEAR(mean[i], value, 0.07 * std::abs(value) + 1e-9) << i;  // 5 deviations
  }
}

TEST(RandomK, OtherStepsTakeOtherPlaces) {
  const auto codec = MakeCodec("randomk:0.1")->codec;
  const CodecShape shape = {.elements = 1000};
  const std::vector<float> ones(1000, 1);
  EXPECT_NE(Carried(*codec, ones, {.shape = shape, .seed = 3, .step = 1}),
            Carried(*codec, ones, {.shape = shape, .seed = 3, .step = 2}));
}

TEST(RandomK, TheMessageIsTheSeedTheRatioAndTheValues) {
  const auto codec = MakeCodec("randomk:1")->codec;
  const std::vector<std::byte> encoded =
      Encode(*codec, {2}, {.shape = {.elements = 1}, .seed = 9, .step = 4});
  ByteReader reader(encoded);
  std::uint64_t seed = 0;
  double ratio = 0;
  float value = 0;
  ASSERT_TRUE(reader.Take(&seed) && reader.Take(&ratio) && reader.Take(&value));
  EXPECT_EQ(seed, runtime::RandomAt(9, 4, 0));
  EXPECT_EQ(ratio, 1);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(reader.left(), 0u);
}

TEST(RandomK, MessagesWithAnotherRatioOrInfiniteValuesAreRefused) {
  const auto codec = MakeCodec("randomk:0.5")->codec;
  const CodecShape shape = {.elements = 4};
  const auto with = [](double ratio, std::initializer_list<float> values) {
    std::vector<std::byte> bytes(16 + 4 * values.size());
    ByteWriter writer(bytes);
    writer.Put(std::uint64_t{1});
    writer.Put(ratio);
    for (const float value : values) writer.Put(value);
    return bytes;
  };
  EXPECT_TRUE(codec->Check(with(0.5, {1, 2}), shape).ok());
  EXPECT_TRUE(codec->Check(with(0.25, {1}), shape).ok());
  EXPECT_FALSE(codec->Check(with(0.25, {1, 2}), shape).ok());
  EXPECT_FALSE(codec->Check(with(0, {1}), shape).ok());
  EXPECT_FALSE(codec->Check(with(1.5, {1, 2, 3, 4}), shape).ok());
  EXPECT_FALSE(codec->Check(with(std::nan(""), {1}), shape).ok());
  EXPECT_FALSE(codec->Check(with(0.5, {1, std::numeric_limits<float>::infinity()}), shape).ok());
}

TEST(RandomK, OptionsOutOfRangeAreRefused) {
  for (const char* text : {"randomk:0", "randomk:1.5", "randomk:0.1,scale=2"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
}

}  // namespace
}  // namespace randomk_test
}  // namespace leeway::compress
