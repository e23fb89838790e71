// The scheduler and its nodes over a network that loses, repeats and reorders messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

void MakeLossy(TestCluster* cluster) {
  van::LinkFaults faults;
  faults.delay_max = absl::Milliseconds(20);
  faults.drop_probability = 0.2;
  faults.duplicate_probability = 0.1;
  faults.reorder_probability = 0.2;
  faults.reorder_delay = absl::Milliseconds(50);
  cluster->network.SetFaults(faults);
}

bool AllHave(const TestCluster& cluster, std::size_t tables, std::size_t barriers) {
  for (const TestNode* worker : cluster.workers) {
    if (cluster.killed.contains(worker)) continue;
    if (worker->tables.size() < tables || worker->barriers.size() < barriers) return false;
  }
  return true;
}

bool AllKnowOfTheDeath(const TestCluster& cluster, const TestNode& dead) {
  for (const auto& node : cluster.nodes) {
    if (cluster.killed.contains(node.get())) continue;
    if (node->map->workers[dead.welcome->rank].state == proto::WorkerState::kAlive) return false;
  }
  return true;
}

// A cluster's whole life: joining, tables, barriers, a death, leaving. Returns the failure, or an
// empty text.
std::string Live(TestCluster* cluster) {
  cluster->StartAll();
  if (!cluster->RunUntil([&] { return cluster->Complete(); })) return "not complete";
  for (TestNode* worker : cluster->workers) {
    for (std::uint64_t i = 1; i <= 4; ++i) {
      worker->CreateTable(i, TableSpec::Dense(absl::StrCat("t", i), {i}));
    }
    worker->Enter("start", 1, absl::Minutes(1));
  }
  if (!cluster->RunUntil([&] { return AllHave(*cluster, 4, 1); })) return "tables or barrier";
  TestNode* dying = cluster->workers.back();
  for (TestNode* worker : cluster->workers) {
    if (worker != dying) worker->Enter("end", 1, absl::Minutes(1));
  }
  cluster->Kill(dying);
  if (!cluster->RunUntil([&] { return AllHave(*cluster, 4, 2); })) return "barrier after a death";
  if (!cluster->RunUntil([&] { return AllKnowOfTheDeath(*cluster, *dying); })) return "death";
  cluster->LeaveAllWorkers();
  if (!cluster->RunUntil([&] { return cluster->over.has_value(); })) return "no end";
  cluster->world.RunFor(absl::Seconds(30));
  return "";
}

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kError); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }
};

TEST_F(FaultsTest, EverythingStillCompletes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    TestCluster cluster(seed, 2, 3);
    MakeLossy(&cluster);
    ASSERT_EQ(Live(&cluster), "") << "seed " << seed;
    const van::SimNetwork::Faulted faulted = cluster.network.faulted();
    EXPECT_GT(faulted.dropped, 0u);
    EXPECT_GT(faulted.duplicated, 0u);
    EXPECT_GT(faulted.reordered, 0u);
    const std::uint32_t dead = cluster.workers.back()->welcome->rank;
    for (const TestNode* worker : cluster.workers) {
      if (cluster.killed.contains(worker)) continue;
      EXPECT_TRUE(worker->left.has_value() && worker->left->ok()) << "seed " << seed;
      for (const auto& [number, reply] : worker->tables) {
        EXPECT_TRUE(reply.result.ok()) << reply.result;
        EXPECT_EQ(reply.spec.name, absl::StrCat("t", number));
      }
      for (const auto& [barrier, result] : worker->barriers) EXPECT_TRUE(result.ok()) << result;
      // Each end is reported once, however often its message came.
      EXPECT_EQ(std::count_if(worker->downs.begin(), worker->downs.end(),
                              [&](const proto::NodeDown& down) {
                                return down.role == Role::kWorker && down.rank == dead;
                              }),
                1)
          << "seed " << seed;
    }
    for (const TestNode* server : cluster.servers) {
      EXPECT_EQ(server->installed.size(), 4u);
      EXPECT_EQ(server->welcomes, 1);
      ASSERT_TRUE(server->over.has_value()) << "seed " << seed;
      EXPECT_TRUE(server->over->ok()) << *server->over;
      EXPECT_EQ(server->overs, 1);
    }
    for (const auto& node : cluster.nodes) {
      EXPECT_TRUE(node->maps_only_grew) << node->name() << ", seed " << seed;
    }
    EXPECT_EQ(cluster.over->code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(FaultsTest, TheSameSeedGivesTheSameTrace) {
  const auto trace_of = [](std::uint64_t seed) {
    TestCluster cluster(seed, 2, 3);
    cluster.world.KeepTrace(true);
    MakeLossy(&cluster);
    EXPECT_EQ(Live(&cluster), "");
    return cluster.world.trace();
  };
  const std::string first = trace_of(5);
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(first, trace_of(5));
  EXPECT_NE(first, trace_of(6));
}

}  // namespace
}  // namespace leeway::scheduler
