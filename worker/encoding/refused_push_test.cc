// Tests of refused pushes: each leaves the residuals as a push of zeros of which nothing was sent.
// Pushing it again counts it once, and the residuals that it carried are not lost.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compress/sparse/coded_rows.h"
#include "compress/table_codec.h"
#include "compress/testing/codec_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"
#include "worker/core/core.h"
#include "worker/encoding/push_encoder.h"
#include "worker/testing/push_encoder_testing.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace refused_push_test {
namespace {

constexpr std::uint64_t kElements = 96;
constexpr std::uint64_t kWidth = 32;

TableSpec SpecOf(const std::string& codec) { return SgdTable(codec, kElements); }

std::vector<float> Normal(std::uint64_t step, std::uint64_t size) {
  std::vector<float> values(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(11, step, i));
  }
  return values;
}

const std::byte* BytesOf(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// A table of one block, and the sum of accepted pushes, each times its learning rate.
class Block {
 public:
  explicit Block(const TableSpec& spec)
      : spec_(spec),
        codecs_(*compress::TableCodecsOf(spec_)),
        encoder_(spec_, &codecs_, kTestContext) {}

  struct Sent {
    std::vector<float> gradient;
    EncodedValues values;
    double rate;
  };
  Sent Send(std::uint64_t step, double rate, std::uint32_t choice = 0) {
    return Send(Normal(step, kElements), rate, choice);
  }
  Sent Send(std::vector<float> gradient, double rate, std::uint32_t choice = 0) {
    Sent sent{.gradient = std::move(gradient), .values = {}, .rate = rate};
    sent.values = encoder_.EncodeBlock(choice, 0, BytesOf(sent.gradient), kElements, rate);
    return sent;
  }
  void Accept(const Sent& sent) {
    std::vector<float> received = ReceivedOf(sent.values, spec_, codecs_, kElements);
    if (received.empty()) received = sent.gradient;
    for (std::uint64_t i = 0; i < kElements; ++i) accepted_[i] += sent.rate * received[i];
  }
  void Refuse(const Sent& sent, bool given = true) {
    if (!sent.values.traces.has_value()) return;
    encoder_.TakeBackBlock(0, {.traces = *sent.values.traces,
                               .codec = sent.values.codec,
                               .message = sent.values.bytes.bytes(),
                               .given = given ? BytesOf(sent.gradient) : nullptr,
                               .elements = kElements,
                               .learning_rate = sent.rate});
  }
  // The sum of the accepted pushes and the residual.
  std::vector<double> Total() const {
    std::vector<double> total = accepted_;
    for (std::uint64_t i = 0; i < kElements; ++i) total[i] += encoder_.Kept(0, i);
    return total;
  }
  SavedBlock Saved() const { return encoder_.Save().blocks.at(0); }
  std::vector<float> StateOf() const { return Saved().codec_state; }

 private:
  const TableSpec spec_;
  const compress::TableCodecs codecs_;
  PushEncoder encoder_;
  std::vector<double> accepted_ = std::vector<double>(kElements);
};

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double within) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], within) << "element " << i;
}

class RefusedPush : public testing::TestWithParam<compress::CodecSample> {};

// The push is refused at once, refused after later pushes were encoded, or refused when its values
// are not there any more.
TEST_P(RefusedPush, CountsOnceWhenItIsPushedAgain) {
  const TableSpec spec = SpecOf(GetParam().text);
  const auto codecs = compress::TableCodecsOf(spec);
  ASSERT_TRUE(codecs.ok()) << codecs.status();
  const bool keeps = codecs->choices[0].worker_feedback && !GetParam().keeps_its_own;
  if (!keeps) GTEST_SKIP() << "nothing is kept of it, or it keeps that itself";
  const double rates[] = {0.1, 0.05, 0.2};
  Block block(spec);
  std::vector<double> expected(kElements);
  const auto expect = [&](std::uint64_t step, double rate) {
    const std::vector<float> gradient = Normal(step, kElements);
    for (std::uint64_t i = 0; i < kElements; ++i) expected[i] += rate * gradient[i];
  };
  for (std::uint64_t step = 0; step < 12; ++step) {
    SCOPED_TRACE(step);
    const double rate = rates[step % 3];
    Block::Sent sent = block.Send(step, rate);
    expect(step, rate);
    if (step % 4 == 1) {
      block.Refuse(sent);
      sent = block.Send(step, rate);
    } else if (step % 4 == 2) {
      const Block::Sent later = block.Send(100 + step, 0.3);
      expect(100 + step, 0.3);
      block.Accept(later);
      block.Refuse(sent);
      sent = block.Send(step, rate);
    } else if (step % 4 == 3) {
      block.Refuse(sent, /*given=*/false);
      ExpectNear(block.Total(), expected, 1e-5);
      continue;
    }
    block.Accept(sent);
    ExpectNear(block.Total(), expected, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, RefusedPush, testing::ValuesIn(compress::CodecSamples()));

// The residual is sent with an unencoded push, and comes back when that is refused.
TEST(RefusedPushes, WithoutEncodingReturnTheirResiduals) {
  TableSpec spec = SpecOf("onebit");
  spec.codecs = {"none"};
  Block block(spec);
  block.Accept(block.Send(1, 0.1));
  const std::vector<double> before = block.Total();
  const Block::Sent carried = block.Send(2, 0.1, 1);
  ASSERT_TRUE(carried.values.traces.has_value());
  block.Refuse(carried);
  ExpectNear(block.Total(), before, 1e-6);
}

// With momentum the kept state is as after a push of zeros.
TEST(RefusedPushes, LeaveNoMomentum) {
  for (const std::string text : {"onebit,momentum=0.5", "topk:0.1,momentum=0.5,nesterov=1"}) {
    SCOPED_TRACE(text);
    Block refused(SpecOf(text)), zeros(SpecOf(text));
    for (Block* block : {&refused, &zeros}) block->Accept(block->Send(1, 0.1));
    refused.Refuse(refused.Send(2, 0.1));
    // Nothing of a push of zeros is accepted, and all that it carried stays.
    const std::vector<float> velocity = zeros.StateOf();
    const std::vector<float> left = refused.StateOf();
    for (std::uint64_t i = 0; i < kElements; ++i) {
      ASSERT_NEAR(left[i], 0.5f * velocity[i], 1e-6);
    }
    const double share = text.find("nesterov") == std::string::npos ? 0.5 : 0.25;
    std::vector<double> expected = zeros.Total();
    for (std::uint64_t i = 0; i < kElements; ++i) expected[i] += 0.1 * share * velocity[i];
    ExpectNear(refused.Total(), expected, 1e-6);
  }
}

// Pushes that are sent unchanged, without the momentum, do not count.
TEST(RefusedPushes, LeaveNoMomentumAfterLaterPushes) {
  Block refused(SpecOf("onebit,momentum=0.5")), plain(SpecOf("onebit,momentum=0.5"));
  for (Block* block : {&refused, &plain}) block->Accept(block->Send(1, 0.1));
  const Block::Sent sent = refused.Send(2, 0.1);
  const std::vector<float> nan(kElements, std::nanf(""));
  EXPECT_TRUE(refused.Send(nan, 0.1).values.bytes.empty());
  refused.Refuse(sent);
  const std::vector<float> velocity = plain.StateOf();
  const std::vector<float> left = refused.StateOf();
  for (std::uint64_t i = 0; i < kElements; ++i) ASSERT_NEAR(left[i], 0.5f * velocity[i], 1e-6);
}

// Momentum that began again since, under the same codec, has nothing of them.
TEST(RefusedPushes, BeforeACodecChangeLeaveItsNewMomentum) {
  TableSpec spec = SpecOf("onebit,momentum=0.5");
  spec.codecs = {"none"};
  Block block(spec);
  const Block::Sent early = block.Send(1, 0.1);
  block.Send(2, 0.1, 1);
  block.Send(3, 0.1);
  block.Refuse(early);
  EXPECT_EQ(block.StateOf(), Normal(3, kElements));
}

// The last push before a codec change: its momentum is gone with its codec, so that it is taken
// back from the residual alone, which the next codec goes on with.
TEST(RefusedPushes, OfTheCodecBeforeLeaveTheNextCodecsMomentum) {
  const struct {
    std::string before, after;
    double sent;     // of the first gradient, in its own push
    double carried;  // and in the next one
  } kChanges[] = {{"onebit,momentum=0.5", "topk:0.5,momentum=0.5", 1, 0.5},
                  {"onebit,momentum=0.5", "onebit,momentum=0.9", 1, 0.5},
                  {"topk:0.1,momentum=0.5,nesterov=1", "onebit,momentum=0.5", 1.5, 0.25}};
  for (const auto& change : kChanges) {
    SCOPED_TRACE(change.before + " to " + change.after);
    TableSpec spec = SpecOf(change.before);
    spec.codecs = {change.after};
    Block block(spec);
    block.Accept(block.Send(1, 0.1));
    const Block::Sent refused = block.Send(2, 0.1);
    block.Accept(block.Send(3, 0.1, 1));
    block.Refuse(refused);
    const std::vector<float> first = Normal(1, kElements), third = Normal(3, kElements);
    EXPECT_EQ(block.StateOf(), third);
    std::vector<double> expected(kElements);
    for (std::uint64_t i = 0; i < kElements; ++i) {
      expected[i] = 0.1 * ((change.sent + change.carried) * first[i] + third[i]);
    }
    ExpectNear(block.Total(), expected, 1e-5);
  }
}

// A rate of 0 changes neither the residual nor its rate, because a file of residuals has no rate
// of 0.
TEST(RefusedPushes, AtARateOfZeroChangeNothing) {
  Block block(SpecOf("onebit"));
  block.Refuse(block.Send(1, 0));
  EXPECT_GT(block.Saved().rate, 0);
  block.Accept(block.Send(2, 0.1));
  const std::vector<double> before = block.Total();
  block.Refuse(block.Send(3, 0));
  EXPECT_EQ(block.Total(), before);
}

// Without error feedback no residual is made, even of a message that encoding did not make smaller.
TEST(RefusedPushes, LeaveNoResidualWithoutErrorFeedback) {
  TableSpec spec = SpecOf("threshold:1e-30,momentum=0.5");
  spec.error_feedback = ErrorFeedback::kOff;
  Block block(spec);
  block.Accept(block.Send(1, 0.1));
  const Block::Sent sent = block.Send(2, 0.1);
  EXPECT_EQ(sent.values.codec, compress::kNoCodec);
  block.Refuse(sent);
  EXPECT_TRUE(block.Saved().residual.empty());
  const std::vector<float> velocity = block.StateOf(), first = Normal(1, kElements);
  for (std::uint64_t i = 0; i < kElements; ++i) ASSERT_NEAR(velocity[i], 0.5f * first[i], 1e-6);
}

// A codec that keeps its residual itself sends all of it in the end, once. The messages of the last
// one would be no smaller than plain values, and are sent as such.
TEST(RefusedPushes, OfDgcCountOnce) {
  for (const std::string text :
       {"dgc:0.1,momentum=0", "dgc:0.1,momentum=0,clip=3", "dgc:0.97,momentum=0"}) {
    SCOPED_TRACE(text);
    Block refused(SpecOf(text)), plain(SpecOf(text));
    for (std::uint64_t step = 0; step < 5; ++step) {
      plain.Accept(plain.Send(step, 0.1));
      if (step == 2) refused.Refuse(refused.Send(step, 0.1));
      refused.Accept(refused.Send(step, 0.1));
    }
    std::vector<double> a = refused.Total(), b = plain.Total();
    const std::vector<float> kept_a = refused.StateOf(), kept_b = plain.StateOf();
    for (std::uint64_t i = 0; i < kElements; ++i) {
      a[i] += 0.1 * kept_a[kElements + i];
      b[i] += 0.1 * kept_b[kElements + i];
    }
    ExpectNear(a, b, 1e-5);
  }
}

// Rows with memory for a few residuals, so that each message has others at its end.
TEST(RefusedPushes, OfRowsCountOnce) {
  TableSpec spec = TableSpec::Sparse("s", kWidth, DType::kFloat32);
  spec.updater = {"sgd", {{"learning_rate", 0.1}}};
  spec.codec = "onebit";
  const auto codecs = *compress::TableCodecsOf(spec);
  PushEncoder encoder(
      spec, &codecs,
      {.table = 1, .block_bytes = 1 << 20, .residual_bytes_max = 4 * kWidth * sizeof(float)});
  std::map<std::uint64_t, std::vector<double>> accepted, expected;
  const auto add = [&](auto* to, std::uint64_t key, const float* row, double rate) {
    std::vector<double>& sum = (*to)[key];
    sum.resize(kWidth);
    for (std::uint64_t i = 0; i < kWidth; ++i) sum[i] += rate * row[i];
  };
  bool any_flushed = false;
  for (std::uint64_t step = 0; step < 30; ++step) {
    SCOPED_TRACE(step);
    const double rate = step % 2 == 0 ? 0.1 : 0.05;
    std::vector<std::uint64_t> keys = {step, step + 1, step + 2};
    const std::vector<float> gradient = Normal(step, keys.size() * kWidth);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      add(&expected, keys[i], gradient.data() + i * kWidth, rate);
    }
    // The first of the two is refused.
    for (const bool refused : {true, false}) {
      std::vector<float> rows = gradient;
      const EncodedRows sent =
          encoder.EncodeRows(0, 0, keys, reinterpret_cast<std::byte*>(rows.data()), rate);
      std::vector<std::uint64_t> all = keys;
      all.insert(all.end(), sent.flushed.begin(), sent.flushed.end());
      any_flushed = any_flushed || !sent.flushed.empty();
      ASSERT_TRUE(sent.values.traces.has_value());
      ASSERT_NE(sent.values.codec, compress::kNoCodec);
      if (refused) {
        encoder.TakeBackRows(0, all,
                             {.traces = *sent.values.traces,
                              .codec = sent.values.codec,
                              .message = sent.values.bytes.bytes(),
                              .given = sent.given.data(),
                              .elements = gradient.size(),
                              .learning_rate = rate});
        continue;
      }
      const auto frame =
          *compress::ParseCodedRows(sent.values.bytes.bytes(), all.size(), kWidth * sizeof(float));
      std::vector<float> received(all.size() * kWidth);
      const CodecShape shape = compress::RowsShape(spec, codecs.choices[0], frame.encoded_rows);
      ASSERT_TRUE(codecs.choices[0].codec->Decode(frame.encoded, shape, received.data()).ok());
      std::memcpy(received.data() + frame.encoded_rows * kWidth, frame.plain.data(),
                  frame.plain.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        add(&accepted, all[i], received.data() + i * kWidth, rate);
      }
    }
    auto total = accepted;
    const SavedTable kept = encoder.Save();
    for (std::size_t i = 0; i < kept.keys.size(); ++i) {
      add(&total, kept.keys[i], kept.rows.data() + i * kWidth, 1);
    }
    for (const auto& [key, row] : expected) ExpectNear(total[key], row, 1e-5);
  }
  EXPECT_TRUE(any_flushed);
}

// A cluster whose servers refuse.
class RefusedPushInCluster : public testing::Test {
 protected:
  RefusedPushInCluster() {
    cluster_.Connect();
    TableSpec spec = TableSpec::Dense("w", {2048});
    spec.codec = "onebit";
    table_ = cluster_.MakeTable(spec);
    values_ = Normal(1, 2048);
  }
  // All servers answer with this status from now on.
  void AnswerWith(const absl::Status& result) {
    for (auto& server : cluster_.servers) {
      server->edit = [result](const proto::Request&, proto::Reply* reply) {
        reply->result = result;
      };
    }
  }
  double Kept() const {
    const SavedResiduals saved = cluster_.core->Residuals();
    double sum = 0;
    for (const auto& [block, state] : saved.at("w").blocks) {
      for (const float value : state.residual) sum += std::fabs(value);
    }
    return sum;
  }

  TestCluster cluster_{{.servers = 2, .shards = 2}};
  std::shared_ptr<const TableInfo> table_;
  std::vector<float> values_;
};

TEST_F(RefusedPushInCluster, IsTakenBackFromExportedAndCopiedMemory) {
  for (const bool copy : {false, true}) {
    SCOPED_TRACE(copy);
    AnswerWith(absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
    const auto push = cluster_.Push(table_, {}, values_, {}, copy);
    EXPECT_TRUE(absl::IsResourceExhausted(cluster_.Await(push))) << push->status();
    EXPECT_LT(Kept(), 1e-3);
    // UNKNOWN says that the push may have been applied: the residual stays.
    AnswerWith(absl::UnknownError("the pull has failed"));
    EXPECT_FALSE(cluster_.Await(cluster_.Push(table_, {}, values_, {}, copy)).ok());
    EXPECT_GT(Kept(), 100);
    const double before = Kept();
    AnswerWith(absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
    EXPECT_FALSE(cluster_.Await(cluster_.Push(table_, {}, values_, {}, copy)).ok());
    EXPECT_NEAR(Kept(), before, 1e-2);
    ASSERT_TRUE(cluster_.core->TakeResiduals({{"w", SavedTable()}}).ok());
  }
}

// State without error feedback is saved as well: momentum, and the number of messages.
TEST(SavedResidualsTest, IncludeMomentumWithoutErrorFeedback) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  TableSpec spec = TableSpec::Dense("w", {1024});
  spec.codec = "onebit,momentum=0.5";
  spec.error_feedback = ErrorFeedback::kOff;
  const auto table = cluster.MakeTable(spec);
  const std::vector<float> values = Normal(1, 1024);
  ASSERT_TRUE(cluster.Await(cluster.Push(table, {}, values)).ok());
  const SavedResiduals saved = cluster.core->Residuals();
  ASSERT_TRUE(saved.contains("w"));
  EXPECT_EQ(saved.at("w").blocks.at(0).codec_state, values);
  EXPECT_EQ(saved.at("w").blocks.at(0).step, 1u);
  EXPECT_TRUE(cluster.core->TakeResiduals(saved).ok());
}

// Saved residuals include all pushes that were made, even those that could not be sent yet.
TEST(SavedResidualsTest, IncludePushesThatWaitToBeSent) {
  TestCluster cluster({.servers = 1, .shards = 1, .configure = [](Config* config) {
                         config->push_window_bytes = 16;
                       }});
  cluster.Connect();
  TableSpec spec = TableSpec::Dense("w", {1024});
  spec.codec = "onebit";
  const auto table = cluster.MakeTable(spec);
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const std::vector<float> values = Normal(1, 1024), zeros(1024);
  const auto first = cluster.Push(table, {}, zeros);
  const auto second = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Milliseconds(1));
  const SavedResiduals saved = cluster.core->Residuals();
  double sum = 0;
  for (const float value : saved.at("w").blocks.at(0).residual) sum += std::fabs(value);
  EXPECT_GT(sum, 100);
  cluster.servers[0]->intercept = nullptr;
  EXPECT_TRUE(cluster.Await(first).ok());
  EXPECT_TRUE(cluster.Await(second).ok());
  cluster.ExpectNoHoles();
}

}  // namespace
}  // namespace refused_push_test
}  // namespace leeway::worker
