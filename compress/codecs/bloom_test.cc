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
namespace bloom_test {
namespace {

std::vector<float> Normal(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(3, size, i));
  }
  return values;
}

std::vector<std::byte> Encode(const char* text, const std::vector<float>& values,
                              const CodecShape& shape) {
  const auto codec = MakeCodec(text)->codec;
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const auto bytes = codec->Encode(values.data(), {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  out.resize(*bytes);
  return out;
}

std::vector<float> Decode(const std::vector<std::byte>& encoded, const CodecShape& shape) {
  std::vector<float> decoded(shape.elements);
  EXPECT_TRUE(MakeCodec("bloom")->codec->Decode(encoded, shape, decoded.data()).ok());
  return decoded;
}

// 1000 of 100,000 are in the filter. With fpr = 1/1024, b = 10 / ln 2 = 14.427, in 256ths 14.4297.
TEST(Bloom, SendsTheLargestAndWhatTestsPositive) {
  const std::vector<float> values = Normal(100'000);
  const CodecShape shape = {.elements = values.size()};
  const std::vector<std::byte> encoded = Encode("bloom:0.01,fpr=0.0009765625", values, shape);
  const std::vector<float> decoded = Decode(encoded, shape);
  std::vector<float> sorted = values;
  std::ranges::sort(sorted, [](float a, float b) { return std::abs(a) > std::abs(b); });
  std::size_t sent = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (decoded[i] != 0) {
      ++sent;
      EXPECT_EQ(decoded[i], values[i]);
    } else {
      EXPECT_LT(std::abs(values[i]), std::abs(sorted[999]));
    }
  }
  EXPECT_EQ(encoded.size(), 11 + 1 + (14'430 + 7) / 8 + 4 * sent);
  // 97 false positives are expected, give or take 10.
  EXPECT_GT(sent, 1000u + 50);
  EXPECT_LT(sent, 1000u + 150);
}

TEST(Bloom, FalsePositivesAreAsManyAsTheOptionSays) {
  const std::vector<float> values = Normal(200'000);
  const CodecShape shape = {.elements = values.size()};
  for (const auto& [text, rate] : {std::pair("bloom:0.001,fpr=0.5", 0.5),
                                   {"bloom:0.001,fpr=0.1", 0.1},
                                   {"bloom:0.001", 0.01},
                                   {"bloom:0.001,fpr=0.003", 0.003}}) {
    const std::vector<float> decoded = Decode(Encode(text, values, shape), shape);
    const auto sent = std::ranges::count_if(decoded, [](float value) { return value != 0; });
    EXPECT_NEAR(static_cast<double>(sent - 200) / 199'800, rate, 0.25 * rate) << text;
  }
}

// h = 7, b = ceil(256 × 9.585) / 256 = 2454 / 256; a filter of 10 bits.
TEST(Bloom, IsLaidOutAsItsHeaderSays) {
  std::vector<float> values(40);
  values[3] = -8;
  const CodecShape shape = {.elements = 40};
  const std::vector<std::byte> encoded = Encode("bloom", values, shape);
  ByteReader reader(encoded);
  double ratio = 0;
  std::uint16_t bits = 0, filter = 0;
  std::uint8_t hashes = 0, form = 0;
  ASSERT_TRUE(reader.Take(&ratio) && reader.Take(&bits) && reader.Take(&hashes) &&
              reader.Take(&form) && reader.Take(&filter));
  EXPECT_EQ(ratio, 0.01);
  EXPECT_EQ(bits, 2454);
  EXPECT_EQ(hashes, 7);
  EXPECT_EQ(form, 1);
  EXPECT_NE(filter, 0);
  EXPECT_EQ(filter >> 10, 0);
  EXPECT_EQ(reader.left() % 4, 0u);
  EXPECT_EQ(Decode(encoded, shape), values);
  EXPECT_EQ(Encode("bloom:1", values, shape).size(), 11u + 1 + 160);
  EXPECT_EQ(std::to_integer<int>(Encode("bloom:1", values, shape)[11]), 0);
}

// A row's message does not depend on the place of the row.
TEST(Bloom, RowsHaveTheirOwnFilters) {
  constexpr std::size_t kColumns = 64;
  const std::vector<float> row = Normal(kColumns);
  std::vector<float> values = row;
  for (const float value : Normal(kColumns + 1)) {
    if (values.size() < 2 * kColumns) values.push_back(100 * value);
  }
  values.insert(values.end(), row.begin(), row.end());
  const CodecShape shape = {.elements = 3 * kColumns, .columns = kColumns, .separate_rows = true};
  const std::vector<float> decoded = Decode(Encode("bloom:0.05,fpr=0.1", values, shape), shape);
  const CodecShape alone = {.elements = kColumns, .columns = kColumns, .separate_rows = true};
  const std::vector<float> expected = Decode(Encode("bloom:0.05,fpr=0.1", row, alone), alone);
  for (const std::size_t at : {std::size_t{0}, 2 * kColumns}) {
    EXPECT_EQ(std::vector<float>(decoded.begin() + static_cast<std::ptrdiff_t>(at),
                                 decoded.begin() + static_cast<std::ptrdiff_t>(at + kColumns)),
              expected);
  }
}

TEST(Bloom, InconsistentCountsAreRefused) {
  const auto codec = MakeCodec("bloom")->codec;
  std::vector<float> values(40);
  values[3] = -8;
  const CodecShape shape = {.elements = 40};
  const std::vector<std::byte> good = Encode("bloom", values, shape);
  const auto with = [&good](std::size_t at, int value) {
    std::vector<std::byte> bytes = good;
    bytes.at(at) = static_cast<std::byte>(value);
    return bytes;
  };
  ASSERT_TRUE(codec->Check(good, shape).ok());
  EXPECT_FALSE(codec->Check(with(7, 0x40), shape).ok());   // a ratio of 2 and more
  EXPECT_FALSE(codec->Check(with(10, 0), shape).ok());     // no hashes
  EXPECT_FALSE(codec->Check(with(10, 33), shape).ok());    // too many
  EXPECT_FALSE(codec->Check(with(11, 2), shape).ok());     // no form
  EXPECT_FALSE(codec->Check(with(11, 0), shape).ok());     // too few values
  EXPECT_FALSE(codec->Check(with(13, 0x80), shape).ok());  // bit 15 of 10
  EXPECT_FALSE(codec->Check(with(13, 3), shape).ok() && codec->Check(with(12, 0), shape).ok());
  std::vector<std::byte> infinite = good;
  const float bad = std::numeric_limits<float>::infinity();
  std::memcpy(infinite.data() + 14, &bad, sizeof(bad));
  EXPECT_FALSE(codec->Check(infinite, shape).ok());
}

TEST(Bloom, OptionsOutOfRangeAreRefused) {
  for (const char* text : {"bloom:0", "bloom:1.5", "bloom:0.1,fpr=0", "bloom:0.1,fpr=0.6"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
  const std::vector<float> values = Normal(100);
  const CodecShape shape = {.elements = 100};
  const std::vector<float> decoded = Decode(Encode("bloom:0.1,fpr=1e-300", values, shape), shape);
  EXPECT_EQ(std::ranges::count_if(decoded, [](float value) { return value != 0; }), 10);
}

}  // namespace
}  // namespace bloom_test
}  // namespace leeway::compress
