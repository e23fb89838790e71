#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sketch_test {
namespace {

using SketchMessage = std::vector<std::byte>;

constexpr std::size_t kSketchHeaderBytes = 17;

std::shared_ptr<const Codec> SketchOf(const std::string& text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->codec;
}

SketchMessage Sketched(const std::string& text, const std::vector<float>& values, CodecShape shape,
                       std::uint64_t seed = 1) {
  const auto codec = SketchOf(text);
  SketchMessage out(codec->EncodedBytesMax(shape));
  const auto bytes =
      codec->Encode(values.data(), {.shape = shape, .seed = seed, .step = 3, .state = {}}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes.value_or(0), out.size());
  return out;
}

std::vector<float> SketchEstimates(const SketchMessage& message, const CodecShape& shape) {
  std::vector<float> values(shape.elements);
  const absl::Status decoded = SketchOf("sketch")->Decode(message, shape, values.data());
  EXPECT_TRUE(decoded.ok()) << decoded;
  return values;
}

std::vector<float> SketchInput(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(seed, 0, i));
  }
  return values;
}

std::vector<float> SketchCellsIn(const SketchMessage& message, std::size_t at) {
  std::vector<float> floats((message.size() - at) / sizeof(float));
  std::memcpy(floats.data(), message.data() + at, floats.size() * sizeof(float));
  return floats;
}

TEST(Sketch, OneElementStandsOnceInEachRow) {
  const CodecShape shape = {.elements = 100};
  std::vector<float> values(100);
  values[42] = 2.5f;
  const SketchMessage message = Sketched("sketch:rows=3,ratio=0.1", values, shape);
  ASSERT_EQ(message.size(), kSketchHeaderBytes + 1 + 3 * 10 * sizeof(float));
  const std::vector<float> cells = SketchCellsIn(message, kSketchHeaderBytes + 1);
  for (std::size_t row = 0; row < 3; ++row) {
    int filled = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      const float cell = std::abs(cells[row * 10 + i]);
      EXPECT_TRUE(cell == 0 || cell == 2.5f);
      filled += cell != 0 ? 1 : 0;
    }
    EXPECT_EQ(filled, 1) << row;
  }
  EXPECT_EQ(SketchEstimates(message, shape)[42], 2.5f);
}

TEST(Sketch, LargeElementsAreFoundAmongSmallOnes) {
  const CodecShape shape = {.elements = 10000};
  std::vector<float> values = SketchInput(10000, 3);
  for (float& value : values) value *= 0.01f;
  for (std::size_t i = 0; i < 20; ++i) values[i * 487] = i % 2 == 0 ? 100.0f : -70.0f;
  const std::vector<float> found = SketchEstimates(Sketched("sketch", values, shape), shape);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(found[i * 487], values[i * 487], 1) << i;
}

TEST(Sketch, SignsAndPlacesAreBalanced) {
  const CodecShape shape = {.elements = 1 << 16};
  const SketchMessage message =
      Sketched("sketch:rows=1,ratio=0.25", std::vector<float>(1 << 16, 1.0f), shape);
  // Each of 2^14 cells holds the sum of about four signs: of mean 0 and variance 4.
  double sum = 0, squares = 0;
  for (const float cell : SketchCellsIn(message, kSketchHeaderBytes + 1)) {
    sum += static_cast<double>(cell);
    squares += static_cast<double>(cell) * static_cast<double>(cell);
  }
  EXPECT_NEAR(sum / (1 << 14), 0, 4 * 2.0 / (1 << 7));
  EXPECT_NEAR(squares / (1 << 14), 4, 0.25);
}

TEST(Sketch, TablesAddUp) {
  for (const bool separate : {false, true}) {
    const CodecShape shape = {.elements = 1200, .columns = 400, .separate_rows = separate};
    const std::vector<float> a = SketchInput(1200, 1), b = SketchInput(1200, 2);
    std::vector<float> both(1200);
    for (std::size_t i = 0; i < 1200; ++i) both[i] = a[i] + b[i];
    // Workers have seeds of their own; a sketch does not use them.
    SketchMessage sum = Sketched("sketch", a, shape, 11);
    ASSERT_TRUE(SketchOf("sketch")->AddEncoded(Sketched("sketch", b, shape, 12), shape, sum).ok());
    const SketchMessage expected = Sketched("sketch", both, shape, 13);
    ASSERT_EQ(sum.size(), expected.size());
    const std::vector<float> found = SketchEstimates(sum, shape),
                             wanted = SketchEstimates(expected, shape);
    for (std::size_t i = 0; i < 1200; ++i) ASSERT_NEAR(found[i], wanted[i], 1e-4) << i;
  }
}

TEST(Sketch, TablesOfDifferentExponentsAddUp) {
  const CodecShape shape = {.elements = 100};
  const std::vector<float> large(100, 3e38f), small = SketchInput(100, 2);
  const SketchMessage of_large = Sketched("sketch", large, shape);
  EXPECT_EQ(of_large[kSketchHeaderBytes], std::byte{64});
  const SketchMessage of_small = Sketched("sketch", small, shape);
  EXPECT_EQ(of_small[kSketchHeaderBytes], std::byte{0});
  for (const bool large_first : {false, true}) {
    SketchMessage sum = large_first ? of_large : of_small;
    ASSERT_TRUE(SketchOf("sketch")->AddEncoded(large_first ? of_small : of_large, shape, sum).ok());
    EXPECT_EQ(sum[kSketchHeaderBytes], std::byte{64});
    EXPECT_THAT(SketchCellsIn(sum, kSketchHeaderBytes + 1),
                testing::Pointwise(testing::FloatNear(1e-15f),
                                   SketchCellsIn(of_large, kSketchHeaderBytes + 1)));
  }
  // Two whose sum overflows.
  std::vector<float> one(100);
  one[7] = 3e38f;
  SketchMessage sum = Sketched("sketch", one, shape);
  EXPECT_EQ(sum[kSketchHeaderBytes], std::byte{0});
  ASSERT_TRUE(SketchOf("sketch")->AddEncoded(SketchMessage(sum), shape, sum).ok());
  EXPECT_EQ(sum[kSketchHeaderBytes], std::byte{64});
  EXPECT_EQ(SketchEstimates(sum, shape)[7], std::numeric_limits<float>::max());
}

TEST(Sketch, OnlyTablesOfOneKindAddUp) {
  const CodecShape shape = {.elements = 1000};
  const std::vector<float> values = SketchInput(1000, 1);
  const SketchMessage message = Sketched("sketch:rows=3,ratio=0.05", values, shape);
  const auto refused = [&](const SketchMessage& other) {
    SketchMessage sum = message;
    EXPECT_FALSE(SketchOf("sketch")->AddEncoded(other, shape, sum).ok());
    SketchMessage theirs = other;
    EXPECT_FALSE(SketchOf("sketch")->AddEncoded(message, shape, theirs).ok());
    return sum == message && theirs == other;
  };
  EXPECT_TRUE(refused(Sketched("sketch:rows=1,ratio=0.15", values, shape)));
  EXPECT_TRUE(refused(Sketched("sketch:rows=5,ratio=0.03", values, shape)));
  // As many columns, from another ratio.
  EXPECT_TRUE(refused(Sketched("sketch:rows=3,ratio=0.0499", values, shape)));
  SketchMessage other_seed = message;
  other_seed[9] ^= std::byte{1};
  EXPECT_TRUE(refused(other_seed));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(SketchMessage(message.begin(), message.end() - 1)));
  // Plain values whose sum overflows.
  const std::vector<float> huge(1000, 3e38f);
  const SketchMessage plain = Sketched("sketch:rows=5,ratio=1", huge, shape);
  SketchMessage sum = plain;
  EXPECT_FALSE(SketchOf("sketch")->AddEncoded(plain, shape, sum).ok());
  EXPECT_EQ(sum, plain);
}

TEST(Sketch, SmallTablesOnly) {
  const auto bytes = [](const std::string& text, const CodecShape& shape) {
    return SketchOf(text)->EncodedBytesMax(shape);
  };
  EXPECT_EQ(bytes("sketch", {.elements = 0}), kSketchHeaderBytes);
  EXPECT_EQ(bytes("sketch", {.elements = 1000}), kSketchHeaderBytes + 1 + 5 * 100 * 4);
  EXPECT_EQ(bytes("sketch", {.elements = 1001}), kSketchHeaderBytes + 1 + 5 * 101 * 4);
  EXPECT_EQ(bytes("sketch:ratio=0.199", {.elements = 1000}), kSketchHeaderBytes + 1 + 5 * 199 * 4);
  // Five rows of a fifth of the columns: no less than the values.
  EXPECT_EQ(bytes("sketch:ratio=0.2", {.elements = 1000}), kSketchHeaderBytes + 1000 * 4);
  EXPECT_EQ(bytes("sketch", {.elements = 5}), kSketchHeaderBytes + 5 * 4);
  EXPECT_EQ(bytes("sketch", {.elements = 60, .columns = 20, .separate_rows = true}),
            kSketchHeaderBytes + 3 * (1 + 5 * 2 * 4));
  // The last row is short, and sent as values.
  EXPECT_EQ(bytes("sketch", {.elements = 63, .columns = 20, .separate_rows = true}),
            kSketchHeaderBytes + 3 * (1 + 5 * 2 * 4) + 3 * 4);
}

TEST(Sketch, SmallArraysArriveAsTheyAre) {
  const CodecShape shape = {.elements = 5};
  const std::vector<float> values = SketchInput(5, 1);
  EXPECT_EQ(SketchEstimates(Sketched("sketch", values, shape), shape), values);
}

TEST(Sketch, RowsAreSketchedAlikeWhereverTheyStand) {
  const std::vector<float> row = SketchInput(40, 1);
  const CodecShape one = {.elements = 40, .columns = 40, .separate_rows = true};
  const CodecShape two = {.elements = 80, .columns = 40, .separate_rows = true};
  std::vector<float> rows(80);
  std::ranges::copy(row, rows.begin() + 40);
  const SketchMessage alone = Sketched("sketch", row, one), second = Sketched("sketch", rows, two);
  const std::size_t bytes = alone.size() - kSketchHeaderBytes;
  EXPECT_TRUE(std::equal(alone.begin() + kSketchHeaderBytes, alone.end(),
                         second.end() - static_cast<std::ptrdiff_t>(bytes)));
}

TEST(Sketch, WrongMessagesAreRefused) {
  const CodecShape shape = {.elements = 1000};
  const auto codec = SketchOf("sketch");
  const SketchMessage message = Sketched("sketch", SketchInput(1000, 1), shape);
  const auto refused = [&](std::size_t at, auto value) {
    SketchMessage wrong = message;
    std::memcpy(wrong.data() + at, &value, sizeof(value));
    std::vector<float> values(1000);
    EXPECT_FALSE(codec->Decode(wrong, shape, values.data()).ok());
    EXPECT_FALSE(codec->DecodeAdd(wrong, shape, 1, values.data()).ok());
    return !codec->Check(wrong, shape).ok();
  };
  EXPECT_TRUE(refused(0, std::uint8_t{0}));
  EXPECT_TRUE(refused(0, std::uint8_t{4}));
  EXPECT_TRUE(refused(0, std::uint8_t{11}));
  EXPECT_TRUE(refused(1, 0.0));
  EXPECT_TRUE(refused(1, -0.1));
  EXPECT_TRUE(refused(1, 0.2));
  EXPECT_TRUE(refused(1, 1.1));
  EXPECT_TRUE(refused(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(refused(kSketchHeaderBytes, std::uint8_t{1}));
  EXPECT_TRUE(refused(kSketchHeaderBytes + 1, std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(refused(message.size() - 4, std::numeric_limits<float>::quiet_NaN()));
  const CodecShape small = {.elements = 3};
  SketchMessage plain = Sketched("sketch", {1, 2, 3}, small);
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(plain.data() + kSketchHeaderBytes, &infinity, sizeof(infinity));
  EXPECT_FALSE(codec->Check(plain, small).ok());
}

TEST(Sketch, OptionsHaveRanges) {
  for (const char* text : {"sketch:rows=0", "sketch:rows=2", "sketch:rows=11", "sketch:rows=1.5",
                           "sketch:ratio=0", "sketch:ratio=1.01", "sketch:0.1"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
  EXPECT_TRUE(MakeCodec("sketch:rows=9,ratio=1").ok());
}

}  // namespace
}  // namespace sketch_test
}  // namespace leeway::compress
