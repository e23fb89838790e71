// Tests of small pushes that share a message.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::Each;

constexpr std::size_t kTensors = 40;
const std::vector<float> kOnes(16, 1.0f);

class CoreBatchTest : public ::testing::Test {
 protected:
  CoreBatchTest() {
    cluster_.Connect();
    for (std::size_t i = 0; i < kTensors; ++i) {
      tables_.push_back(cluster_.MakeTable(TableSpec::Dense(absl::StrCat("w", i), {16})));
    }
  }

  std::vector<std::shared_ptr<Operation>> PushAll(Core::Terms terms = {}) {
    std::vector<std::shared_ptr<Operation>> pushes;
    for (const auto& table : tables_) pushes.push_back(cluster_.Push(table, {}, kOnes, terms));
    return pushes;
  }
  void AwaitAll(const std::vector<std::shared_ptr<Operation>>& pushes) {
    for (const auto& push : pushes) EXPECT_TRUE(cluster_.Await(push).ok());
  }
  // The sum of the pushes to all tables: the scripted server keeps block 0 of all in one place.
  std::vector<float> PullSum() {
    std::vector<float> got(16, -1);
    EXPECT_TRUE(cluster_.Await(cluster_.Pull(tables_[0], {}, &got)).ok());
    return got;
  }
  ScriptedServer& server() { return *cluster_.servers[0]; }
  std::size_t InBatches() {
    std::size_t pushes = 0;
    for (const proto::PushBatch& batch : server().batches) pushes += batch.pushes.size();
    return pushes;
  }

  TestCluster cluster_{{.servers = 1, .shards = 8}};
  std::vector<std::shared_ptr<const TableInfo>> tables_;
};

TEST_F(CoreBatchTest, PushesOfOneTurnAreOneMessage) {
  AwaitAll(PushAll());
  ASSERT_EQ(server().batches.size(), 1u);
  EXPECT_EQ(server().batches[0].pushes.size(), kTensors);
  EXPECT_EQ(server().admitted.size(), kTensors);
  cluster_.ExpectNoHoles();
}

TEST_F(CoreBatchTest, LearningRatesDoNotMix) {
  PushAll({.learning_rate = 0.5});
  AwaitAll(PushAll({.learning_rate = 0.25}));
  ASSERT_EQ(server().batches.size(), 2u);
  EXPECT_EQ(server().batches[0].learning_rate, 0.5);
  EXPECT_EQ(server().batches[1].learning_rate, 0.25);
}

TEST_F(CoreBatchTest, TheNextRequestDoesNotOvertakeThem) {
  const auto pushes = PushAll();
  EXPECT_THAT(PullSum(), Each(kTensors));
  EXPECT_EQ(server().admitted.back().request.op, proto::Op::kPull);
  AwaitAll(pushes);
}

TEST_F(CoreBatchTest, LargeTensorsHaveMessagesOfTheirOwn) {
  const auto large = cluster_.MakeTable(TableSpec::Dense("large", {1024}));
  const auto push = cluster_.Push(large, {}, std::vector<float>(1024));
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_EQ(InBatches(), 0u);
}

TEST_F(CoreBatchTest, ARefusedPushFailsAlone) {
  server().edit = [&](const proto::Request& request, proto::Reply* reply) {
    if (request.table == tables_[7]->id) reply->result = absl::InvalidArgumentError("no such");
  };
  const auto pushes = PushAll();
  for (std::size_t i = 0; i < kTensors; ++i) {
    EXPECT_EQ(cluster_.Await(pushes[i]).ok(), i != 7) << i;
  }
}

TEST_F(CoreBatchTest, ALostBatchIsSentAgain) {
  bool drop = true;
  server().intercept = [&](const proto::Request& request) {
    return drop && request.table == tables_[7]->id;
  };
  const auto pushes = PushAll();
  cluster_.world.RunFor(absl::Milliseconds(10));
  EXPECT_FALSE(pushes[7]->done());
  drop = false;
  AwaitAll(pushes);
  EXPECT_THAT(PullSum(), Each(kTensors));
  cluster_.ExpectNoHoles();
}

TEST_F(CoreBatchTest, AcknowledgementsMayComeTogether) {
  std::vector<proto::Request> kept;
  server().intercept = [&](const proto::Request& request) {
    kept.push_back(request);
    return true;
  };
  const auto pushes = PushAll();
  cluster_.RunUntil([&] { return kept.size() == kTensors; });
  proto::PushAcks acks{.incarnation = kept[0].id.incarnation, .worker = kept[0].id.worker};
  for (const proto::Request& request : kept) {
    acks.acks.push_back({.sequence = request.id.sequence, .shard = request.id.shard});
  }
  // Acknowledgements of requests that were never sent are ignored.
  acks.acks.push_back({.sequence = 1000, .shard = 0});
  acks.acks.push_back({.sequence = 1, .shard = 1000});
  server().Say(acks);
  AwaitAll(pushes);
}

TEST_F(CoreBatchTest, ABrokenConnectionLosesNoPush) {
  const auto before = PushAll();
  cluster_.RunUntil([&] { return !server().arrived.empty(); });
  const auto pushes = PushAll();
  server().Restart();
  AwaitAll(before);
  AwaitAll(pushes);
  EXPECT_THAT(PullSum(), Each(2 * kTensors));
  cluster_.ExpectNoHoles();
}

}  // namespace
}  // namespace leeway::worker
