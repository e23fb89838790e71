// The example that embeds WordNet's relations, on a whole cluster: its sparse tables learn, with
// and without compression.
#include <mutex>
#include <string>
#include <vector>

#include "examples/wordnet/graph.h"
#include "examples/wordnet/synsets.h"
#include "examples/wordnet/train_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/memory/sanitized.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

// Only the verbs, so that this takes a moment.
class WordnetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto synsets = wordnet::LoadSynsets(wordnet::kDefaultFolder, {"verb"});
    ASSERT_TRUE(synsets.ok()) << synsets.status();
    EXPECT_EQ(synsets->count, 13767u);
    auto made = wordnet::MakeGraph(*synsets, {.core = 2});
    ASSERT_TRUE(made.ok()) << made.status();
    graph_ = new wordnet::Graph(*std::move(made));
  }
  static void TearDownTestSuite() { delete graph_; }
  void SetUp() override { ASSERT_NE(graph_, nullptr); }

  // Real training takes minutes with sanitizers, which find faults in how it runs, not in the
  // result.
  static constexpr std::size_t kEpochs = runtime::kSanitized ? 2 : 12;

  static wordnet::Outcome Train(const std::string& codec, ErrorFeedback feedback,
                                std::size_t epochs = kEpochs, std::size_t plain_epochs = 0) {
    LocalCluster::Setup setup;
    setup.servers = 2;
    setup.workers = 4;
    auto cluster = *LocalCluster::Start(setup);
    wordnet::Settings settings;
    settings.width = 32;
    settings.batch = 64;
    settings.epochs = epochs;
    settings.codec = codec;
    settings.error_feedback = feedback;
    settings.plain_epochs = plain_epochs;
    std::mutex mutex;
    wordnet::Outcome result;
    std::vector<double> losses;  // worker 0's alone
    const absl::Status ran = cluster->RunWorkers([&](Worker* worker) {
      const auto outcome = wordnet::TrainWorker(
          settings, *graph_,
          [&](const wordnet::EpochPoint& point) { losses.push_back(point.loss); }, worker);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      const std::lock_guard lock(mutex);
      if (worker->rank() == 0) result = *outcome;
    });
    EXPECT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(losses.size(), settings.epochs);
    EXPECT_LT(losses.back(), losses.front());
    return result;
  }

  static wordnet::Graph* graph_;
};

wordnet::Graph* WordnetTest::graph_ = nullptr;

TEST_F(WordnetTest, SparseTablesLearnWithAndWithoutCodec) {
  const wordnet::Outcome plain = Train("none", ErrorFeedback::kAuto);
  const wordnet::Outcome int8 = Train("int8", ErrorFeedback::kWorker);
  const wordnet::Outcome onebit = Train("onebit", ErrorFeedback::kWorker);
  RecordProperty("mrr_none", std::to_string(plain.mrr));
  RecordProperty("mrr_int8", std::to_string(int8.mrr));
  RecordProperty("mrr_onebit", std::to_string(onebit.mrr));
  RecordProperty("mrr_untrained", std::to_string(plain.mrr_untrained));
  // A row of 32 floats takes 128 bytes; as int8 32 and a scale, as onebit 4 and a scale.
  EXPECT_LT(int8.bytes_pushed, plain.bytes_pushed * 3 / 10);
  EXPECT_LT(onebit.bytes_pushed, plain.bytes_pushed / 12);
  EXPECT_EQ(plain.bytes_pulled, int8.bytes_pulled);
  EXPECT_GT(plain.mrr_untrained, 0);
  if (runtime::kSanitized) return;  // too few epochs to learn
  for (const wordnet::Outcome& outcome : {plain, int8, onebit}) {
    EXPECT_GT(outcome.mrr, 5 * outcome.mrr_untrained);
  }
}

// A third of the bytes, and a little for the clocks until all workers switch.
TEST_F(WordnetTest, TheCodecMayComeAfterTheFirstEpochs) {
  const wordnet::Outcome plain = Train("none", ErrorFeedback::kAuto, 3);
  const wordnet::Outcome later = Train("onebit", ErrorFeedback::kWorker, 3, 1);
  EXPECT_GT(later.bytes_pushed, plain.bytes_pushed / 3);
  EXPECT_LT(later.bytes_pushed, plain.bytes_pushed * 4 / 5);
}

TEST_F(WordnetTest, BspGivesTheSameEveryTime) {
  EXPECT_EQ(Train("onebit", ErrorFeedback::kWorker, 2).mrr,
            Train("onebit", ErrorFeedback::kWorker, 2).mrr);
}

}  // namespace
}  // namespace leeway::tests
