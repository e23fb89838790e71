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
namespace powersgd_test {
namespace {

using testing::Each;

std::shared_ptr<const Codec> PowerSgdOf(const std::string& text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->codec;
}

// The sum of `rank` products of a column and a row.
std::vector<float> LowRankMatrix(std::size_t rows, std::size_t columns, std::size_t rank) {
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < rank; ++k) {
        sum += runtime::NormalAt(1, k, i) * runtime::NormalAt(2, k, j);
      }
      values[i * columns + j] = static_cast<float>(sum);
    }
  }
  return values;
}

double NormOfMatrix(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// Encodes repeatedly with one state, without error feedback.
class PowerSgdSteps {
 public:
  PowerSgdSteps(const std::string& text, const CodecShape& shape)
      : codec_(PowerSgdOf(text)), shape_(shape), state_(codec_->StateElements(shape)) {}

  std::vector<std::byte> Encode(const std::vector<float>& values) {
    std::vector<std::byte> out(codec_->EncodedBytesMax(shape_));
    const auto bytes = codec_->Encode(
        values.data(), {.shape = shape_, .seed = 7 + step_, .step = step_, .state = state_}, out);
    ++step_;
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    out.resize(bytes.value_or(0));
    return out;
  }
  std::vector<float> Decoded(const std::vector<float>& values) {
    std::vector<float> decoded(values.size());
    EXPECT_TRUE(codec_->Decode(Encode(values), shape_, decoded.data()).ok());
    return decoded;
  }
  // The error of the decoded values, as a share of the values.
  double Error(const std::vector<float>& values) {
    std::vector<float> left = Decoded(values);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = values[i] - left[i];
    return NormOfMatrix(left) / NormOfMatrix(values);
  }
  std::vector<float>& state() { return state_; }

 private:
  std::shared_ptr<const Codec> codec_;
  CodecShape shape_;
  std::vector<float> state_;
  std::uint64_t step_ = 0;
};

TEST(PowerSgd, AMatrixOfItsRankArrivesWithinTwoSteps) {
  for (const std::size_t rank : {1, 2, 5}) {
    PowerSgdSteps steps("powersgd:" + std::to_string(rank), {.elements = 40 * 31, .columns = 31});
    const std::vector<float> values = LowRankMatrix(40, 31, rank);
    steps.Decoded(values);
    EXPECT_LT(steps.Error(values), 1e-5) << rank;
  }
}

TEST(PowerSgd, TheErrorFallsToThatOfTheBestApproximation) {
  // A diagonal of 1, 1/2, 1/4, …: the best of rank 2 leaves out all but the first two.
  constexpr std::size_t kSide = 12;
  std::vector<float> values(kSide * kSide);
  double left = 0, all = 0;
  for (std::size_t i = 0; i < kSide; ++i) {
    const double value = std::ldexp(1.0, -static_cast<int>(i));
    values[i * kSide + i] = static_cast<float>(value);
    all += value * value;
    if (i >= 2) left += value * value;
  }
  PowerSgdSteps steps("powersgd:2", {.elements = kSide * kSide, .columns = kSide});
  double before = 1;
  for (int step = 0; step < 6; ++step) {
    const double error = steps.Error(values);
    EXPECT_LT(error, before * (1 + 1e-6)) << step;
    before = error;
  }
  EXPECT_NEAR(before, std::sqrt(left / all), 1e-3);
}

TEST(PowerSgd, AMessageIsTheTwoFactors) {
  // All ones: P is 1/√rows and Q is √rows, whatever Q was before; the last row holds 3 of 5.
  const CodecShape shape = {.elements = 4 * 5 + 3, .columns = 5};
  PowerSgdSteps steps("powersgd:1", shape);
  const std::vector<std::byte> message = steps.Encode(std::vector<float>(23, 1.0f));
  ASSERT_EQ(message.size(), 2 + 4 * 1 * (5 + 5));
  EXPECT_EQ(message[0], std::byte{1});
  EXPECT_EQ(message[1], std::byte{0});
  std::vector<float> factors(10);
  std::memcpy(factors.data(), message.data() + 2, 40);
  double squares = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    squares += static_cast<double>(factors[i]) * static_cast<double>(factors[i]);
  }
  EXPECT_NEAR(squares, 1, 1e-6);
  EXPECT_EQ(factors[0], factors[3]);
  EXPECT_NE(factors[0], factors[4]);
  // Qᵀ = Pᵀ·M: the columns that the last row lacks have one summand less.
  EXPECT_NEAR(factors[5], 4 * factors[0] + factors[4], 1e-6);
  EXPECT_NEAR(factors[9], 4 * factors[0], 1e-6);
  // The state keeps Q, its largest element in [0.5, 1).
  const std::vector<float>& state = steps.state();
  EXPECT_NEAR(state[0] / state[4], factors[5] / factors[9], 1e-6);
  EXPECT_GE(std::abs(state[0]), 0.5f);
  EXPECT_LT(std::abs(state[0]), 1.0f);
}

TEST(PowerSgd, MessagesHaveTheSizeOfTheFactors) {
  const auto size = [](const std::string& text, const CodecShape& shape) {
    const std::size_t max = PowerSgdOf(text)->EncodedBytesMax(shape);
    const std::vector<float> values = LowRankMatrix(1, shape.elements, 1);
    EXPECT_EQ(PowerSgdSteps(text, shape).Encode(values).size(), max);
    return max;
  };
  EXPECT_EQ(size("powersgd", {.elements = 1200, .columns = 30}), 2 + 4 * 2 * (40 + 30));
  EXPECT_EQ(size("powersgd", {.elements = 1199, .columns = 30}), 2 + 4 * 2 * (40 + 30));
  EXPECT_EQ(size("powersgd:7", {.elements = 1200, .columns = 30}), 2 + 4 * 7 * (40 + 30));
  // No rows, or one: 35 × 35 hold 1200, 34 × 34 do not; 34 × 34 and one more element are 34 × 35.
  EXPECT_EQ(size("powersgd", {.elements = 1200, .columns = 0}), 2 + 4 * 2 * (35 + 35));
  EXPECT_EQ(size("powersgd", {.elements = 1200, .columns = 1200}), 2 + 4 * 2 * (35 + 35));
  EXPECT_EQ(size("powersgd", {.elements = 1157, .columns = 0}), 2 + 4 * 2 * (35 + 34));
  // A side of at most twice the rank.
  EXPECT_EQ(size("powersgd:15", {.elements = 1200, .columns = 30}), 2 + 4 * 1200);
  EXPECT_EQ(size("powersgd", {.elements = 1200, .columns = 300}), 2 + 4 * 1200);
  EXPECT_EQ(size("powersgd", {.elements = 0, .columns = 30}), 2);
}

TEST(PowerSgd, AColumnThatWasLostIsDrawnAnew) {
  const CodecShape shape = {.elements = 20 * 20, .columns = 20};
  PowerSgdSteps steps("powersgd:2", shape);
  // Of rank 1, then of rank 2, after zeros.
  steps.Decoded(std::vector<float>(400, 0.0f));
  EXPECT_THAT(steps.state(), Each(0.0f));
  steps.Decoded(LowRankMatrix(20, 20, 1));
  const std::vector<float> values = LowRankMatrix(20, 20, 2);
  steps.Decoded(values);
  EXPECT_LT(steps.Error(values), 1e-5);
}

TEST(PowerSgd, LargeAndSmallValuesKeepTheirShape) {
  for (const float scale : {1e37f, 1e-37f}) {
    PowerSgdSteps steps("powersgd:1", {.elements = 30 * 20, .columns = 20});
    std::vector<float> values = LowRankMatrix(30, 20, 1);
    for (float& value : values) value *= scale;
    EXPECT_LT(steps.Error(values), 1e-5) << scale;
    EXPECT_LT(steps.Error(values), 1e-5) << scale;
  }
}

TEST(PowerSgd, RefusesRowsOfSparseTablesByItsState) {
  const auto codec = PowerSgdOf("powersgd");
  for (const std::uint64_t elements : {0, 10, 1000, 100000}) {
    EXPECT_GT(codec->StateElements({.elements = elements, .columns = 10, .separate_rows = true}),
              0);
  }
}

TEST(PowerSgd, ARefusedMessageLeavesTheStateAsItWas) {
  const CodecShape shape = {.elements = 400, .columns = 20};
  PowerSgdSteps steps("powersgd", shape);
  std::vector<float> values = LowRankMatrix(20, 20, 3);
  steps.Decoded(values);
  std::vector<float> state = steps.state();
  values[399] = std::numeric_limits<float>::infinity();
  const auto codec = PowerSgdOf("powersgd");
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const std::vector<float> before = values;
  const EncodeTerms terms = {.shape = shape, .seed = 1, .step = 1, .state = state};
  EXPECT_FALSE(codec->Encode(values.data(), terms, out).ok());
  EXPECT_FALSE(codec->EncodeAndSubtract(values.data(), terms, out).ok());
  EXPECT_EQ(state, steps.state());
  EXPECT_EQ(values, before);
}

TEST(PowerSgd, WrongMessagesAreRefused) {
  const CodecShape shape = {.elements = 400, .columns = 20};
  const auto codec = PowerSgdOf("powersgd:2");
  const std::vector<std::byte> message =
      PowerSgdSteps("powersgd:2", shape).Encode(LowRankMatrix(20, 20, 3));
  EXPECT_TRUE(codec->Check(message, shape).ok());
  const auto refused = [&](std::size_t at, auto value) {
    std::vector<std::byte> wrong = message;
    std::memcpy(wrong.data() + at, &value, sizeof(value));
    std::vector<float> values(400);
    EXPECT_FALSE(codec->Decode(wrong, shape, values.data()).ok());
    EXPECT_FALSE(codec->DecodeAdd(wrong, shape, 1, values.data()).ok());
    return !codec->Check(wrong, shape).ok();
  };
  EXPECT_TRUE(refused(0, std::uint8_t{1}));
  EXPECT_TRUE(refused(0, std::uint8_t{0}));
  EXPECT_TRUE(refused(0, std::uint8_t{33}));
  EXPECT_TRUE(refused(1, std::uint8_t{1}));
  EXPECT_TRUE(refused(1, std::uint8_t{255}));
  EXPECT_TRUE(refused(2, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(refused(2, -std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(refused(2, 3e38f));
  EXPECT_TRUE(refused(message.size() - 4, std::numeric_limits<float>::infinity()));
  // Values as they are, one not finite.
  std::vector<std::byte> plain(2 + 400 * sizeof(float));
  EXPECT_TRUE(codec->Check(plain, shape).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(plain.data() + plain.size() - sizeof(nan), &nan, sizeof(nan));
  EXPECT_FALSE(codec->Check(plain, shape).ok());
  // A rank that is too high for the matrix.
  std::vector<std::byte> high(2 + 4 * 10 * 40);
  high[0] = std::byte{10};
  EXPECT_FALSE(codec->Check(high, shape).ok());
}

TEST(PowerSgd, TheRankIsAWholeNumberFrom1To32) {
  for (const char* text : {"powersgd:0", "powersgd:33", "powersgd:1.5", "powersgd:rank=2"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
  EXPECT_TRUE(MakeCodec("powersgd:32").ok());
}

}  // namespace
}  // namespace powersgd_test
}  // namespace leeway::compress
