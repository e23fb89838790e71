// Reports of servers that cannot reach each other, under the whole scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/messages/chain.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler::links_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> Ranks(const std::vector<proto::ShardOwner>& places) {
  std::vector<std::uint32_t> ranks;
  for (const proto::ShardOwner& place : places) ranks.push_back(place.server_rank);
  return ranks;
}

class LinksTest : public ::testing::Test {
 protected:
  void Begin(std::uint32_t servers, std::uint32_t replication) {
    cluster_ = std::make_unique<TestCluster>(1, servers, 1);
    cluster_->config.replication = replication;
    cluster_->StartAll();
    cluster_->RunUntilComplete();
    Pass();
  }
  void Pass() { cluster_->world.RunFor(absl::Seconds(3)); }
  std::vector<std::uint32_t> Members(std::uint32_t shard = 0) const {
    return Ranks(proto::ChainOf(*cluster_->scheduler->map(), shard).members);
  }
  std::uint64_t Epoch() const { return cluster_->scheduler->map()->epoch; }
  TestNode* Server(std::uint32_t rank) const {
    for (TestNode* server : cluster_->servers) {
      if (server->welcome->rank == rank) return server;
    }
    return nullptr;
  }
  void SilenceAtScheduler(std::uint32_t rank) {
    cluster_->network.Cut(Server(rank)->name(), kSchedulerHost);
    cluster_->world.RunFor(cluster_->config.heartbeat_interval);  // what is under way arrives
  }
  // A server says it with each heartbeat, until the chain has changed.
  void ReportHandover(std::uint32_t from, std::uint32_t to) {
    const std::uint64_t epoch = Epoch();
    for (int i = 0; i < 4; ++i) {
      Server(from)->Say(
          proto::LinkReport{.epoch = epoch, .shard = 0, .server = to, .handover = true});
      cluster_->world.RunFor(cluster_->config.heartbeat_interval);
    }
  }
  void Report(std::uint32_t from, std::uint32_t to, std::uint64_t epoch, std::uint32_t shard = 0,
              bool handover = false) {
    Server(from)->Say(
        proto::LinkReport{.epoch = epoch, .shard = shard, .server = to, .handover = handover});
    Pass();
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(LinksTest, AnUnreachableServerGoesOffTheChainAndIsReplaced) {
  Begin(3, 2);
  const std::vector<std::uint32_t> before = Members();
  const std::uint32_t third = 3 - before[0] - before[1];
  Report(before[0], before[1], Epoch());
  EXPECT_THAT(Members(), ElementsAre(before[0], third));
}

TEST_F(LinksTest, AServerReportsOnlyItsOwnLinks) {
  Begin(3, 2);
  const std::uint64_t epoch = Epoch();
  const std::vector<std::uint32_t> before = Members();
  const std::uint32_t third = 3 - before[0] - before[1];
  Report(before[1], before[0], epoch);  // of the one before it
  Report(third, before[1], epoch);      // of a chain that it is not in
  Report(third, before[0], epoch, 0, /*handover=*/true);
  Report(before[0], before[0], epoch);
  Report(before[0], 99, epoch);
  Report(before[0], before[1], epoch, 1 << 19);
  cluster_->workers[0]->Say(
      proto::LinkReport{.epoch = epoch, .shard = 0, .server = before[1], .handover = false});
  Pass();
  EXPECT_EQ(Epoch(), epoch);
}

TEST_F(LinksTest, AReportFromBeforeTheChainChangedIsIgnored) {
  Begin(3, 2);
  const std::uint64_t epoch = Epoch();
  const std::vector<std::uint32_t> before = Members();
  Report(before[0], before[1], epoch);
  const std::vector<std::uint32_t> after = Members();
  ASSERT_NE(after, before);
  const std::uint64_t now = Epoch();
  Report(after[0], after[1], epoch);
  EXPECT_EQ(Epoch(), now);
}

TEST_F(LinksTest, WithoutAnotherServerAReplicaIsMissingUntilItIsTriedAgain) {
  Begin(2, 2);
  const std::vector<std::uint32_t> before = Members();
  Report(before[0], before[1], Epoch());
  EXPECT_THAT(Members(), ElementsAre(before[0]));
  cluster_->world.RunFor(4 * cluster_->config.failure_timeout);
  EXPECT_EQ(Members(), before);
}

// The old head is heard by the scheduler: the new one need not wait for it.
TEST_F(LinksTest, ANewHeadWithoutAHandoverIsToldToLead) {
  Begin(2, 2);
  const std::vector<std::uint32_t> before = Members();
  Server(before[0])->leads.clear();
  ReportHandover(before[1], before[0]);
  ASSERT_FALSE(Server(before[0])->leads.empty());
  const auto& lead = Server(before[0])->leads[0];
  EXPECT_EQ(lead.shard, 0u);
  EXPECT_EQ(lead.from, before[1]);
  EXPECT_THAT(Members(), ElementsAre(before[0]));  // the one that had been the head was behind it
}

// It died before it could take the shard over, and its deadline has not passed.
TEST_F(LinksTest, TheOldHeadStaysWhereTheNewOneIsNotHeard) {
  Begin(2, 2);
  const std::vector<std::uint32_t> before = Members();
  SilenceAtScheduler(before[0]);
  ReportHandover(before[1], before[0]);
  EXPECT_EQ(Members(), before);
}

TEST_F(LinksTest, AReportOfAnEarlierHandoverDoesNotShowThatTheNewHeadLives) {
  Begin(2, 2);
  const std::vector<std::uint32_t> before = Members();
  Report(before[1], before[0], Epoch(), 0, /*handover=*/true);
  cluster_->world.RunFor(cluster_->config.failure_timeout);
  SilenceAtScheduler(before[0]);
  ReportHandover(before[1], before[0]);
  EXPECT_EQ(Members(), before);
}

// ---- the planner ----

TEST(ApartTest, TheLastMemberIsNeverDropped) {
  ChainPlanner planner(2);
  planner.Deal({1, 1}, 1);
  const std::vector<std::uint32_t> members = Ranks(planner.chains()[0].members);
  EXPECT_FALSE(planner.Separate(0, members[1], members[0]));
  EXPECT_FALSE(planner.Separate(1, members[0], members[1]));
  EXPECT_TRUE(planner.Separate(0, members[0], members[1]));
  EXPECT_FALSE(planner.Separate(0, members[0], members[1]));
  EXPECT_THAT(Ranks(planner.chains()[0].members), ElementsAre(members[0]));
}

TEST(ApartTest, NoStateTransferBetweenServersThatAreApart) {
  ChainPlanner planner(2);
  planner.Deal({1, 1}, 1);
  const std::vector<std::uint32_t> members = Ranks(planner.chains()[0].members);
  planner.Separate(0, members[0], members[1]);
  planner.SetApart({{0, 1}});
  EXPECT_FALSE(planner.Step());
  EXPECT_TRUE(planner.Settled());
  planner.SetApart({});
  EXPECT_TRUE(planner.Step());
  EXPECT_THAT(Ranks(planner.chains()[0].joining), ElementsAre(members[1]));
  EXPECT_TRUE(planner.Separate(0, members[0], members[1]));  // the joining one
  EXPECT_THAT(planner.chains()[0].joining, IsEmpty());
}

TEST(ApartTest, NothingIsMovedToAServerThatItsLastReplicaCannotReach) {
  ChainPlanner planner(1);
  planner.Deal({1}, 4);
  planner.SetApart({{0, 1}});
  planner.Add(1, 1);
  planner.Balance({});
  EXPECT_FALSE(planner.Step());
  EXPECT_EQ(planner.PlacesOn(1), 0u);
}

}  // namespace
}  // namespace leeway::scheduler::links_test
