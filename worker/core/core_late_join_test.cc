// Tests of the core against scripted peers: a worker that joins while others are training.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LateJoinTest : public ::testing::Test {
 protected:
  explicit LateJoinTest(std::uint64_t start_clock = 0)
      : cluster_(
            {.servers = 3,
             .shards = 3,
             .late = true,
             .start_clock = start_clock,
             .configure = [](Config* config) { config->connect_timeout = absl::Minutes(5); }}) {
    for (std::uint64_t i = 0; i < 3; ++i) cluster_.servers[i]->enter_at = 40 + i;
  }

  void Start() {
    cluster_.core->Start([&](const absl::Status& status) {
      ready_ = true;
      result_ = status;
    });
  }
  void RunABit() { cluster_.world.RunFor(absl::Milliseconds(100)); }
  void ExpectStartsAt(std::uint64_t clock) {
    cluster_.RunUntil([&] { return ready_; });
    EXPECT_TRUE(result_.ok()) << result_;
    EXPECT_EQ(cluster_.core->clock(), clock);
    RunABit();
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (!cluster_.scheduler->map.servers[i].alive) continue;
      ASSERT_FALSE(cluster_.servers[i]->ticks.empty());
      EXPECT_EQ(cluster_.servers[i]->ticks.back().clock, clock);
      EXPECT_EQ(cluster_.servers[i]->ticks.back().since, clock);
    }
  }

  TestCluster cluster_;
  bool ready_ = false;
  absl::Status result_;
};

TEST_F(LateJoinTest, ALateWorkerStartsAtTheLargestClock) {
  Start();
  ExpectStartsAt(42);
  const auto table = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  const std::vector<float> values(16, 1);
  EXPECT_TRUE(cluster_.Await(cluster_.Push(table, {}, values)).ok());
  EXPECT_TRUE(cluster_.core->Clock().ok());
  EXPECT_EQ(cluster_.core->clock(), 43u);
  for (const auto& server : cluster_.servers) {
    for (const auto& seen : server->admitted) EXPECT_EQ(seen.request.clock, 42u);
  }
}

// The clock of the checkpoint is where the founding workers began.
class RestoredLateJoinTest : public LateJoinTest {
 protected:
  RestoredLateJoinTest() : LateJoinTest(30) {}
};

TEST_F(RestoredLateJoinTest, ALateWorkerStartsWhereTheOthersAreByNow) {
  Start();
  ExpectStartsAt(42);
}

TEST_F(RestoredLateJoinTest, AFoundingWorkerStartsAtTheClockOfTheCheckpoint) {
  cluster_.scheduler->map.workers[0].late = false;
  Start();
  cluster_.RunUntil([&] { return ready_; });
  EXPECT_EQ(cluster_.core->clock(), 30u);
}

TEST_F(LateJoinTest, AFoundingWorkerAsksNoServer) {
  cluster_.scheduler->map.workers[0].late = false;
  Start();
  cluster_.RunUntil([&] { return ready_; });
  EXPECT_EQ(cluster_.core->clock(), 0u);
  EXPECT_TRUE(cluster_.servers[0]->enters.empty());
}

TEST_F(LateJoinTest, AMapFromBeforeItJoinedDoesNotCount) {
  cluster_.scheduler->map.workers.clear();
  Start();
  RunABit();
  EXPECT_FALSE(ready_);
  cluster_.scheduler->map.workers.push_back({.node = 10, .rank = 0, .late = true});
  cluster_.PublishNewEpoch();
  ExpectStartsAt(42);
}

TEST_F(LateJoinTest, JoinsThoughEverySecondMessageIsLost) {
  van::LinkFaults faults;
  faults.drop_probability = 0.5;
  for (const char* server : {"server0", "server1", "server2"}) {
    cluster_.network.SetFaults("worker", server, faults);
    cluster_.network.SetFaults(server, "worker", faults);
  }
  Start();
  cluster_.RunUntil([&] { return ready_; });
  EXPECT_TRUE(result_.ok()) << result_;
  EXPECT_EQ(cluster_.core->clock(), 42u);
}

TEST_F(LateJoinTest, WhenAServerDiesItsSuccessorIsAskedAgain) {
  cluster_.servers[1]->enter_at.reset();
  Start();
  RunABit();
  EXPECT_FALSE(ready_);
  EXPECT_FALSE(cluster_.servers[2]->enters.empty());
  cluster_.servers[2]->enter_at = 50;  // at the next head another worker is further on
  cluster_.FailOver(1);
  ExpectStartsAt(50);
  EXPECT_EQ(cluster_.servers[0]->enters.back().epoch, 2u);
}

TEST_F(LateJoinTest, AnAnswerOfAnotherEpochDoesNotCount) {
  for (auto& server : cluster_.servers) server->enter_at.reset();
  Start();
  RunABit();
  for (auto& server : cluster_.servers) {
    server->Say(proto::EnterClockReply{.clock = 7, .epoch = 0});
  }
  RunABit();
  EXPECT_FALSE(ready_);
  for (auto& server : cluster_.servers) server->enter_at = 9;
  ExpectStartsAt(9);
}

TEST_F(LateJoinTest, TheDeadlineNamesTheServersThatDidNotAnswer) {
  cluster_.servers[1]->enter_at.reset();
  Start();
  cluster_.RunUntil([&] { return ready_; });
  EXPECT_EQ(result_.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(result_.message()),
      AllOf(HasSubstr("server 1 thread 0 (sim://server1/data), last heard "),
            HasSubstr("ago has not let this worker in"), HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS")));
}

}  // namespace
}  // namespace leeway::worker
