// The durable state: messages wait until it is on disk, and a restart goes on from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/sim/sim_file_system.h"
#include "scheduler/state/state_keeper.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler::kept_state_test {
namespace {

constexpr char kFolder[] = "/state";

class KeptStateTest : public ::testing::Test {
 protected:
  void Make(std::uint32_t servers, std::uint32_t workers = 2) {
    cluster_ = std::make_unique<TestCluster>(1, servers, workers);
    cluster_->config.replication = 2;
    cluster_->config.scheduler_state = kFolder;
  }
  void Begin(std::uint32_t servers, std::uint32_t workers = 2) {
    Make(servers, workers);
    cluster_->StartAll();
    cluster_->RunUntilComplete();
    cluster_->world.RunFor(absl::Seconds(1));
  }
  void Restart() {
    cluster_->KillScheduler();
    cluster_->world.RunFor(absl::Seconds(1));
    cluster_->StartScheduler();
  }
  void SetDisk(const runtime::SimDiskFaults& faults) {
    cluster_->world.files(kSchedulerHost)->SetFaults(faults);
  }
  nlohmann::json Status() { return nlohmann::json::parse(cluster_->scheduler->StatusJson()); }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(KeptStateTest, NoNodeIsWelcomeBeforeTheStateIsOnDisk) {
  Make(1);
  cluster_->StartScheduler();
  cluster_->world.RunFor(absl::Seconds(1));
  SetDisk({.bytes_max = 1});
  TestNode* const server = cluster_->Start(Role::kServer);
  cluster_->world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(server->welcome.has_value());
  SetDisk({});
  EXPECT_TRUE(cluster_->RunUntil([&] { return server->welcome.has_value(); }, absl::Seconds(5)));
}

TEST_F(KeptStateTest, NoBarrierOpensBeforeThatIsKept) {
  Begin(2);
  SetDisk({.bytes_max = 1});
  for (TestNode* worker : cluster_->workers) worker->Enter("b", 1);
  cluster_->world.RunFor(absl::Seconds(5));
  for (const TestNode* worker : cluster_->workers) EXPECT_TRUE(worker->barriers.empty());
  SetDisk({});
  EXPECT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->barriers.empty(); },
                                 absl::Seconds(5)));
}

// Of changes that come while an earlier state is being written.
TEST(StateKeeperTest, SentMessagesAreInTheFile) {
  runtime::SimWorld world(1);
  const auto host = world.NewHost("scheduler");
  const auto runner = host->Spawn("loop");
  std::uint64_t version = 0;
  int said = 0;
  StateKeeper keeper(
      host.get(), runner->loop(), kFolder, [&] { return version; },
      [&] {
        State state;
        state.version = version;
        return state;
      });
  ASSERT_TRUE(keeper.Open().ok());
  const auto change = [&] {
    const std::uint64_t now = ++version;
    keeper.Once([&, now] {
      ++said;
      const absl::StatusOr<std::string> kept = host->files()->Read(keeper.path());
      ASSERT_TRUE(kept.ok()) << kept.status();
      EXPECT_GE(DecodeState(*kept)->version, now);
    });
  };
  for (int i = 0; i < 200; ++i) {
    world.Schedule(absl::Microseconds(world.Random() % 500), [&] {
      runner->loop()->Post([&] {
        change();
        runner->loop()->Post(change);  // when it is being written
      });
    });
  }
  world.RunFor(absl::Seconds(1));
  EXPECT_EQ(said, 400);
}

// Where the disk takes nothing for long.
TEST(StateKeeperTest, HoldsBackNoMoreThanItMay) {
  runtime::SimWorld world(1);
  const auto host = world.NewHost("scheduler");
  const auto runner = host->Spawn("loop");
  std::uint64_t version = 0;
  std::size_t said = 0;
  StateKeeper keeper(
      host.get(), runner->loop(), kFolder, [&] { return version; }, [] { return State(); });
  ASSERT_TRUE(keeper.Open().ok());
  ++version;
  for (std::size_t i = 0; i < kSendsHeldMax + 1; ++i) keeper.Once([&] { ++said; });
  world.RunFor(absl::Seconds(1));
  EXPECT_EQ(said, kSendsHeldMax);
}

// Its answer may have been lost.
TEST_F(KeptStateTest, ARepeatedEntryIntoAReleasedBarrierIsAnswered) {
  Begin(2);
  for (TestNode* worker : cluster_->workers) worker->Enter("b", 1);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[1]->barriers.empty(); }));
  Restart();
  cluster_->workers[0]->barriers.clear();
  cluster_->workers[0]->Enter("b", 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->barriers.empty(); },
                                 absl::Seconds(30)));
}

TEST_F(KeptStateTest, ANewNodeAfterARestartGetsANewId) {
  Begin(2);
  Restart();
  const TestNode* const late =
      cluster_->Start(Role::kServer, [](Config* config) { config->elastic = true; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return late->welcome.has_value(); }));
  for (const auto& node : cluster_->nodes) {
    if (node.get() == late) continue;
    EXPECT_NE(node->welcome->node, late->welcome->node);
  }
}

// Servers take no lower numbers than they have seen.
TEST_F(KeptStateTest, CheckpointsNumbersGoOn) {
  Begin(2);
  const auto newest = [&] {
    TestNode* const server = cluster_->servers[0];
    server->prepares.clear();
    const auto tool = cluster_->Ask("checkpoint-save", {"saved"});
    EXPECT_TRUE(cluster_->RunUntil([&] { return !server->prepares.empty(); }));
    return server->prepares.empty() ? 0 : server->prepares.back();
  };
  const std::uint64_t first = newest();
  Restart();
  ASSERT_TRUE(cluster_->RunUntil([&] { return Status()["complete"] == true; }));
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_GT(newest(), first);
}

TEST_F(KeptStateTest, ADrainThatWasUnderWayEnds) {
  Begin(3);
  for (TestNode* server : cluster_->servers) server->reports_ready = false;
  TestNode* const drained = cluster_->servers[0];
  const auto tool = cluster_->Ask("drain", {absl::StrCat("server:", drained->welcome->rank)});
  cluster_->world.RunFor(absl::Seconds(1));
  Restart();
  cluster_->world.RunFor(absl::Seconds(1));
  for (TestNode* server : cluster_->servers) server->ReportReady();
  EXPECT_TRUE(cluster_->RunUntil([&] { return drained->over.has_value(); }, absl::Minutes(1)));
}

TEST_F(KeptStateTest, AServerThatWasBeingGivenItsTablesGetsShards) {
  Begin(2);
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  TestNode* const late = cluster_->StartWithoutTables();
  Restart();
  late->answers_installs = true;
  EXPECT_TRUE(cluster_->RunUntil(
      [&] {
        return Status()["complete"] == true && Status()["shards"]["servers"].size() == 3 &&
               Status()["shards"]["settled"] == true;
      },
      absl::Minutes(1)));
}

}  // namespace
}  // namespace leeway::scheduler::kept_state_test
