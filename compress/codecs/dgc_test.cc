#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace dgc_test {
namespace {

using testing::ElementsAre;

// An encoder with its state and steps.
class StatefulEncoder {
 public:
  StatefulEncoder(const char* text, std::size_t elements)
      : codec_(MakeCodec(text)->codec),
        shape_{.elements = elements},
        state_(codec_->StateElements(shape_)) {}

  // Encodes the gradient, and returns the decoded values.
  std::vector<float> Send(std::vector<float> gradient) {
    std::vector<std::byte> out(codec_->EncodedBytesMax(shape_));
    const auto bytes = codec_->EncodeAndSubtract(
        gradient.data(), {.shape = shape_, .step = step_++, .state = state_}, out);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_THAT(gradient, testing::Each(0.0f));
    std::vector<float> decoded(gradient.size());
    EXPECT_TRUE(codec_->Decode(std::span(out).first(*bytes), shape_, decoded.data()).ok());
    return decoded;
  }
  std::vector<float> velocity() const {
    return {state_.begin(), state_.begin() + static_cast<std::ptrdiff_t>(shape_.elements)};
  }
  std::vector<float> sum() const {
    return {state_.begin() + static_cast<std::ptrdiff_t>(shape_.elements), state_.end()};
  }

 private:
  std::shared_ptr<const Codec> codec_;
  CodecShape shape_;
  std::vector<float> state_;
  std::uint64_t step_ = 0;
};

std::vector<float> Normal(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(seed, size, i));
  }
  return values;
}

// Algorithm 4 by hand, with momentum 1/2 and one of three sent.
TEST(Dgc, CorrectsMomentumAndMasksIt) {
  StatefulEncoder encoder("dgc:0.3,momentum=0.5", 3);
  EXPECT_THAT(encoder.Send({4, 2, -1}), ElementsAre(4, 0, 0));
  EXPECT_THAT(encoder.velocity(), ElementsAre(0, 2, -1));
  EXPECT_THAT(encoder.sum(), ElementsAre(0, 2, -1));
  // u = 1, 2, −2.5; v = 1, 4, −3.5.
  EXPECT_THAT(encoder.Send({1, 1, -2}), ElementsAre(0, 4, 0));
  EXPECT_THAT(encoder.velocity(), ElementsAre(1, 0, -2.5f));
  EXPECT_THAT(encoder.sum(), ElementsAre(1, 0, -3.5f));
  // u = 0.5, 0, −1.25; v = 1.5, 0, −4.75.
  EXPECT_THAT(encoder.Send({0, 0, 0}), ElementsAre(0, 0, -4.75f));
  EXPECT_THAT(encoder.velocity(), ElementsAre(0.5f, 0, 0));
  EXPECT_THAT(encoder.sum(), ElementsAre(1.5f, 0, 0));
}

TEST(Dgc, WithoutMomentumNothingIsLost) {
  constexpr std::size_t kSize = 1000;
  StatefulEncoder encoder("dgc:0.02,momentum=0,warmup=20", kSize);
  std::vector<double> given(kSize), sent(kSize);
  for (std::uint64_t step = 0; step < 60; ++step) {
    const std::vector<float> gradient = Normal(kSize, step), decoded = encoder.Send(gradient);
    const std::vector<float> sum = encoder.sum();
    for (std::size_t i = 0; i < kSize; ++i) {
      given[i] += static_cast<double>(gradient[i]);
      sent[i] += static_cast<double>(decoded[i]);
      ASSERT_NEAR(sent[i] + static_cast<double>(sum[i]), given[i], 2e-5) << step << ' ' << i;
    }
  }
}

// A gradient that was sent whole leaves nothing to the next message, its momentum neither.
TEST(Dgc, SendingAllMasksAll) {
  StatefulEncoder encoder("dgc:1", 100);
  for (std::uint64_t step = 0; step < 5; ++step) {
    const std::vector<float> gradient = Normal(100, step);
    EXPECT_EQ(encoder.Send(gradient), gradient);
  }
}

TEST(Dgc, ClipsTheNormOfTheGradient) {
  StatefulEncoder encoder("dgc:1,momentum=0,clip=2.5", 2);
  EXPECT_THAT(encoder.Send({3, -4}), ElementsAre(1.5f, -2));
  EXPECT_THAT(encoder.Send({1.5f, 2}), ElementsAre(1.5f, 2));  // its norm is 2.5
  const std::vector<float> large = encoder.Send({3e30f, -4e30f});
  EXPECT_FLOAT_EQ(large[0], 1.5f);
  EXPECT_FLOAT_EQ(large[1], -2);
}

// From 0.25 to 0.01 in four messages: a factor of 25^(-1/4) each time, so 250, 111.8, 50, 22.4.
TEST(Dgc, WarmsUp) {
  StatefulEncoder encoder("dgc:0.01,momentum=0,warmup=4", 1000);
  std::vector<std::ptrdiff_t> sent;
  for (std::uint64_t step = 0; step < 6; ++step) {
    const std::vector<float> decoded = encoder.Send(Normal(1000, step));
    sent.push_back(std::ranges::count_if(decoded, [](float value) { return value != 0; }));
  }
  EXPECT_THAT(sent, ElementsAre(250, 112, 50, 23, 10, 10));
  StatefulEncoder wide("dgc:0.5,momentum=0,warmup=4", 1000);
  const std::vector<float> decoded = wide.Send(Normal(1000, 1));
  EXPECT_EQ(std::ranges::count_if(decoded, [](float value) { return value != 0; }), 500);
}

TEST(Dgc, StaysFiniteAtTheEndOfTheNumbers) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  StatefulEncoder encoder("dgc:0.5,momentum=0.9", 2);
  for (int step = 0; step < 5; ++step) {
    for (const float value : encoder.Send({kLargest, -kLargest})) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Dgc, ARefusalLeavesTheStateAsItIs) {
  const auto codec = MakeCodec("dgc:0.5")->codec;
  const CodecShape shape = {.elements = 2};
  std::vector<float> gradient = {1, std::numeric_limits<float>::infinity()}, state = {1, 2, 3, 4};
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  EXPECT_FALSE(
      codec->EncodeAndSubtract(gradient.data(), {.shape = shape, .state = state}, out).ok());
  EXPECT_THAT(state, ElementsAre(1, 2, 3, 4));
  gradient[1] = 5;
  EXPECT_FALSE(codec->Encode(gradient.data(), {.shape = shape}, out).ok());  // no state
  EXPECT_FALSE(
      codec
          ->Encode(gradient.data(),
                   {.shape = {.elements = 2, .columns = 1, .separate_rows = true}, .state = state},
                   out)
          .ok());
  EXPECT_THAT(state, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(codec->Encode(gradient.data(), {.shape = shape, .state = state}, out).ok());
}

TEST(Dgc, OptionsOutOfRangeAreRefused) {
  for (const char* text : {"dgc:0", "dgc:2", "dgc:0.1,momentum=1", "dgc:0.1,momentum=-0.1",
                           "dgc:0.1,clip=-1", "dgc:0.1,warmup=0.5", "dgc:0.1,values=fp16"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
  EXPECT_TRUE(MakeCodec("dgc:0.001,momentum=0.999,clip=0.5,warmup=1000").ok());
}

}  // namespace
}  // namespace dgc_test
}  // namespace leeway::compress
