// Error feedback on servers, and sums of encoded pushes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "compress/table_codec.h"
#include "ps/store/testing/store_test_util.h"

namespace leeway::ps::feedback_test {
namespace {

constexpr std::uint64_t kElements = 64;

TableSpec Gradients(const std::string& codec, std::vector<std::string> codecs = {}) {
  TableSpec spec = WithUpdater(TableSpec::Dense("g", {kElements}), "gradient");
  spec.codec = codec;
  spec.codecs = std::move(codecs);
  return spec;
}

std::vector<float> Ramp(float scale = 1) {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    values[i] = scale * (static_cast<float>(i % 7) - 2.5f);
  }
  return values;
}

std::vector<float> Decoded(const TableSpec& spec, const PullResult& pulled) {
  std::vector<float> values(kElements);
  if (!pulled.coded) return ValuesOf<float>(pulled.payload[0]);
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  const compress::TableCodec& codec = *codecs.Find(pulled.parts.at(0).codec);
  EXPECT_TRUE(
      codec.codec
          ->Decode(pulled.payload[0].bytes(), BlockShape(spec, codec, kElements), values.data())
          .ok());
  return values;
}

// One clock of a gradient table: what is pushed, and what a worker pulls.
std::vector<float> Exchange(const Shard& shard, const TableSpec& spec,
                            const std::vector<float>& values, const std::string& codec,
                            std::uint32_t choice = 0, double rate = 0.1) {
  const PushView push = DensePush<float>(0, values, rate);
  EXPECT_TRUE(shard->ApplyCombined({&push, 1}, 1).ok());
  EXPECT_TRUE(shard->MakeVersion(0, 1, rate, {.codec = compress::IdOf(codec)}).ok());
  const auto pulled =
      shard->Pull({.block = 0, .elements = kElements, .keys = {}, .codec = {.choice = choice}});
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  return Decoded(spec, *pulled);
}

// A codec without feedback would lose some of it for good.
TEST(GradientFeedback, AnotherLossyCodecWithoutFeedbackSendsAllThatWasHeldBack) {
  const TableSpec spec = Gradients("onebit", {"onebit", "sketch"});
  ASSERT_FALSE(compress::TableCodecsOf(spec)->choices[1].server_feedback);
  const Shard shard(spec);
  std::vector<float> sent = Exchange(shard, spec, Ramp(), "onebit");
  EXPECT_NE(sent, Ramp());
  EXPECT_GT(shard->stats().feedback_squares, 0);
  const std::vector<float> zeros(kElements);
  const std::vector<float> rest = Exchange(shard, spec, zeros, "sketch", 1);
  for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(sent[i] + rest[i], Ramp()[i], 1e-5) << i;
  EXPECT_EQ(shard->stats().feedback_squares, 0);
  // From then on it loses what it loses.
  EXPECT_NE(Exchange(shard, spec, Ramp(), "sketch", 1), Ramp());
}

TEST(GradientFeedback, StaysAtALearningRateOfZeroWhateverTheCodec) {
  const TableSpec spec = Gradients("onebit", {"onebit", "sketch", "zstd"});
  const Shard shard(spec);
  Exchange(shard, spec, Ramp(), "onebit");
  const double held_back = shard->stats().feedback_squares;
  Exchange(shard, spec, Ramp(), "onebit", 0, 0);
  Exchange(shard, spec, Ramp(), "sketch", 1, 0);
  Exchange(shard, spec, Ramp(), "zstd", 2, 0);
  EXPECT_EQ(shard->stats().feedback_squares, held_back);
}

// At a rate so small that the residual divided by it is no number, the residual waits for another
// rate.
TEST(GradientFeedback, StaysAtTinyLearningRatesWhateverTheCodec) {
  for (const double rate : {1e-39, 1e-45, 1e-300}) {
    SCOPED_TRACE(rate);
    const TableSpec spec = Gradients("onebit", {"onebit", "sketch", "zstd"});
    const Shard shard(spec);
    const std::vector<float> sent = Exchange(shard, spec, Ramp(), "onebit");
    const double held_back = shard->stats().feedback_squares;
    ASSERT_GT(held_back, 0);
    const std::string codecs[] = {"onebit", "sketch", "zstd"};
    for (std::uint32_t choice = 0; choice < 3; ++choice) {
      const std::vector<float> got = Exchange(shard, spec, Ramp(), codecs[choice], choice, rate);
      for (const float value : got) EXPECT_TRUE(std::isfinite(value)) << codecs[choice];
      EXPECT_NEAR(shard->stats().feedback_squares, held_back, 1e-6 * held_back) << codecs[choice];
    }
    const std::vector<float> zeros(kElements);
    const std::vector<float> rest = Exchange(shard, spec, zeros, "zstd", 2);
    for (std::size_t i = 0; i < kElements; ++i) {
      EXPECT_NEAR(sent[i] + rest[i], Ramp()[i], 1e-5) << i;
    }
  }
}

// What float16 does not hold is sent later.
TEST(GradientFeedback, NothingOverflowsSixteenBits) {
  TableSpec spec = Gradients("onebit", {"onebit", "none"});
  spec.dtype = DType::kFloat16;
  const compress::TableCodec onebit = compress::TableCodecsOf(spec)->choices[0];
  const Shard shard(spec);
  // What workers get of element 0 when all have pushed that, and the others half of it.
  const auto exchange = [&](std::uint32_t choice, float value) {
    std::vector<Float16> values(kElements, Float16(value / 2));
    values[0] = Float16(value);
    const PushView push = DensePush<Float16>(0, values, 0.1);
    EXPECT_TRUE(shard->ApplyCombined({&push, 1}, 1).ok());
    const compress::CodecId codec = choice == 0 ? onebit.id : compress::kNoCodec;
    EXPECT_TRUE(shard->MakeVersion(0, 1, 0.1, {.codec = codec}).ok());
    const auto pulled =
        shard->Pull({.block = 0, .elements = kElements, .keys = {}, .codec = {.choice = choice}});
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    float got = 0;
    if (pulled->coded) {
      std::vector<float> decoded(kElements);
      EXPECT_TRUE(onebit.codec
                      ->Decode(pulled->payload[0].bytes(), BlockShape(spec, onebit, kElements),
                               decoded.data())
                      .ok());
      got = static_cast<float>(Float16(decoded[0]));  // as a worker stores it
    } else {
      got = static_cast<float>(ValuesOf<Float16>(pulled->payload[0])[0]);
    }
    EXPECT_TRUE(std::isfinite(got));
    return static_cast<double>(got);
  };
  double sent = exchange(0, 60000);
  EXPECT_LT(sent, 40000);
  sent += exchange(1, 60000);
  EXPECT_GT(shard->stats().feedback_squares, 0);
  sent += exchange(1, 0);
  EXPECT_NEAR(sent, 120000, 100);
  for (int i = 0; i < 3; ++i) sent += exchange(1, 0);
  EXPECT_NEAR(sent, 120000, 1);
  EXPECT_EQ(shard->stats().feedback_squares, 0);
}

TEST(ServerFeedback, ResidualsAreKnownAfterALoad) {
  for (const bool gradient : {true, false}) {
    TableSpec spec = Gradients("onebit");
    if (!gradient) spec.updater = {"add", {}};
    const Shard from(spec), to(spec);
    ASSERT_TRUE(from->Apply(DensePush<float>(0, Ramp(), 0.1)).ok());
    ASSERT_TRUE(from->MakeVersion(0, 1, 0.1, {.codec = compress::IdOf("onebit")}).ok());
    const double held_back = from->stats().feedback_squares;
    ASSERT_GT(held_back, 0);
    for (const FrozenPiece& piece : from->FreezeSince(0).pieces) {
      ASSERT_TRUE(to->Load(piece).ok());
    }
    EXPECT_NEAR(to->stats().feedback_squares, held_back, 1e-6 * held_back) << gradient;
  }
}

PushView Encoded(const TableSpec& spec, const std::vector<float>& values) {
  const compress::TableCodec codec = *compress::TableCodecOf(spec);
  const CodecShape shape = BlockShape(spec, codec, values.size());
  std::vector<std::byte> message(codec.codec->EncodedBytesMax(shape));
  message.resize(*codec.codec->Encode(values.data(), {.shape = shape}, message));
  return {.block = 0, .values = BufferOf(message), .codec = codec.id};
}

// A large element that several workers have in common stands out of the sum of their sketches.
TEST(EncodedSums, SketchesAreAddedUpAndDecodedOnce) {
  constexpr std::uint64_t kMany = 4000;
  TableSpec spec = WithUpdater(TableSpec::Dense("w", {kMany}), "add");
  spec.codec = "sketch:rows=3,ratio=0.02";
  const Shard shard(spec);
  std::vector<std::vector<float>> gradients(3, std::vector<float>(kMany));
  std::vector<float> both(kMany);
  for (std::size_t worker = 0; worker < 2; ++worker) {
    for (std::size_t i = 0; i < kMany; ++i) {
      gradients[worker][i] = static_cast<float>((i * 37 + worker * 11) % 101) - 50;
      both[i] += gradients[worker][i];
    }
  }
  const std::vector<float> plain(kMany, 2);
  const PushView pushes[] = {Encoded(spec, gradients[0]), DensePush<float>(0, plain),
                             Encoded(spec, gradients[1])};
  const auto sum = shard->Combine(pushes, 3);
  ASSERT_TRUE(sum.ok()) << sum.status();
  const auto expected = shard->Combine(std::vector<PushView>{Encoded(spec, both)}, 1);
  const auto of_one = shard->Combine(std::vector<PushView>{pushes[0]}, 1);
  const auto of_other = shard->Combine(std::vector<PushView>{pushes[2]}, 1);
  const std::vector<float> got = ValuesOf<float>(sum->values),
                           wanted = ValuesOf<float>(expected->values),
                           one = ValuesOf<float>(of_one->values),
                           other = ValuesOf<float>(of_other->values);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_NEAR(got[i], wanted[i] + 2, 1e-2) << i;
    differ += std::abs(one[i] + other[i] - wanted[i]) > 1 ? 1 : 0;
  }
  EXPECT_GT(differ, kMany / 4);  // decoded each by itself they give something else
}

}  // namespace
}  // namespace leeway::ps::feedback_test
