// Tests of momentum in a worker's pushes, and of the limits of residuals; error feedback itself is
// tested by tests/compression/identity_test.cc.
#include "worker/encoding/push_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compress/table_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"
#include "worker/testing/push_encoder_testing.h"

namespace leeway::worker {
namespace push_encoder_test {
namespace {

using testing::Each;

constexpr std::uint64_t kElements = 64;

TableSpec SpecOf(const std::string& codec) { return SgdTable(codec, kElements); }

// A table of one block, and its encoder.
class Pusher {
 public:
  explicit Pusher(TableSpec spec)
      : spec_(std::move(spec)),
        codecs_(*compress::TableCodecsOf(spec_)),
        encoder_(spec_, &codecs_, kTestContext) {}

  EncodedValues Push(const std::vector<float>& gradient, std::uint32_t choice = 0,
                     double rate = 0.1) {
    return encoder_.EncodeBlock(choice, 0, reinterpret_cast<const std::byte*>(gradient.data()),
                                gradient.size(), rate);
  }
  EncodedValues Push(float all, std::uint32_t choice = 0, double rate = 0.1) {
    return Push(std::vector<float>(kElements, all), choice, rate);
  }
  // The values that a server decodes; empty where they are sent unchanged.
  std::vector<float> Received(const EncodedValues& pushed) const {
    return ReceivedOf(pushed, spec_, codecs_, kElements);
  }

 private:
  const TableSpec spec_;
  const compress::TableCodecs codecs_;
  PushEncoder encoder_;
};

TEST(PushEncoderTest, ValuesThatATableBeginsWithLeaveAsTheyAre) {
  TableSpec spec = SpecOf("onebit");
  spec.initializer = Initializer::Pushed();
  Pusher pusher(spec);
  EXPECT_TRUE(pusher.Push(4).bytes.empty());
  EXPECT_THAT(pusher.Received(pusher.Push(1)), Each(1));
}

// onebit drops nothing of elements that are all equal.
TEST(PushMomentum, IsInTheMessage) {
  Pusher plain(SpecOf("onebit,momentum=0.5"));
  EXPECT_THAT(plain.Received(plain.Push(4)), Each(4));
  EXPECT_THAT(plain.Received(plain.Push(1)), Each(3));
  EXPECT_THAT(plain.Received(plain.Push(0)), Each(1.5));
  Pusher nesterov(SpecOf("onebit,momentum=0.5,nesterov=1"));
  EXPECT_THAT(nesterov.Received(nesterov.Push(4)), Each(6));
  EXPECT_THAT(nesterov.Received(nesterov.Push(1)), Each(2.5));
}

TEST(PushMomentum, WorksWithoutErrorFeedback) {
  TableSpec spec = SpecOf("onebit,momentum=0.5");
  spec.error_feedback = ErrorFeedback::kOff;
  Pusher pusher(spec);
  EXPECT_THAT(pusher.Received(pusher.Push(4)), Each(4));
  EXPECT_THAT(pusher.Received(pusher.Push(1)), Each(3));
}

TEST(PushMomentum, IsUpdatedAtALearningRateOfZero) {
  Pusher pusher(SpecOf("onebit,momentum=0.5"));
  pusher.Push(4);
  pusher.Push(2, 0, /*rate=*/0);
  EXPECT_THAT(pusher.Received(pusher.Push(0)), Each(2));
}

TEST(PushMomentum, TakesNoNonFiniteValues) {
  for (const auto feedback : {ErrorFeedback::kWorker, ErrorFeedback::kOff}) {
    TableSpec spec = SpecOf("onebit,momentum=0.5");
    spec.error_feedback = feedback;
    Pusher pusher(spec);
    pusher.Push(4);
    for (const float wrong :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> gradient(kElements, 1);
      gradient[7] = wrong;
      EXPECT_TRUE(pusher.Push(gradient).bytes.empty());  // as it is
    }
    EXPECT_THAT(pusher.Received(pusher.Push(1)), Each(3));
  }
}

TEST(PushMomentum, IsSentUnencodedIfTheCodecSavesNothing) {
  for (const auto feedback : {ErrorFeedback::kWorker, ErrorFeedback::kOff}) {
    TableSpec spec = SpecOf("topk:1,momentum=0.5");  // indices take more bytes than they save
    spec.error_feedback = feedback;
    Pusher pusher(spec);
    pusher.Push(4);
    const EncodedValues pushed = pusher.Push(1);
    EXPECT_EQ(pushed.codec, compress::kNoCodec);
    EXPECT_THAT(pusher.Received(pushed), Each(3));
  }
}

TEST(PushMomentum, StartsAgainWithAnotherCodec) {
  for (const std::string other : {"none", "zstd", "topk:0.5,momentum=0.5"}) {
    TableSpec spec = SpecOf("onebit,momentum=0.5");
    spec.codecs = {other};
    Pusher pusher(spec);
    pusher.Push(4);
    pusher.Push(std::vector<float>(kElements), /*choice=*/1);
    pusher.Push(std::vector<float>(kElements), /*choice=*/1);
    EXPECT_THAT(pusher.Received(pusher.Push(1)), Each(1)) << other;
  }
}

TEST(PushMomentum, Of16BitTablesIsKeptInFloat) {
  TableSpec spec = SpecOf("onebit,momentum=0.5");
  spec.dtype = DType::kFloat16;
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  PushEncoder encoder(spec, &codecs, kTestContext);
  const std::vector<std::uint16_t> ones(kElements, 0x3c00);
  const auto push = [&] {
    const EncodedValues pushed =
        encoder.EncodeBlock(0, 0, reinterpret_cast<const std::byte*>(ones.data()), kElements, 0.1);
    std::vector<float> values(kElements);
    const auto shape = compress::BlockShape(spec, codecs.choices[0], kElements);
    EXPECT_TRUE(codecs.choices[0].codec->Decode(pushed.bytes.bytes(), shape, values.data()).ok());
    return values;
  };
  EXPECT_THAT(push(), Each(1));
  EXPECT_THAT(push(), Each(1.5));
}

TableSpec RowsOf(const std::string& codec, std::uint64_t width) {
  TableSpec spec = TableSpec::Sparse("s", width, DType::kFloat32);
  spec.updater = {"sgd", {{"learning_rate", 0.1}}};
  spec.codec = codec;
  return spec;
}

// A codec that postpones the subtraction makes the same messages and residuals as one that does
// not: at changing rates, with unencoded messages in between, and whenever the residuals are read.
TEST(PushResiduals, OfOnePassEqualThoseOfTwo) {
  constexpr std::uint64_t kMany = 3 * 4096 + 5;
  for (const std::string text : {"onebit", "onebit:group=64", "onebit:group=8192"}) {
    SCOPED_TRACE(text);
    TableSpec spec = SpecOf(text);
    spec.shape = {kMany};
    const auto codecs = *compress::TableCodecsOf(spec);
    const compress::TableCodec& codec = codecs.choices[0];
    ASSERT_NE(codec.one_pass, nullptr);
    PushEncoder encoder(spec, &codecs, kTestContext);
    std::vector<float> residual(kMany, 0.0f), gradient(kMany);
    EncodeTerms terms{.shape = compress::BlockShape(spec, codec, kMany)};
    std::vector<std::byte> expected(codec.codec->EncodedBytesMax(terms.shape));
    double rate_before = 1;
    for (int step = 0; step < 12; ++step) {
      SCOPED_TRACE(step);
      for (std::uint64_t i = 0; i < kMany; ++i) {
        gradient[i] = static_cast<float>(runtime::NormalAt(7, static_cast<std::uint64_t>(step), i));
      }
      if (step == 5) gradient[4097] = std::numeric_limits<float>::quiet_NaN();
      const double rate = 0.1 / (1 + step % 3);
      const EncodedValues pushed = encoder.EncodeBlock(
          0, 0, reinterpret_cast<const std::byte*>(gradient.data()), kMany, rate);
      if (step == 5) {
        EXPECT_TRUE(pushed.bytes.empty());
        continue;
      }
      for (std::uint64_t i = 0; i < kMany; ++i) {
        const float kept = static_cast<float>(rate_before / rate) * residual[i];
        residual[i] = gradient[i] + kept;
      }
      rate_before = rate;
      const auto bytes = codec.codec->EncodeAndSubtract(residual.data(), terms, expected);
      ASSERT_TRUE(bytes.ok());
      ASSERT_EQ(pushed.bytes.size(), *bytes);
      EXPECT_EQ(std::memcmp(pushed.bytes.data(), expected.data(), *bytes), 0);
      if (step % 4 == 3) {
        EXPECT_EQ(encoder.Save().blocks[0].residual, residual);
      }
    }
    EXPECT_EQ(encoder.Save().blocks[0].residual, residual);
  }
}

// A codec that keeps its residual in its own state loses none of it to a push at a rate of 0.
TEST(PushResiduals, OfDgcDoNotChangeAtARateOfZero) {
  Pusher pauses(SpecOf("dgc:0.1")), goes_on(SpecOf("dgc:0.1"));
  std::vector<float> gradient(kElements);
  for (std::size_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>(i + 1);
  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(pauses.Push(gradient, 0, 0).bytes.empty());
    EXPECT_EQ(pauses.Received(pauses.Push(gradient)), goes_on.Received(goes_on.Push(gradient)));
  }
}

// Each row is pushed once: the residuals stay within their limit, and no message has more flushed
// rows than pushed ones.
TEST(PushResiduals, OfManyRowsStayWithinTheirLimit) {
  constexpr std::uint64_t kWidth = 64, kRows = 100;
  const TableSpec spec = RowsOf("onebit", kWidth);
  const auto codecs = *compress::TableCodecsOf(spec);
  PushEncoder encoder(
      spec, &codecs,
      {.table = 1, .block_bytes = 1 << 20, .residual_bytes_max = 50 * kWidth * sizeof(float)});
  std::size_t flushed = 0;
  for (std::uint64_t push = 0; push < 50; ++push) {
    std::vector<std::uint64_t> keys(kRows);
    std::vector<float> rows(kRows * kWidth);
    for (std::uint64_t i = 0; i < kRows; ++i) keys[i] = push * kRows + i;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 7) - 3;
    const EncodedRows encoded =
        encoder.EncodeRows(0, 0, keys, reinterpret_cast<std::byte*>(rows.data()), {});
    ASSERT_FALSE(encoded.values.bytes.empty());
    EXPECT_LE(encoded.flushed.size(), kRows);
    flushed += encoded.flushed.size();
    EXPECT_LE(encoder.Save().keys.size(), 2 * kRows);
  }
  EXPECT_GE(flushed, 48 * kRows);
}

// At a rate so small that the residual divided by it overflows, the residual waits for another
// rate.
TEST(PushResiduals, OfRowsAreNotSentAtTinyRates) {
  constexpr std::uint64_t kWidth = 64;
  const TableSpec spec = RowsOf("onebit", kWidth);
  const auto codecs = *compress::TableCodecsOf(spec);
  PushEncoder encoder(spec, &codecs, kTestContext);
  const std::vector<std::uint64_t> keys = {3, 5};
  const auto push = [&](double rate) {
    std::vector<float> rows(2 * kWidth);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 7) - 3;
    const EncodedRows encoded =
        encoder.EncodeRows(0, 0, keys, reinterpret_cast<std::byte*>(rows.data()), rate);
    EXPECT_FALSE(encoded.values.bytes.empty());
    for (const float value : rows) EXPECT_TRUE(std::isfinite(value));
    return encoder.Save().rows;
  };
  const std::vector<float> kept = push(1);
  EXPECT_GT(*std::max_element(kept.begin(), kept.end()), 0.1f);
  for (const double rate : {1e-39, 1e-45, 1e-300}) {
    const std::vector<float> still = push(rate);
    ASSERT_EQ(still.size(), kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(still[i], kept[i], 1e-6);
  }
  for (const float value : push(1e300)) EXPECT_TRUE(std::isfinite(value));
}

TEST(PushResiduals, OfBlocksAreNotSentAtTinyRates) {
  Pusher pusher(SpecOf("onebit"));
  std::vector<float> gradient(kElements);
  for (std::size_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>(i % 7) - 3;
  pusher.Push(gradient, 0, 1);
  for (const double rate : {1e-39, 1e-300, 1e300}) {
    const EncodedValues pushed = pusher.Push(gradient, 0, rate);
    for (const float value : pusher.Received(pushed)) EXPECT_TRUE(std::isfinite(value)) << rate;
  }
  for (const float value : pusher.Received(pusher.Push(gradient, 0, 1))) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

// A sum that overflows does not replace the residual.
TEST(PushResiduals, AreNotSentIfTheSumOverflows) {
  Pusher pusher(SpecOf("onebit"));
  std::vector<float> gradient(kElements, 1e38f);
  gradient[0] = 3e38f;  // onebit sends the mean of each sign: 1.97e38 of this is kept
  const std::vector<float> sent = pusher.Received(pusher.Push(gradient));
  EXPECT_TRUE(pusher.Push(gradient).bytes.empty());  // as it is
  // 3e38 is still there to be sent.
  double rest = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::vector<float> more = pusher.Received(pusher.Push(0));
    ASSERT_FALSE(more.empty());
    for (const float value : more) ASSERT_TRUE(std::isfinite(value));
    rest += static_cast<double>(more[0]);
  }
  EXPECT_NEAR((static_cast<double>(sent[0]) + rest) / 3e38, 1, 0.01);
}

// In a table of 16 bits the rest of the residual that they cannot hold is sent with later pushes.
TEST(PushResiduals, Of16BitTablesAreNeitherLostNorOverflow) {
  TableSpec spec = SpecOf("onebit");
  spec.codecs = {"onebit", "none"};
  spec.dtype = DType::kFloat16;
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  PushEncoder encoder(spec, &codecs, kTestContext);
  double sent = 0;
  const auto push = [&](std::uint32_t choice, float value) {
    std::vector<Float16> gradient(kElements, Float16(-value));
    gradient[5] = Float16(value);
    const auto* const bytes = reinterpret_cast<const std::byte*>(gradient.data());
    const EncodedValues pushed = encoder.EncodeBlock(choice, 0, bytes, kElements, 0.1);
    if (pushed.codec == compress::kNoCodec) {
      Float16 got = gradient[5];
      if (!pushed.bytes.empty()) {
        std::memcpy(&got, pushed.bytes.data() + 5 * sizeof(Float16), sizeof(got));
      }
      ASSERT_TRUE(std::isfinite(static_cast<float>(got)));
      sent += static_cast<double>(static_cast<float>(got));
      return;
    }
    std::vector<float> values(kElements);
    const compress::TableCodec& codec = *codecs.Find(pushed.codec);
    const auto shape = compress::BlockShape(spec, codec, kElements);
    ASSERT_TRUE(codec.codec->Decode(pushed.bytes.bytes(), shape, values.data()).ok());
    sent += static_cast<double>(values[5]);
  };
  push(0, 49984);
  push(0, 60000);
  push(1, 60000);
  for (int i = 0; i < 3; ++i) push(1, 0.3f);
  EXPECT_NEAR(sent + encoder.Kept(0, 5) / 0.1,
              169984 + 3 * static_cast<double>(static_cast<float>(Float16(0.3f))), 0.1);
  for (int i = 0; i < 3; ++i) push(1, 0);
  EXPECT_LE(std::abs(encoder.Kept(0, 5)) / 0.1, 16);  // half a unit in the last place
  // The rounding error waits for a codec with feedback: other pushes are sent unchanged.
  const std::vector<Float16> gradient(kElements, Float16(1.0f));
  EXPECT_TRUE(
      encoder.EncodeBlock(1, 0, reinterpret_cast<const std::byte*>(gradient.data()), kElements, 0.1)
          .bytes.empty());
}

// Blocks pass on the memory of their residuals, and a push that is not finite is given up half way.
TEST(PushResiduals, OfBlocksAreSeparate) {
  const TableSpec spec = SpecOf("onebit");
  const compress::TableCodecs codecs = *compress::TableCodecsOf(spec);
  PushEncoder all(spec, &codecs, kTestContext);
  const std::uint64_t sizes[] = {kElements, kElements, 3, kElements, 3};
  std::vector<std::unique_ptr<PushEncoder>> alone;
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    alone.push_back(std::make_unique<PushEncoder>(spec, &codecs, kTestContext));
  }
  for (int step = 0; step < 6; ++step) {
    for (std::uint64_t block = 0; block < std::size(sizes); ++block) {
      std::vector<float> gradient(sizes[block]);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>((7 * i + 3 * block + static_cast<std::size_t>(step)) % 11);
      }
      if ((static_cast<std::size_t>(step) + block) % 4 == 3) {
        gradient.back() = std::numeric_limits<float>::infinity();
      }
      const auto* const bytes = reinterpret_cast<const std::byte*>(gradient.data());
      const EncodedValues one = all.EncodeBlock(0, block, bytes, gradient.size(), 0.1);
      const EncodedValues same = alone[block]->EncodeBlock(0, block, bytes, gradient.size(), 0.1);
      EXPECT_EQ(one.bytes.text(), same.bytes.text()) << "step " << step << ", block " << block;
    }
    for (std::uint64_t block = 0; block < std::size(sizes); ++block) {
      for (std::uint64_t i = 0; i < sizes[block]; ++i) {
        ASSERT_EQ(all.Kept(block, i), alone[block]->Kept(block, i)) << block << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace push_encoder_test
}  // namespace leeway::worker
