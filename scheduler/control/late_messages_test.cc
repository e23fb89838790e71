// Messages that arrive late, and servers that join late or stall, under the whole scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "proto/messages/chain.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler::late_messages_test {
namespace {

using ::testing::IsEmpty;

class LateMessagesTest : public ::testing::Test {
 protected:
  void Begin(std::uint32_t servers, std::uint32_t replication = 2) {
    cluster_ = std::make_unique<TestCluster>(1, servers, 1);
    cluster_->config.replication = replication;
    cluster_->StartAll();
    cluster_->RunUntilComplete();
    cluster_->world.RunFor(absl::Seconds(3));
  }
  const proto::ClusterMap& Map() const { return *cluster_->scheduler->map(); }
  TestNode* Server(std::uint32_t rank) const {
    for (TestNode* server : cluster_->servers) {
      if (server->welcome->rank == rank) return server;
    }
    return nullptr;
  }

  std::unique_ptr<TestCluster> cluster_;
};

// The member that feeds it now may have sent no state yet.
TEST_F(LateMessagesTest, AReplicaReadyBeforeItsChainChangedDoesNotCount) {
  Begin(3);
  for (TestNode* server : cluster_->servers) server->reports_ready = false;
  cluster_->Kill(cluster_->servers[1]);
  const auto joining = [&](std::uint32_t shard) { return proto::ChainOf(Map(), shard).joining; };
  std::uint32_t shard = 0;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    for (shard = 0; shard < Map().owners.size(); ++shard) {
      if (!joining(shard).empty()) return true;
    }
    return false;
  }));
  cluster_->world.RunFor(absl::Seconds(1));
  TestNode* const target = Server(joining(shard).front().server_rank);
  target->Say(proto::ReplicaReady{.epoch = 1, .shard = shard});
  cluster_->world.RunFor(absl::Seconds(5));
  EXPECT_EQ(joining(shard).size(), 1u);
  target->Say(proto::ReplicaReady{.epoch = Map().epoch, .shard = shard});
  cluster_->world.RunFor(absl::Seconds(5));
  EXPECT_THAT(joining(shard), IsEmpty());
}

// Handovers of one change must have arrived before the next change.
TEST_F(LateMessagesTest, ChainsChangeOnceEveryServerKnowsOfTheChangeBefore) {
  Begin(4);
  cluster_->servers[3]->acknowledges_maps = false;
  cluster_->Kill(cluster_->servers[1]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return Map().epoch == 2; }));
  cluster_->world.RunFor(absl::Seconds(8));
  EXPECT_EQ(Map().epoch, 2u);
}

TEST_F(LateMessagesTest, AServerIsNotSuspectedOnceItIsThereAgain) {
  Begin(3);
  cluster_->network.Break(cluster_->servers[0]->name(), kSchedulerHost);
  cluster_->world.RunFor(3 * cluster_->config.suspicion);
  EXPECT_THAT(cluster_->workers[0]->downs, IsEmpty());
  EXPECT_EQ(Map().epoch, 1u);
}

TEST_F(LateMessagesTest, ATableDoesNotWaitForAServerThatHasDied) {
  Begin(3);
  cluster_->servers[0]->answers_installs = false;
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_THAT(cluster_->workers[0]->tables, IsEmpty());
  cluster_->Kill(cluster_->servers[0]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  EXPECT_TRUE(cluster_->workers[0]->tables.at(1).result.ok())
      << cluster_->workers[0]->tables.at(1).result;
}

// No worker is left that could report that it has not reached that clock.
TEST_F(LateMessagesTest, ChangesOfTablesDoNotWaitForWorkersThatHaveDied) {
  Begin(2);
  TableSpec spec = TableSpec::Dense("w", {8});
  spec.codecs = {"none", "onebit"};
  TestNode* const worker = cluster_->workers[0];
  worker->CreateTable(1, spec);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !worker->tables.empty(); }));
  ASSERT_TRUE(worker->tables.at(1).result.ok()) << worker->tables.at(1).result;
  cluster_->Kill(worker);
  const auto change = cluster_->Ask("table", {"w", "nonfinite=refuse"});
  const auto codec = cluster_->Ask("codec", {"w", "onebit"});
  ASSERT_TRUE(cluster_->RunUntil([&] { return change->answer && codec->answer; },
                                 cluster_->config.failure_timeout + absl::Seconds(3)));
  EXPECT_TRUE(change->answer->ok()) << *change->answer;
  EXPECT_TRUE(codec->answer->ok()) << *codec->answer;
}

// The report is of a link that the replica does not send over.
TEST_F(LateMessagesTest, AReplicaCannotBreakItsPredecessorsLink) {
  Begin(3, 3);
  const proto::Chain chain = proto::ChainOf(Map(), 0);
  ASSERT_EQ(chain.members.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    Server(chain.members[2].server_rank)
        ->Say(proto::LinkReport{.epoch = Map().epoch,
                                .shard = 0,
                                .server = chain.members[1].server_rank,
                                .handover = true});
    cluster_->world.RunFor(cluster_->config.heartbeat_interval);
  }
  cluster_->world.RunFor(absl::Seconds(3));
  EXPECT_EQ(Map().epoch, 1u);
}

}  // namespace
}  // namespace leeway::scheduler::late_messages_test
