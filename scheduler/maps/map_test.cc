#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "proto/messages/limits.h"
#include "runtime/sim/sim_world.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/maps/map_publisher.h"

namespace leeway::scheduler {
namespace {

using proto::ShardOwner;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(DealShards, NeighboursLieOnDifferentServers) {
  EXPECT_THAT(DealShards({2, 1}, 5),
              ElementsAre(ShardOwner{0, 0}, ShardOwner{1, 0}, ShardOwner{0, 1}, ShardOwner{0, 0},
                          ShardOwner{1, 0}));
}

TEST(DealShards, ThirtyTwoAThreadByDefault) {
  EXPECT_EQ(DealShards({2, 3}, 0).size(), 160u);
  EXPECT_EQ(DealShards({2, 3}, 7).size(), 7u);
  EXPECT_THAT(DealShards({}, 7), IsEmpty());
}

TEST(DealShards, StaysWithinTheLimit) {
  EXPECT_EQ(DealShards(std::vector<std::uint32_t>(4096, 256), 0).size(), proto::kShardsMax);
}

// A cluster of two servers and a worker; maps that are sent are recorded as (node, version).
class MapTest : public ::testing::Test, private ClusterMaps::Source {
 protected:
  MapTest() {
    for (std::uint64_t incarnation : {10, 11}) nodes_.push_back(Admit(Role::kServer, incarnation));
    nodes_.push_back(Admit(Role::kWorker, 12));
  }
  Node* Admit(Role role, std::uint64_t incarnation, bool elastic = false) {
    proto::Join join;
    join.elastic = elastic;
    join.role = role;
    join.num_servers = 2;
    join.num_workers = 1;
    if (role == Role::kServer) join.endpoints = {"sim://server/0"};
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    return *members_.Admit(join, identity);
  }
  std::vector<std::pair<std::uint32_t, std::uint64_t>> Sent() { return std::exchange(sent_, {}); }
  void Complete() {
    members_.UpdateComplete();
    planner_.Deal({1, 1}, 4);
  }
  std::shared_ptr<const proto::ClusterMap> Next() {
    maps_.Change();
    return maps_.newest();
  }
  void Publish() { publisher_.Publish(Next(), now_); }
  void Die(int server) {
    members_.Retire(nodes_[server], Node::State::kDead, "");
    planner_.Remove(nodes_[server]->rank);
  }

  MembershipTable members_{2, 1};
  ChainPlanner planner_{2};
  std::vector<proto::TableSettings> settings_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sent_;
  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("scheduler");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("loop");
  ClusterMaps maps_{runner_->loop(), &members_, this, absl::Seconds(1),
                    [this](const Node& node, const proto::ClusterMap& map) {
                      sent_.emplace_back(node.id, map.version / kVersionStride);
                    }};
  MapPublisher& publisher_ = *maps_.publisher();
  std::vector<Node*> nodes_;  // ids 2, 3 (servers) and 4, and those that come later
  absl::Time now_ = absl::UnixEpoch();

 private:
  bool running() const override { return true; }
  const std::vector<proto::Chain>& Chains() const override { return planner_.chains(); }
  std::vector<proto::CodecSwitch> Codecs() const override { return {}; }
  std::vector<proto::TableSettings> Settings() const override { return settings_; }
  void OnNewVersion(std::uint64_t) override {}
};

TEST_F(MapTest, TheEpochIsOneWhenCompleteAndGrowsWithServersAndChains) {
  EXPECT_EQ(Next()->epoch, 0u);
  EXPECT_THAT(maps_.newest()->owners, IsEmpty());
  Complete();
  EXPECT_EQ(Next()->epoch, 1u);
  EXPECT_EQ(maps_.newest()->owners.size(), 4u);
  EXPECT_EQ(maps_.newest()->replicas.size(), 4u);
  members_.Retire(nodes_[2], Node::State::kLeft, "");
  EXPECT_EQ(Next()->epoch, 1u);
  EXPECT_EQ(maps_.newest()->workers[0].state, proto::WorkerState::kLeft);
  Die(1);
  const auto map = Next();
  EXPECT_EQ(map->epoch, 2u);
  EXPECT_EQ(map->version, 4 * kVersionStride);
  EXPECT_FALSE(map->servers[1].alive);
  EXPECT_EQ(map->owners, std::vector<ShardOwner>(4, ShardOwner{0, 0}));
  EXPECT_THAT(map->replicas, IsEmpty());
  EXPECT_THAT(maps_.concerned(), ElementsAre(0));
  EXPECT_EQ(maps_.Since(0), 2u);
  EXPECT_EQ(maps_.Since(9), 0u);
}

TEST_F(MapTest, ALostShardHasNoOwner) {
  Complete();
  Die(0);
  Die(1);
  EXPECT_EQ(Next()->owners, std::vector<ShardOwner>(4, ShardOwner{proto::kNoServer, 0}));
}

TEST_F(MapTest, GoesOnBehindARestoredMap) {
  Complete();
  maps_.Restore(7, 3);
  EXPECT_EQ(maps_.newest()->version, 7u);
  EXPECT_EQ(Next()->epoch, 3u);
  EXPECT_EQ(maps_.newest()->version, kVersionStride);
  EXPECT_EQ(maps_.Since(0), 3u);
}

TEST_F(MapTest, AnUrgentMapWaitsOnlyForThoseItConcerns) {
  Complete();
  publisher_.Hurry({1}, now_);
  Publish();
  Sent();
  publisher_.OnAck(*nodes_[1], 1 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 1)));
  EXPECT_FALSE(publisher_.ServersHaveIt());
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  EXPECT_TRUE(publisher_.ServersHaveIt());
  Publish();  // not urgent any more
  Sent();
  publisher_.OnAck(*nodes_[1], 2 * kVersionStride, now_);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(MapTest, AnUrgentMapWaitsOnlyBriefly) {
  Complete();
  publisher_.Hurry({0, 1}, now_);
  Publish();
  Sent();
  publisher_.OnAck(*nodes_[1], 1 * kVersionStride, now_);
  publisher_.Advance(now_);
  EXPECT_THAT(Sent(), IsEmpty());
  publisher_.Advance(now_ + kUrgentPatience);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 1)));
}

TEST_F(MapTest, AnUrgentMapThatChangesATableWaitsForEveryServerWithShards) {
  Complete();
  settings_ = {{.table = 1, .number = 1}};
  const auto changed = Next();
  publisher_.Hurry({1}, now_);
  publisher_.Publish(changed, now_);
  Sent();
  publisher_.OnAck(*nodes_[1], 1 * kVersionStride, now_);
  publisher_.Advance(now_ + kUrgentPatience);
  EXPECT_THAT(Sent(), IsEmpty());
  // The next one tells the same of tables: it is enough that all have the one before.
  Publish();
  Sent();
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  publisher_.OnAck(*nodes_[1], 2 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 2)));
}

TEST_F(MapTest, WorkersGetItOnceEveryServerWithShardsHasIt) {
  Complete();
  Publish();
  EXPECT_THAT(Sent(), ElementsAre(Pair(2, 1), Pair(3, 1)));
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  EXPECT_THAT(Sent(), IsEmpty());
  publisher_.OnAck(*nodes_[1], 1 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 1)));
}

TEST_F(MapTest, AServerThatDiesIsNotWaitedFor) {
  Complete();
  Publish();
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  members_.Retire(nodes_[1], Node::State::kDead, "");
  Publish();
  EXPECT_THAT(Sent(), ElementsAre(Pair(2, 1), Pair(3, 1), Pair(2, 2)));
  publisher_.OnAck(*nodes_[0], 2 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 2)));
}

TEST_F(MapTest, AcknowledgementsOfTheFutureAreIgnored) {
  Complete();
  Publish();
  Sent();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 7 * kVersionStride, now_);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(MapTest, UnacknowledgedMapsAreResentEverMoreRarely) {
  Complete();
  Publish();
  publisher_.OnAck(*nodes_[0], 1 * kVersionStride, now_);
  Sent();
  std::vector<int> seconds;
  for (int second = 1; second <= 60; ++second) {
    now_ += absl::Seconds(1);
    publisher_.Resend(now_);
    for (const auto& [node, version] : Sent()) {
      EXPECT_EQ(node, 3u);
      seconds.push_back(second);
    }
  }
  EXPECT_THAT(seconds, ElementsAre(1, 3, 7, 15, 31, 47));
}

TEST_F(MapTest, ANodeThatConnectsAnewGetsTheMapItMayHave) {
  Complete();
  Publish();
  Sent();
  publisher_.OnRejoin(*nodes_[2], now_);
  EXPECT_THAT(Sent(), IsEmpty());
  publisher_.OnRejoin(*nodes_[0], now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(2, 1)));
}

// A server that has just joined, and is slow or stalls.
TEST_F(MapTest, WorkersDoNotWaitForAServerWithoutShards) {
  Complete();
  Publish();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 1 * kVersionStride, now_);
  nodes_.push_back(Admit(Role::kServer, 13, /*elastic=*/true));
  Publish();
  Sent();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 2 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 2)));
  EXPECT_TRUE(publisher_.ServersHaveIt());
  EXPECT_FALSE(publisher_.HasTakenOne(*nodes_[3]));
  // Not where a table is changed, nor where that is urgent.
  settings_ = {{.table = 1, .number = 1}};
  const auto changed = Next();
  publisher_.Hurry({1}, now_);
  publisher_.Publish(changed, now_);
  Sent();
  publisher_.OnAck(*nodes_[1], 3 * kVersionStride, now_);
  publisher_.Advance(now_ + kUrgentPatience);
  EXPECT_THAT(Sent(), IsEmpty());  // the first one has shards
  publisher_.OnAck(*nodes_[0], 3 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 3)));
  // Once it is to have some, workers wait for it, whatever the map is about.
  auto joining = *Next();
  joining.replicas.push_back({.shard = 0, .place = {.server_rank = 2}, .joining = true});
  publisher_.Publish(std::make_shared<const proto::ClusterMap>(joining), now_);
  Sent();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 4 * kVersionStride, now_);
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_FALSE(publisher_.ServersHaveIt());
  publisher_.OnAck(*nodes_[3], 4 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 4)));
}

TEST_F(MapTest, AServerThatHasLostItsShardsIsWaitedForUntilItKnows) {
  Complete();
  Publish();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 1 * kVersionStride, now_);
  for (const std::uint64_t version : {2, 3}) {
    auto map = *Next();
    map.owners.assign(4, {.server_rank = 0});
    map.replicas.clear();
    publisher_.Publish(std::make_shared<const proto::ClusterMap>(map), now_);
    publisher_.OnAck(*nodes_[0], version * kVersionStride, now_);
  }
  Sent();
  EXPECT_FALSE(publisher_.ServersHaveIt());
  publisher_.OnAck(*nodes_[1], 2 * kVersionStride, now_);
  EXPECT_THAT(Sent(), ElementsAre(Pair(4, 3)));
  EXPECT_TRUE(publisher_.ServersHaveIt());
}

// When shards come from a checkpoint, all servers must know their own.
TEST_F(MapTest, WhileWorkersAreHeldAllServersAreWaitedFor) {
  Complete();
  nodes_.push_back(Admit(Role::kServer, 13, /*elastic=*/true));
  publisher_.HoldWorkers(true, now_);
  Publish();
  for (int server : {0, 1}) publisher_.OnAck(*nodes_[server], 1 * kVersionStride, now_);
  EXPECT_FALSE(publisher_.ServersHaveIt());
  publisher_.OnAck(*nodes_[3], 1 * kVersionStride, now_);
  EXPECT_TRUE(publisher_.ServersHaveIt());
}

}  // namespace
}  // namespace leeway::scheduler
