// The exact test of error feedback: the residuals of all ends are the whole difference to training
// without compression.
//
// With E = server's residual + mean of the workers' residuals, x_t − η_t·E_t is the trajectory of
// the uncompressed run on the same gradients, up to rounding, for every codec and every schedule
// of learning rates (dist-EF-SGD, Zheng et al., NeurIPS 2019, proof of Theorem 1). That fails as
// soon as a residual is lost, doubled or weighed wrongly: so it is also checked through failovers,
// moves and restores. With momentum before the codec it is the trajectory of that momentum.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compress/table_codec.h"
#include "compress/testing/codec_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"
#include "runtime/base/random.h"
#include "worker/encoding/push_encoder.h"
#include "worker/slicing/pulled_blocks.h"

namespace leeway {
namespace {

constexpr std::uint32_t kTable = 3;
constexpr std::uint32_t kWorkers = 4;
constexpr std::uint64_t kElements = 700;  // one block of 512 and a short one
constexpr std::uint64_t kBlockBytes = 2048;
constexpr std::uint64_t kBlockElements = kBlockBytes / sizeof(float);
constexpr int kSteps = 40;

// η goes up and down, and is 0 once.
double RateAt(int step) {
  if (step == 17) return 0;
  const double rates[] = {0.1, 0.1, 0.05, 0.2, 0.01};
  return rates[step % 5];
}

float GradientAt(int step, std::uint32_t worker, std::uint64_t i) {
  return static_cast<float>(runtime::NormalAt(static_cast<std::uint64_t>(step), worker, i));
}

// Events of the servers' state in the middle of the training.
// kRestoreOfOld: from files without the versions that workers hold.
enum class Event { kNone, kFailover, kMove, kRestore, kRestoreOfOld, kLostResidual };

class Training {
 public:
  // `encoded_pushes` false: workers push as if the table had no codec.
  explicit Training(TableSpec spec, bool encoded_pushes = true)
      : spec_(std::move(spec)), encoded_pushes_(encoded_pushes) {
    const auto codecs = compress::TableCodecsOf(spec_);
    EXPECT_TRUE(codecs.ok()) << codecs.status();
    codecs_ = *codecs;
    updater_ = *ps::MakeUpdater(spec_);
    head_ = NewStore();
    replica_ = NewStore();
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      encoders_.emplace_back(spec_, &codecs_,
                             worker::PushContext{.table = kTable,
                                                 .rank = rank,
                                                 .block_bytes = kBlockBytes,
                                                 .residual_bytes_max = 1u << 20});
      pulls_.emplace_back(spec_, &codecs_);
    }
    parameters_.assign(kElements, 0.0);
    exact_.assign(kElements, 0.0);
    velocities_.assign(kWorkers, std::vector<double>(kElements));
  }

  bool gradient_table() const { return spec_.updater.name == compress::kGradientUpdater; }

  // Switches the codec from that step on.
  void SwitchAt(int step, std::uint32_t choice) {
    const auto clock = static_cast<std::uint64_t>(step);
    const std::uint32_t before = schedule_.KnownAt(clock).choice;
    ASSERT_TRUE(schedule_.Follow({.table = kTable,
                                  .number = ++switches_,
                                  .before = before,
                                  .choice = choice,
                                  .clock = clock,
                                  .decided = true}));
  }

  void Step(int step) {
    const double rate = RateAt(step);
    for (std::uint64_t block = 0; block < 2; ++block) {
      std::vector<ps::PushView> pushes;
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
        pushes.push_back(Push(step, rank, block, rate));
      }
      // The head applies the aggregate and sends it to the replica.
      const auto aggregate = head_->Combine(pushes, kWorkers);
      ASSERT_TRUE(aggregate.ok()) << aggregate.status();
      clock_ = static_cast<std::uint64_t>(step) + 1;
      const ps::VersionBy by = head_->NextVersion(block, schedule_, clock_);
      ASSERT_TRUE(head_->ApplyCombined(pushes, kWorkers).ok());
      ASSERT_TRUE(replica_->ApplyAggregate(*aggregate).ok());
      ASSERT_TRUE(head_->MakeVersion(block, clock_, rate, by).ok());
      ASSERT_TRUE(replica_->MakeVersion(block, clock_, rate, by).ok());
      if (gradient_table()) UpdateParameters(block, rate);
    }
    if (step > 0 && ChoiceAt(step) != ChoiceAt(step - 1)) {
      velocities_.assign(kWorkers, std::vector<double>(kElements));
    }
    for (std::uint64_t i = 0; i < kElements; ++i) {
      double sum = 0;
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
        sum += MovedAt(step, rank, i);
      }
      exact_[i] -= rate * sum / kWorkers;
    }
  }

  void Happen(Event event) {
    if (event == Event::kNone) return;
    if (event == Event::kFailover) {
      std::swap(head_, replica_);
      return;
    }
    const bool restored = event == Event::kRestore || event == Event::kRestoreOfOld;
    std::unique_ptr<ps::ShardStore> next = NewStore();
    for (ps::FrozenPiece piece : head_->Freeze().pieces) {
      if (event == Event::kRestoreOfOld) piece.version = 0;
      if (event == Event::kLostResidual) piece.state = Zeros(piece.state.size());
      const auto loaded =
          restored ? next->LoadElsewhere(piece, kBlockBytes).status() : next->Load(piece);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    if (restored) {  // another cluster, whose workers hold nothing yet
      pulls_.clear();
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) pulls_.emplace_back(spec_, &codecs_);
    }
    head_ = std::move(next);
    replica_ = NewStore();
    for (const ps::FrozenPiece& piece : head_->Freeze().pieces) {
      ASSERT_TRUE(replica_->Load(piece).ok());
    }
  }

  // The largest distance of x − η·E from the uncompressed trajectory, as a part of the largest
  // residual of an element (some codecs drop a ten-thousandth, others nearly everything).
  double Error() {
    double largest = 0;
    for (std::uint64_t block = 0; block < 2; ++block) {
      const std::uint64_t first = block * kBlockElements;
      const ps::FeedbackBlock open = *head_->OpenFeedback(block, false);
      for (std::uint64_t i = 0; i < open.elements; ++i) {
        double kept = 0;  // η·E
        for (const worker::PushEncoder& encoder : encoders_) {
          kept += encoder.Kept(block, i) / kWorkers;
        }
        largest_kept_ = std::max(largest_kept_, std::abs(kept));
        double value = parameters_[first + i];
        if (gradient_table()) {
          if (open.slot != nullptr) kept += static_cast<double>(open.slot[i]);
        } else {
          float stored;
          std::memcpy(&stored, open.values + i * sizeof(float), sizeof(float));
          value = static_cast<double>(stored);
        }
        largest = std::max(largest, std::abs(value - kept - exact_[first + i]));
      }
    }
    return largest_kept_ == 0 ? largest : largest / largest_kept_;
  }

  // The block in that worker's copy after a pull.
  std::vector<float> Pull(std::uint32_t rank, std::uint64_t block) {
    const std::uint64_t elements = block == 0 ? kBlockElements : kElements - kBlockElements;
    std::vector<float> values(elements);
    ps::PullView view{.block = block, .elements = elements, .have = pulls_[rank].have(block)};
    view.codec = schedule_.KnownAt(clock_);
    const auto pulled = head_->Pull(view);
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    auto* const to = reinterpret_cast<std::byte*>(values.data());
    if (!pulled->coded) {
      std::memcpy(to, pulled->payload[0].data(), elements * sizeof(float));
      return values;
    }
    const absl::Status taken =
        pulls_[rank].Take(block, elements, pulled->parts, pulled->payload[0].bytes(), to);
    EXPECT_TRUE(taken.ok()) << taken;
    return values;
  }

  std::uint32_t ChoiceAt(int step) const {
    return schedule_.KnownAt(static_cast<std::uint64_t>(step)).choice;
  }
  ps::ShardStore& head() { return *head_; }
  ps::ShardStore& replica() { return *replica_; }

 private:
  std::unique_ptr<ps::ShardStore> NewStore() const {
    return ps::NewShardStore(
        spec_, {.table = kTable, .shard = 0, .num_shards = 1, .block_bytes = kBlockBytes},
        updater_.get());
  }

  static runtime::Buffer Zeros(std::size_t bytes) {
    const std::string zeros(bytes, '\0');
    return runtime::Buffer::CopyOf(zeros);
  }

  ps::PushView Push(int step, std::uint32_t rank, std::uint64_t block, double rate) {
    const std::uint64_t elements = block == 0 ? kBlockElements : kElements - kBlockElements;
    std::vector<float> gradient(elements);
    for (std::uint64_t i = 0; i < elements; ++i) {
      gradient[i] = GradientAt(step, rank, block * kBlockElements + i);
    }
    if (!encoded_pushes_) {
      return {.block = block,
              .values = runtime::Buffer::CopyOf(gradient.data(), elements * sizeof(float)),
              .learning_rate = rate};
    }
    const std::uint32_t choice = schedule_.KnownAt(static_cast<std::uint64_t>(step)).choice;
    const auto* const values = reinterpret_cast<const std::byte*>(gradient.data());
    worker::EncodedValues encoded =
        encoders_[rank].EncodeBlock(choice, block, values, elements, rate);
    if (encoded.bytes.empty()) {
      encoded.bytes = runtime::Buffer::CopyOf(gradient.data(), elements * sizeof(float));
    }
    return {.block = block,
            .values = std::move(encoded.bytes),
            .learning_rate = rate,
            .codec = encoded.codec};
  }

  // The gradient, or the result of the codec's momentum for it, without compression.
  double MovedAt(int step, std::uint32_t rank, std::uint64_t i) {
    const auto gradient = static_cast<double>(GradientAt(step, rank, i));
    const auto& momentum = codecs_.choices[ChoiceAt(step)].momentum;
    if (!momentum.has_value() || !encoded_pushes_) return gradient;
    double& velocity = velocities_[rank][i];
    velocity = static_cast<double>(momentum->factor()) * velocity + gradient;
    return momentum->nesterov() ? gradient + static_cast<double>(momentum->factor()) * velocity
                                : velocity;
  }

  void UpdateParameters(std::uint64_t block, double rate) {
    const std::vector<float> gradient = Pull(0, block);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      parameters_[block * kBlockElements + i] -= rate * static_cast<double>(gradient[i]);
    }
  }

  const TableSpec spec_;
  const bool encoded_pushes_;
  compress::TableCodecs codecs_;
  compress::CodecSchedule schedule_;
  std::uint64_t switches_ = 0;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<ps::ShardStore> head_;
  std::unique_ptr<ps::ShardStore> replica_;
  std::vector<worker::PushEncoder> encoders_;
  std::vector<worker::PulledBlocks> pulls_;
  std::vector<double> parameters_;  // of a gradient table
  std::vector<double> exact_;
  std::vector<std::vector<double>> velocities_;  // of each worker, without compression
  double largest_kept_ = 0;
};

TableSpec Parameters(const std::string& codec, ErrorFeedback feedback) {
  TableSpec spec = TableSpec::Dense("w", {70, 10});
  spec.updater = {"sgd", {{"learning_rate", 0.1}}};
  spec.aggregate = Aggregate::kMean;
  spec.codec = codec;
  spec.error_feedback = feedback;
  return spec;
}

TableSpec Gradients(const std::string& codec, ErrorFeedback feedback) {
  TableSpec spec = Parameters(codec, feedback);
  spec.updater = {"gradient", {}};
  return spec;
}

std::vector<std::string> LossyCodecs() {
  std::vector<std::string> texts;
  for (const compress::CodecSample& sample : compress::CodecSamples()) {
    const auto codec = compress::MakeCodec(sample.text)->codec;
    // Codecs that keep their own residual have their own tests, and others have no error feedback.
    if (codec->lossless() || codec->keeps_residual() || !codec->contracts()) continue;
    texts.push_back(sample.text);
  }
  for (const char* const text : {"onebit,momentum=0.9", "topk:0.05,momentum=0.9,nesterov=1",
                                 "powersgd:2,momentum=0.5", "int8,momentum=0.9,nesterov=1"}) {
    texts.emplace_back(text);
  }
  return texts;
}

// As parts of the residual: rounding of values and sums in float over all steps, which is less than
// the difference that a lost residual makes.
constexpr double kRounding = 0.03;
constexpr double kLost = 0.1;

class IdentityTest : public testing::TestWithParam<std::string> {
 protected:
  // True if the codec can be combined with error feedback on the server.
  static bool HasServerSide(const TableSpec& spec) { return compress::TableCodecOf(spec).ok(); }

  static double Run(const TableSpec& spec, Event event, bool encoded_pushes = true) {
    Training training(spec, encoded_pushes);
    double largest = 0;
    for (int step = 0; step < kSteps; ++step) {
      training.Step(step);
      if (testing::Test::HasFatalFailure()) return INFINITY;
      if (step == 11 || step == 23) training.Happen(event);
      largest = std::max(largest, training.Error());
    }
    EXPECT_EQ(training.head().Digest(), training.replica().Digest());
    return largest;
  }
};

TEST_P(IdentityTest, HoldsForPushesAlone) {
  EXPECT_LT(Run(Parameters(GetParam(), ErrorFeedback::kWorker), Event::kNone), kRounding);
}

TEST_P(IdentityTest, HoldsOnBothEndsOfAGradientTable) {
  const TableSpec spec = Gradients(GetParam(), ErrorFeedback::kBoth);
  if (!HasServerSide(spec)) GTEST_SKIP() << "no error feedback on servers";
  EXPECT_LT(Run(spec, Event::kNone), kRounding);
}

TEST_P(IdentityTest, HoldsForRepliesAlone) {
  const TableSpec spec = Gradients(GetParam(), ErrorFeedback::kServer);
  if (!HasServerSide(spec)) GTEST_SKIP() << "no error feedback on servers";
  EXPECT_LT(Run(spec, Event::kNone, /*encoded_pushes=*/false), kRounding);
}

TEST_P(IdentityTest, SurvivesFailoverMoveAndRestore) {
  for (const Event event :
       {Event::kFailover, Event::kMove, Event::kRestore, Event::kRestoreOfOld}) {
    EXPECT_LT(Run(Parameters(GetParam(), ErrorFeedback::kWorker), event), kRounding);
    const TableSpec gradients = Gradients(GetParam(), ErrorFeedback::kBoth);
    if (HasServerSide(gradients)) {
      EXPECT_LT(Run(gradients, event), kRounding);
    }
  }
}

TEST_P(IdentityTest, NoticesAResidualThatIsLost) {
  const TableSpec spec = Gradients(GetParam(), ErrorFeedback::kBoth);
  if (!HasServerSide(spec)) GTEST_SKIP() << "no error feedback on servers";
  if (GetParam() == "topk:1") GTEST_SKIP() << "it drops nothing";
  EXPECT_GT(Run(spec, Event::kLostResidual), kLost);
}

// The table gets another of its codecs every few steps: a lossless one, none, the one under test
// again, another lossy one. The residuals go along with the following messages.
TEST_P(IdentityTest, SurvivesSwitchesOfTheCodec) {
  const std::string other = GetParam() == "topk:0.01" ? "onebit" : "topk:0.01";
  for (const TableSpec& one : {Parameters(GetParam(), ErrorFeedback::kWorker),
                               Gradients(GetParam(), ErrorFeedback::kBoth)}) {
    if (!HasServerSide(one)) continue;
    TableSpec spec = one;
    spec.codecs = {"none", "zstd", other};
    Training training(spec);
    double largest = 0;
    for (int step = 0; step < kSteps; ++step) {
      if (step % 5 == 4) training.SwitchAt(step, static_cast<std::uint32_t>(step / 5 + 1) % 4);
      training.Step(step);
      if (step == 11 || step == 23) training.Happen(Event::kFailover);
      largest = std::max(largest, training.Error());
    }
    EXPECT_LT(largest, kRounding);
    EXPECT_EQ(training.head().Digest(), training.replica().Digest());
  }
}

// Under a codec whose replies are differences, workers hold the server's record of their values,
// and under any other codec the values themselves.
TEST_P(IdentityTest, WorkersSeeTheRightValuesAfterEachSwitch) {
  TableSpec spec = Parameters(GetParam(), ErrorFeedback::kBoth);
  if (!HasServerSide(spec)) GTEST_SKIP() << "no error feedback on servers";
  spec.codecs = {"none", "zstd", GetParam() == "fp16" ? "bf16" : "fp16"};
  Training training(spec);
  for (int step = 0; step < kSteps; ++step) {
    if (step % 3 == 2) training.SwitchAt(step, static_cast<std::uint32_t>(step / 3 + 1) % 4);
    training.Step(step);
    if (step == 11) training.Happen(Event::kFailover);
    if (step == 17) training.Happen(Event::kMove);
    const bool differences = training.ChoiceAt(step + 1) % 3 == 0;
    for (std::uint64_t block = 0; block < 2; ++block) {
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
        if (static_cast<std::uint32_t>(step) % (rank + 1) != 0) continue;
        const std::vector<float> seen = training.Pull(rank, block);
        const ps::FeedbackBlock open = *training.head().OpenFeedback(block, false);
        const void* const wanted = differences ? static_cast<const void*>(open.slot)
                                               : static_cast<const void*>(open.values);
        ASSERT_EQ(std::memcmp(wanted, seen.data(), seen.size() * sizeof(float)), 0)
            << "worker " << rank << ", block " << block << ", step " << step;
      }
    }
  }
  EXPECT_EQ(training.head().Digest(), training.replica().Digest());
}

// EF21-P: every worker that has pulled holds the server's record of its values, bit by bit, and
// that is close to the values.
TEST_P(IdentityTest, WorkersHoldWhatTheServerBelieves) {
  const TableSpec spec = Parameters(GetParam(), ErrorFeedback::kBoth);
  if (!HasServerSide(spec)) GTEST_SKIP() << "no error feedback on servers";
  for (const Event event :
       {Event::kNone, Event::kFailover, Event::kMove, Event::kRestore, Event::kRestoreOfOld}) {
    Training training(spec);
    for (int step = 0; step < kSteps; ++step) {
      training.Step(step);
      if (step == 11) training.Happen(event);
      for (std::uint64_t block = 0; block < 2; ++block) {
        for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
          if (static_cast<std::uint32_t>(step) % (rank + 1) != 0) continue;  // some pull seldom
          const std::vector<float> seen = training.Pull(rank, block);
          const runtime::Buffer held = *training.head().FeedbackView(block);
          ASSERT_EQ(held.size(), seen.size() * sizeof(float));
          ASSERT_EQ(std::memcmp(held.data(), seen.data(), held.size()), 0)
              << "worker " << rank << ", block " << block << ", step " << step;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, IdentityTest, testing::ValuesIn(LossyCodecs()),
                         [](const testing::TestParamInfo<std::string>& codec) {
                           std::string name = codec.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace leeway
