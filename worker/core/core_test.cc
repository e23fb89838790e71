// Tests of the core against scripted peers: which messages are sent, to which server, and when.
#include "worker/core/core.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status StatusOf(const absl::Status& status) { return status; }
template <class T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

std::vector<float> Iota(std::size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(CoreTest, PushesAndPullsATensorOverAllShards) {
  TestCluster cluster;
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {9000}));
  const std::vector<float> values = Iota(9000);
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, values)).ok());
  std::vector<float> got(9000, -1);
  EXPECT_TRUE(cluster.Await(cluster.Pull(table, {}, &got)).ok());
  EXPECT_EQ(got, values);
  EXPECT_EQ(cluster.core->stats().bytes_pushed, 36000u);
  EXPECT_EQ(cluster.core->stats().bytes_pulled, 36000u);
  EXPECT_EQ(cluster.core->stats().staleness_histogram.at(0), 9u);
  cluster.ExpectNoHoles();
}

TEST(CoreTest, PushesAndPullsRowsWithRepeatedKeys) {
  TestCluster cluster;
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Sparse("e", 2));
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {7, 2, 7}, {1, 2, 3, 4, 5, 6})).ok());
  std::vector<float> got(8, -1);
  EXPECT_TRUE(cluster.Await(cluster.Pull(table, {2, 7, 99, 7}, &got)).ok());
  EXPECT_THAT(got, ElementsAre(3, 4, 6, 8, 0, 0, 6, 8));
}

TEST(CoreTest, AnOperationWithoutKeysIsDoneAtOnce) {
  TestCluster cluster;
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Sparse("e", 2));
  const auto operation = cluster.Push(table, {}, {});
  EXPECT_TRUE(operation->done());
  EXPECT_TRUE(operation->status().ok());
}

TEST(CoreTest, TheOperationFailsForWrongLengths) {
  TestCluster cluster;
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {10}));
  const std::vector<float> nine(9);
  const auto operation = cluster.Push(table, {}, nine);
  ASSERT_TRUE(operation->done());
  EXPECT_EQ(operation->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(cluster.servers[0]->arrived.empty() && cluster.servers[1]->arrived.empty());
}

// Such a message would cost the connection, and be sent again over the next one, for ever.
TEST(CoreTest, ArgumentsThatNoPeerReadsAreRefused) {
  TestCluster cluster;
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Sparse("e", 2));
  for (const double rate : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    const auto push = cluster.Push(table, {7}, {1, 2}, {.learning_rate = rate});
    ASSERT_TRUE(push->done()) << rate;
    EXPECT_THAT(std::string(push->status().message()), HasSubstr("Options::learning_rate is"));
  }

  std::vector<absl::Status> said;
  const auto keep = [&](const auto& result) { said.push_back(StatusOf(result)); };
  for (const std::string& name :
       {std::string(256, 'x'), std::string("a\nb"), std::string("\xff")}) {
    cluster.core->OpenTable(name, absl::Seconds(1), keep);
    cluster.core->Barrier(Group::kWorkers, name, absl::Seconds(1), keep);
    cluster.core->Call(0, name, {}, absl::Seconds(1), keep);
  }
  cluster.core->OpenTable("", absl::Seconds(1), keep);
  cluster.core->Call(0, "", {}, absl::Seconds(1), keep);
  cluster.core->Barrier(static_cast<Group>(9), "", absl::Seconds(1), keep);
  cluster.core->Checkpoint(std::string(4096, 'x'), absl::Seconds(1), keep);
  TableSpec misspelt = TableSpec::Dense("w", {4});
  misspelt.codec = "oenbit";
  cluster.core->CreateTable(misspelt, absl::Seconds(1), keep);
  ASSERT_EQ(said.size(), 14u);  // at once, all of them
  for (const absl::Status& status : said) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  EXPECT_THAT(std::string(said[1].message()), HasSubstr("a barrier's name is 256 bytes long"));
  EXPECT_THAT(std::string(said[13].message()), HasSubstr("there is no codec named 'oenbit'"));
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {7}, {1, 2})).ok());
}

TEST(CoreTest, SurvivesLossDuplicatesAndReordering) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TestCluster cluster({.seed = seed});
    cluster.Connect();
    const auto table = cluster.MakeTable(TableSpec::Dense("w", {5000}));
    van::LinkFaults faults;
    faults.drop_probability = 0.2;
    faults.duplicate_probability = 0.2;
    faults.reorder_probability = 0.3;
    cluster.network.SetFaults(faults);
    const std::vector<float> ones(5000, 1);
    std::vector<std::shared_ptr<Operation>> pushes;
    for (int i = 0; i < 10; ++i) {
      pushes.push_back(cluster.Push(table, {}, ones));
      if (i % 3 == 0) {
        EXPECT_TRUE(cluster.core->Clock().ok());
      }
    }
    for (const auto& push : pushes) EXPECT_EQ(cluster.Await(push), absl::OkStatus());
    std::vector<float> got(5000);
    EXPECT_TRUE(cluster.Await(cluster.Pull(table, {}, &got)).ok());
    EXPECT_EQ(got, std::vector<float>(5000, 10)) << "seed " << seed;
    EXPECT_GT(cluster.core->stats().resends, 0u);
    cluster.ExpectNoHoles();
  }
}

TEST(CoreTest, TheSameSeedGivesTheSameTrace) {
  const auto run = [] {
    TestCluster cluster({.seed = 42});
    cluster.Connect();
    const auto table = cluster.MakeTable(TableSpec::Sparse("e", 2));
    van::LinkFaults faults;
    faults.drop_probability = 0.2;
    cluster.network.SetFaults(faults);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(cluster.Await(cluster.Push(table, {1, 2, 3}, {1, 1, 1, 1, 1, 1})).ok());
      EXPECT_TRUE(cluster.core->Clock().ok());
    }
    return cluster.world.trace_hash();
  };
  EXPECT_EQ(run(), run());
}

TEST(CoreTest, ResendsWithLongerAndLongerPauses) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  std::vector<absl::Time> times;
  cluster.servers[0]->intercept = [&](const proto::Request&) {
    times.push_back(cluster.world.Now());
    return true;
  };
  const std::vector<float> values(16);
  const absl::Status status =
      cluster.Await(cluster.Push(table, {}, values, Within(absl::Seconds(60))));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  ASSERT_GE(times.size(), 4u);
  EXPECT_GE(times[1] - times[0], absl::Seconds(2));
  EXPECT_GE(times[2] - times[1], absl::Seconds(4));
  EXPECT_GE(times[3] - times[2], absl::Seconds(8));
}

TEST(CoreTest, ARequestOfAnOlderEpochIsSentAgainWithTheNextMap) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [&](const proto::Request& request) {
    if (request.epoch >= 2) return false;
    cluster.servers[0]->Reply(request, absl::AbortedError("epoch 1 is older than 2"));
    return true;
  };
  const std::vector<float> values(16, 1);
  const auto push = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Milliseconds(1));
  EXPECT_FALSE(push->done());
  cluster.scheduler->map.version = cluster.scheduler->map.epoch = 2;
  cluster.scheduler->Publish();
  cluster.world.RunFor(absl::Milliseconds(1));
  EXPECT_TRUE(push->done() && push->status().ok());
  EXPECT_EQ(cluster.servers[0]->admitted.at(0).request.id.sequence, 1u);
}

TEST(CoreTest, ARequestToAServerThatIsNotReadyIsRepeatedSoon) {
  TestCluster cluster({.servers = 1, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  int refused = 0;
  cluster.servers[0]->intercept = [&](const proto::Request& request) {
    if (++refused > 3) return false;
    cluster.servers[0]->Reply(request, absl::UnavailableError("unknown worker"));
    return true;
  };
  const std::vector<float> values(16, 1);
  EXPECT_TRUE(cluster.Await(cluster.Push(table, {}, values, Within(absl::Seconds(1)))).ok());
  cluster.ExpectNoHoles();
}

TEST(CoreTest, RequestsFollowAShardToItsNewOwner) {
  TestCluster cluster({.servers = 2, .shards = 1});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {16}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const std::vector<float> values(16, 1);
  EXPECT_TRUE(cluster.core->Clock().ok());
  const auto first = cluster.Push(table, {}, values);
  const auto second = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Milliseconds(10));
  cluster.scheduler->map.version = cluster.scheduler->map.epoch = 2;
  cluster.scheduler->map.owners[0].server_rank = 1;
  const std::size_t ticks = cluster.servers[1]->ticks.size();
  cluster.scheduler->Publish();
  EXPECT_TRUE(cluster.Await(first).ok());
  EXPECT_TRUE(cluster.Await(second).ok());
  EXPECT_EQ(cluster.servers[1]->blocks.at(0)[0], 2);
  EXPECT_GT(cluster.servers[1]->ticks.size(), ticks);
  cluster.ExpectNoHoles();
}

TEST(CoreTest, UrgentRequestsOvertakeWaitingOnes) {
  TestCluster cluster({.servers = 1, .shards = 8, .configure = [](Config* config) {
                         config->push_window_bytes = 1 << 20;
                       }});
  cluster.Connect();
  const auto big = cluster.MakeTable(TableSpec::Dense("big", {1 << 20}));
  const auto urgent = cluster.MakeTable(TableSpec::Dense("urgent", {16}));
  const std::vector<float> values(1 << 20);
  const std::vector<float> few(16);
  const auto slow = cluster.Push(big, {}, values);
  const auto fast = cluster.Push(urgent, {}, few, {.priority = 1});
  EXPECT_TRUE(cluster.Await(fast).ok());
  EXPECT_FALSE(slow->done());
  EXPECT_LT(cluster.servers[0]->admitted.size(), 600u);  // of 1024 blocks
  EXPECT_TRUE(cluster.Await(slow).ok());
  cluster.ExpectNoHoles();
}

TEST(CoreTest, UnansweredPushesStayBelowTheWindow) {
  TestCluster cluster({.servers = 1, .shards = 4, .configure = [](Config* config) {
                         config->push_window_bytes = 64 << 10;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {1 << 18}));
  std::vector<proto::Request> kept;
  bool keep = true;
  cluster.servers[0]->intercept = [&](const proto::Request& request) {
    if (keep) kept.push_back(request);
    return keep;
  };
  const std::vector<float> values(1 << 18);
  const auto push = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(kept.size(), 16u);  // × 4 KiB
  keep = false;
  EXPECT_TRUE(cluster.Await(push).ok());
}

TEST(CoreTest, RequestsOverALostConnectionLeaveTheWindow) {
  TestCluster cluster({.servers = 1, .shards = 4, .configure = [](Config* config) {
                         config->push_window_bytes = 64 << 10;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {1 << 18}));
  cluster.servers[0]->intercept = [](const proto::Request&) { return true; };
  const std::vector<float> values(1 << 18);
  const auto push = cluster.Push(table, {}, values);
  cluster.world.RunFor(absl::Seconds(1));
  cluster.servers[0]->Restart();
  cluster.servers[0]->intercept = nullptr;
  EXPECT_TRUE(cluster.Await(push).ok());
}

TEST(CoreTest, HeldPushPullsDoNotStopThePushesBehindThem) {
  TestCluster cluster({.servers = 1, .shards = 4, .configure = [](Config* config) {
                         config->push_window_bytes = 64 << 10;
                       }});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {1 << 18}));
  std::size_t held = 0;
  cluster.servers[0]->intercept = [&](const proto::Request& request) {
    held += request.op == proto::Op::kPushPull ? 1 : 0;
    return true;
  };
  const std::vector<float> values(1 << 18);
  std::vector<float> result(1 << 18);
  const auto operation = cluster.PushPull(table, values, &result, Within(absl::Minutes(20)));
  cluster.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(held, 256u);  // all have arrived, though none was answered
  EXPECT_EQ(operation->clock_needed, 1u);
}

// ---- clocks ----

TEST(CoreTest, TicksCarryTheLastPushesThatAreNotSettledAndAreResent) {
  TestCluster cluster({.servers = 2, .shards = 4});
  cluster.Connect();
  const auto table = cluster.MakeTable(TableSpec::Dense("w", {4096}));  // a block a shard
  const std::vector<float> values(4096, 1);
  int drops = 2;
  cluster.servers[1]->drop_tick = [&](const proto::ClockTick&) { return drops-- > 0; };
  (void)cluster.Push(table, {}, values);
  const auto push = cluster.Push(table, {}, values);
  EXPECT_TRUE(cluster.core->Clock().ok());
  EXPECT_EQ(cluster.core->clock(), 1u);
  const auto next = cluster.Push(table, {}, values);  // of the clock after
  EXPECT_TRUE(cluster.Await(push).ok());
  cluster.world.RunFor(absl::Seconds(20));
  EXPECT_EQ(cluster.servers[0]->ticks.size(), 1u);
  ASSERT_EQ(cluster.servers[1]->ticks.size(), 3u);
  const proto::ClockTick& tick = cluster.servers[1]->ticks[0];
  EXPECT_EQ(tick.clock, 1u);
  ASSERT_EQ(tick.watermarks.size(), 2u);
  EXPECT_EQ(tick.watermarks[0].shard, 1u);
  EXPECT_EQ(tick.watermarks[0].sequence, 2u);
  EXPECT_TRUE(tick.watermarks[0].held);
  EXPECT_EQ(tick.watermarks[1].shard, 3u);
  EXPECT_TRUE(cluster.servers[1]->ticks[2].watermarks.empty());  // all were answered meanwhile
}

}  // namespace
}  // namespace leeway::worker
