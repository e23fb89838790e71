// Tests of the core against scripted peers: requests whose shard's head dies, is replaced or
// forgets.
#include <algorithm>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kOneBlock = 1024;  // one block and one shard

TableSpec Asynchronous() {
  TableSpec spec = TableSpec::Dense("async", {kOneBlock});
  spec.consistency = Consistency::Asp();
  return spec;
}

// Two servers that hold BSP pushes until their clock closes, and one shard, which server 0 leads.
class HeadsTest : public ::testing::Test {
 protected:
  explicit HeadsTest(std::function<void(Config*)> configure = nullptr)
      : cluster_({.servers = 2, .shards = 1, .configure = std::move(configure)}) {
    cluster_.Connect();
    for (auto& server : cluster_.servers) server->provisional = true;
    bsp_ = cluster_.MakeTable(TableSpec::Dense("bsp", {kOneBlock}));
    asp_ = cluster_.MakeTable(Asynchronous());
  }

  void PushOk(const std::shared_ptr<const TableInfo>& table, float value) {
    // The array is overwritten and freed once the operation has completed.
    auto values = std::make_unique<std::vector<float>>(kOneBlock, value);
    const auto push = cluster_.Push(table, {}, *values);
    EXPECT_TRUE(cluster_.Await(push).ok()) << push->status();
    std::fill(values->begin(), values->end(), -1.0f);
  }
  void Clock() { EXPECT_TRUE(cluster_.core->Clock().ok()); }
  void RunABit() { cluster_.world.RunFor(absl::Milliseconds(20)); }
  ScriptedServer& head() { return *cluster_.servers[0]; }
  ScriptedServer& next() { return *cluster_.servers[1]; }
  static std::vector<std::uint64_t> Numbers(const ScriptedServer& server) {
    std::vector<std::uint64_t> numbers;
    for (const auto& seen : server.admitted) numbers.push_back(seen.request.id.sequence);
    return numbers;
  }
  static float ValueOf(const ScriptedServer::Seen& seen) {
    return *reinterpret_cast<const float*>(seen.payload[0].data());
  }

  TestCluster cluster_;
  std::shared_ptr<const TableInfo> bsp_, asp_;
};

TEST_F(HeadsTest, APushThatWasAppliedAndNotAnsweredIsNotAppliedAgain) {
  head().mute = [](const proto::Request&) { return true; };
  const std::vector<float> values(kOneBlock, 1);
  const auto push = cluster_.Push(asp_, {}, values);
  RunABit();
  EXPECT_FALSE(push->done());
  cluster_.FailOver(0);
  const absl::Time start = cluster_.world.Now();
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_LT(cluster_.world.Now() - start,
            absl::Milliseconds(100));  // because of the map, not of a timer
  EXPECT_TRUE(next().admitted.empty());
  EXPECT_EQ(next().blocks.at(0)[0], 1);
}

TEST_F(HeadsTest, RequestsToADeadHeadWaitForTheNextOne) {
  cluster_.Crash(0);
  const std::vector<float> values(kOneBlock, 1);
  std::vector<float> got(kOneBlock);
  const auto push = cluster_.Push(asp_, {}, values);
  const auto pull = cluster_.Pull(asp_, {}, &got);
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_FALSE(push->done() || pull->done());
  cluster_.FailOver(0);
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_TRUE(cluster_.Await(pull).ok());
  EXPECT_EQ(got[7], 1);
}

TEST_F(HeadsTest, WithoutANextHeadTheDeadlineNamesTheSilentServer) {
  RunABit();
  cluster_.Crash(0);
  const std::vector<float> values(kOneBlock, 1);
  const absl::Status status =
      cluster_.Await(cluster_.Push(asp_, {}, values, Within(absl::Seconds(5))));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("server 0 thread 0 (sim://server0/data)"), HasSubstr("last heard")));
}

TEST_F(HeadsTest, AcceptedPushesGoToTheNextHeadWithTheUsersValuesAndTheTick) {
  PushOk(bsp_, 1);
  PushOk(bsp_, 2);
  Clock();
  PushOk(bsp_, 4);
  cluster_.FailOver(0);
  RunABit();
  ASSERT_THAT(Numbers(next()), ElementsAre(1, 2, 3));
  EXPECT_EQ(ValueOf(next().admitted[0]), 1);
  EXPECT_EQ(ValueOf(next().admitted[2]), 4);
  ASSERT_EQ(next().ticks.size(), 1u);
  EXPECT_EQ(next().ticks[0].clock, 1u);
  ASSERT_EQ(next().ticks[0].watermarks.size(), 1u);
  EXPECT_EQ(next().ticks[0].watermarks[0].sequence, 2u);  // the pushes of the clock, and no more
  next().Close(1);
  EXPECT_EQ(next().blocks.at(0)[0], 3);
  RunABit();
  // Pushes of a closed clock are never sent again.
  next().arrived.clear();
  ++cluster_.scheduler->map.epoch;
  cluster_.PublishNewEpoch();
  RunABit();
  ASSERT_EQ(next().arrived.size(), 1u);
  EXPECT_EQ(next().arrived[0].request.id.sequence, 3u);
}

// A push that is applied at once may be on all replicas while an earlier one is held at the head.
TEST_F(HeadsTest, AHeldPushIsSentAgainThoughALaterOneWasApplied) {
  PushOk(bsp_, 1);
  PushOk(asp_, 2);
  Clock();
  PushOk(asp_, 8);
  cluster_.FailOver(0);
  RunABit();
  EXPECT_THAT(Numbers(next()), ElementsAre(1));
  next().Close(1);
  EXPECT_EQ(next().blocks.at(0)[0], 11);  // the scripted server keeps both tables in one block
  PushOk(asp_, 16);
  EXPECT_EQ(next().admitted.back().request.after, 0u);
}

TEST_F(HeadsTest, TheNextHeadDoesNotWaitForSettledRequests) {
  PushOk(bsp_, 1);
  std::vector<float> got(kOneBlock);
  PushOk(asp_, 1);                                                  // 2, settled
  EXPECT_TRUE(cluster_.Await(cluster_.Pull(bsp_, {}, &got)).ok());  // 3, answered
  PushOk(bsp_, 1);                                                  // 4
  EXPECT_EQ(head().admitted[3].request.id.sequence, 4u);
  EXPECT_EQ(head().admitted[3].request.after, 1u);
  cluster_.FailOver(0);
  PushOk(bsp_, 1);  // 5
  EXPECT_THAT(Numbers(next()), ElementsAre(1, 4, 5));
}

TEST_F(HeadsTest, ARequestBehindOneThatIsAnsweredMeanwhileIsSentAgain) {
  head().intercept = [&](const proto::Request& request) { return request.id.sequence == 1; };
  const std::vector<float> values(kOneBlock, 1);
  std::vector<float> got(kOneBlock);
  const auto pull = cluster_.Pull(bsp_, {}, &got);
  const auto push = cluster_.Push(bsp_, {}, values);
  RunABit();
  EXPECT_FALSE(push->done());
  head().Reply(head().arrived[0].request, absl::DeadlineExceededError("worker 3 is late"));
  EXPECT_EQ(cluster_.Await(pull).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_EQ(head().admitted[0].request.after, 0u);
}

TEST_F(HeadsTest, WithoutReplicasNothingIsRetained) {
  head().provisional = false;
  PushOk(bsp_, 1);
  Clock();
  cluster_.FailOver(0);
  RunABit();
  EXPECT_TRUE(next().arrived.empty());
  ASSERT_EQ(next().ticks.size(), 1u);
  EXPECT_TRUE(next().ticks[0].watermarks.empty());
}

TEST_F(HeadsTest, ALostReportOfStableClocksIsRequestedAgain) {
  PushOk(bsp_, 1);
  Clock();
  RunABit();
  head().silent_stable = true;
  head().Close(1);
  cluster_.world.RunFor(absl::Seconds(15));
  EXPECT_GE(head().ticks.size(), 2u);
  const std::size_t ticks = head().ticks.size();
  cluster_.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(head().ticks.size(), ticks);  // the tick is not repeated any more
  cluster_.FailOver(0);
  RunABit();
  EXPECT_TRUE(next().arrived.empty());
}

TEST_F(HeadsTest, AnAcknowledgementOfAnotherEpochDoesNotCount) {
  PushOk(bsp_, 1);
  Clock();
  RunABit();
  head().Say(proto::ClockAck{.clock = 1, .stable = 1, .epoch = 0});
  head().Say(proto::ClockAck{.clock = 1, .stable = 1, .epoch = 2});
  RunABit();
  cluster_.FailOver(0);
  RunABit();
  EXPECT_THAT(Numbers(next()), ElementsAre(1));
}

TEST_F(HeadsTest, AHeadThatForgotHeldPushesGetsThemAgain) {
  PushOk(bsp_, 1);
  PushOk(bsp_, 2);
  head().ForgetHeld();
  Clock();
  cluster_.RunUntil([&] { return head().admitted.size() == 4; });
  head().Close(1);
  EXPECT_EQ(head().blocks.at(0)[0], 3);
}

// The shard may have had another head in between, which died with the held pushes.
TEST_F(HeadsTest, AfterASkippedEpochEverythingIsSentAgain) {
  PushOk(bsp_, 1);
  head().ForgetHeld();
  ++cluster_.scheduler->map.epoch;
  cluster_.PublishNewEpoch();
  RunABit();
  EXPECT_THAT(Numbers(head()), ElementsAre(1, 1));
}

TEST_F(HeadsTest, ANewProcessOfTheSameRankIsAnotherServer) {
  PushOk(bsp_, 1);
  proto::ServerEntry& entry = cluster_.scheduler->map.servers[0];
  entry.node = 77;
  entry.incarnation = 777;
  cluster_.PublishNewEpoch();
  RunABit();
  const std::vector<float> values(kOneBlock, 1);
  const auto push = cluster_.Push(bsp_, {}, values);
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(push->done());  // another process listens there
  EXPECT_EQ(head().arrived.size(), 1u);
  entry.node = 2;
  entry.incarnation = 100;
  cluster_.PublishNewEpoch();
  EXPECT_TRUE(cluster_.Await(push).ok());
  EXPECT_EQ(head().arrived.size(), 3u);  // all that the other head may have lacked
}

TEST_F(HeadsTest, AServerThatLearnsTheEpochLateSoonGetsTheTick) {
  PushOk(bsp_, 1);
  Clock();
  RunABit();
  const std::size_t before = head().ticks.size();
  const absl::Time start = cluster_.world.Now();
  head().drop_tick = [&](const proto::ClockTick&) {
    return cluster_.world.Now() - start < absl::Milliseconds(100);
  };
  cluster_.PublishNewEpoch();
  cluster_.world.RunFor(absl::Milliseconds(250));
  EXPECT_GE(head().ticks.size(), before + 3);
  EXPECT_EQ(head().arrived.size(), 1u);  // no reason to send retained pushes again
  const std::size_t heard = head().ticks.size();
  cluster_.world.RunFor(absl::Milliseconds(500));
  EXPECT_LE(head().ticks.size(), heard + 1);
}

TEST_F(HeadsTest, ALostShardFailsWithAdvice) {
  const std::vector<float> values(kOneBlock, 1);
  head().intercept = [](const proto::Request&) { return true; };
  const auto push = cluster_.Push(asp_, {}, values);
  RunABit();
  cluster_.scheduler->map.owners[0].server_rank = proto::kNoServer;
  cluster_.KillServer(0, "not heard for 10s");
  const absl::Status status = cluster_.Await(push);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("push to table 'async': all servers that held shard 0 are gone"),
                    HasSubstr("server 0 (sim://server0/data): not heard for 10s"),
                    HasSubstr("LEEWAY_REPLICATION=2")));
  // If the server comes back it is used again; requests that were given up leave no hole.
  cluster_.scheduler->map.owners[0].server_rank = 1;
  cluster_.PublishNewEpoch();
  RunABit();
  PushOk(asp_, 1);
  EXPECT_THAT(Numbers(next()), ElementsAre(2));
}

TEST(LateHeadsTest, AWorkerThatJoinsAfterALossIsToldOfIt) {
  TestCluster cluster({.servers = 2, .shards = 1});
  cluster.scheduler->map.owners[0].server_rank = proto::kNoServer;
  cluster.Connect();
  const auto table = cluster.MakeTable(Asynchronous());
  const std::vector<float> values(kOneBlock, 1);
  const absl::Status status = cluster.Await(cluster.Push(table, {}, values));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("servers that held shard 0 are gone"),
                                                   HasSubstr("LEEWAY_REPLICATION=2")));
}

TEST_F(HeadsTest, ALateRefusalOfAnAcceptedPushIsReported) {
  PushOk(bsp_, 1);
  next().intercept = [&](const proto::Request& request) {
    next().Reply(request, absl::ResourceExhaustedError("LEEWAY_HELD_BYTES_MAX"));
    return true;
  };
  cluster_.FailOver(0);
  RunABit();
  const absl::Status status = cluster_.core->Clock();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("push to table 'bsp' of clock 0"), HasSubstr("server 1"),
                    HasSubstr("LEEWAY_HELD_BYTES_MAX")));
  EXPECT_TRUE(cluster_.core->Clock().ok());
  EXPECT_EQ(cluster_.core->clock(), 2u);
}

TEST_F(HeadsTest, LeavingWaitsUntilItsClocksAreStable) {
  PushOk(bsp_, 1);
  Clock();
  PushOk(bsp_, 1);  // of the open clock, which leaving ends
  bool left = false;
  cluster_.core->Leave(absl::Seconds(30), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    left = true;
  });
  cluster_.world.RunFor(absl::Seconds(2));
  EXPECT_FALSE(left);
  head().Close(1);
  cluster_.world.RunFor(absl::Seconds(2));
  EXPECT_FALSE(left);
  EXPECT_EQ(cluster_.core->clock(), 2u);
  head().silent_stable = true;  // the report is lost
  head().Close(2);
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_TRUE(left);
}

TEST_F(HeadsTest, LeavingAtItsDeadlineReportsAnUnstableClock) {
  PushOk(bsp_, 1);
  absl::Status left = absl::UnknownError("not yet");
  cluster_.core->Leave(absl::Seconds(3), [&](const absl::Status& status) { left = status; });
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_EQ(left.code(), absl::StatusCode::kDeadlineExceeded) << left;
  EXPECT_THAT(std::string(left.message()), HasSubstr("is lost if a server dies"));
}

class SmallHeadsTest : public HeadsTest {
 protected:
  SmallHeadsTest()
      : HeadsTest([](Config* config) { config->held_bytes_max = 2 * kOneBlock * sizeof(float); }) {}
};

TEST_F(SmallHeadsTest, RetainedBytesHaveANamedLimit) {
  for (int i = 0; i < 3; ++i) PushOk(bsp_, 1);
  const std::vector<float> values(kOneBlock, 1);
  const absl::Status status = cluster_.Await(cluster_.Push(bsp_, {}, values));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("push to table 'bsp'"), HasSubstr("12288 bytes"),
                    HasSubstr("LEEWAY_HELD_BYTES_MAX"), HasSubstr("Clock()")));
  PushOk(asp_, 1);  // which is not retained
  Clock();
  head().Close(1);
  RunABit();
  PushOk(bsp_, 1);
}

// The head dies at some moment, and so may the next one. Every push counts once.
TEST(HeadsStormTest, NoPushIsLostOrAppliedTwiceWheneverTheHeadDies) {
  constexpr int kIterations = 12;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    TestCluster cluster({.servers = 3, .shards = 2, .seed = seed});
    cluster.Connect();
    for (auto& server : cluster.servers) server->provisional = true;
    const bool bsp = seed % 2 == 0;
    TableSpec spec = TableSpec::Dense("w", {2 * kOneBlock});
    if (!bsp) spec.consistency = Consistency::Asp();
    const auto table = cluster.MakeTable(spec);
    van::LinkFaults faults;
    faults.drop_probability = 0.1;
    faults.duplicate_probability = 0.1;
    faults.reorder_probability = 0.1;
    faults.delay_max = absl::Milliseconds(5);
    for (const char* server : {"server0", "server1", "server2"}) {
      cluster.network.SetFaults("worker", server, faults);
      cluster.network.SetFaults(server, "worker", faults);
    }
    const std::vector<float> ones(2 * kOneBlock, 1);
    std::vector<std::shared_ptr<Operation>> pushes;
    const auto close = [&] {
      // A clock closes at the server that has all its pushes.
      for (auto& server : cluster.servers) {
        server->CloseUpToTick();
      }
    };
    for (int i = 0; i < kIterations; ++i) {
      pushes.push_back(cluster.Push(table, {}, ones));
      pushes.push_back(cluster.Push(table, {}, ones));
      EXPECT_TRUE(cluster.core->Clock().ok());
      cluster.world.RunFor(absl::Microseconds(static_cast<std::int64_t>(seed * 377 % 5000)));
      if (i % 3 == 2) close();
      if (i == 4) cluster.FailOver(0);
      if (i == 8) cluster.FailOver(1);
    }
    for (const auto& push : pushes) EXPECT_TRUE(cluster.Await(push).ok()) << push->status();
    cluster.RunUntil([&] {
      close();
      return cluster.servers[2]->blocks[0].size() > 0 &&
             cluster.servers[2]->blocks[0][0] == 2 * kIterations &&
             cluster.servers[2]->blocks[1][0] == 2 * kIterations;
    });
    cluster.world.RunFor(absl::Seconds(30));
    close();
    EXPECT_EQ(cluster.servers[2]->blocks[0][0], 2 * kIterations) << "seed " << seed;
    EXPECT_EQ(cluster.servers[2]->blocks[1][0], 2 * kIterations) << "seed " << seed;
  }
}

}  // namespace
}  // namespace leeway::worker
