// Tests of the core against scripted peers: a scheduler that goes away, comes back or moves, and
// requests to it.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/core/core.h"
#include "worker/testing/test_cluster.h"

namespace leeway::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SchedulerTest : public ::testing::Test {
 protected:
  explicit SchedulerTest()
      : cluster_({.servers = 1, .shards = 1, .failure_timeout = absl::Seconds(3)}) {
    cluster_.Connect();
    table_ = cluster_.MakeTable(TableSpec::Dense("w", {16}));
  }
  void ExpectTrains() {
    const std::vector<float> values(16, 1);
    EXPECT_TRUE(cluster_.Await(cluster_.Push(table_, {}, values)).ok());
    EXPECT_TRUE(cluster_.core->Clock().ok());
  }

  TestCluster cluster_;
  std::shared_ptr<const TableInfo> table_;
};

TEST_F(SchedulerTest, WithoutASchedulerTrainingContinuesAndItsRequestsWait) {
  cluster_.CrashScheduler();
  cluster_.world.RunFor(absl::Seconds(10));
  ExpectTrains();
  absl::Status released = absl::UnknownError("none");
  cluster_.core->Barrier(Group::kWorkers, "b", absl::Seconds(60),
                         [&](const absl::Status& status) { released = status; });
  cluster_.world.RunFor(absl::Seconds(20));
  cluster_.StartScheduler("sim://scheduler/main");
  cluster_.RunUntil([&] { return released.ok(); });
  EXPECT_EQ(cluster_.scheduler->barriers.size(), 1u);
  ExpectTrains();
}

TEST_F(SchedulerTest, AnUnansweredRequestSaysHowLongTheSchedulerIsSilent) {
  cluster_.CrashScheduler();
  cluster_.world.RunFor(absl::Seconds(10));
  absl::Status opened;
  bool done = false;
  cluster_.core->OpenTable("w", absl::Seconds(5), [&](const auto& result) {
    opened = result.status();
    done = true;
  });
  cluster_.RunUntil([&] { return done; });
  EXPECT_EQ(opened.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(opened.message()),
              AllOf(HasSubstr("opening table 'w': the scheduler at sim://scheduler/main has been "
                              "silent for 1"),
                    HasSubstr("waited 5s"), HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS")));
  ExpectTrains();
}

TEST_F(SchedulerTest, AServerTellsItsNewAddress) {
  cluster_.CrashScheduler();
  cluster_.world.RunFor(absl::Seconds(5));
  cluster_.StartScheduler("sim://elsewhere/main");
  cluster_.servers[0]->Say(proto::SchedulerMoved{.address = "sim://elsewhere/main",
                                                 .cluster = 98});  // of another cluster
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_EQ(cluster_.scheduler->joins, 0);
  cluster_.servers[0]->Say(proto::SchedulerMoved{.address = "sim://elsewhere/main", .cluster = 99});
  absl::Status released = absl::UnknownError("none");
  cluster_.core->Barrier(Group::kWorkers, "b", absl::Seconds(60),
                         [&](const absl::Status& status) { released = status; });
  cluster_.RunUntil([&] { return released.ok(); });
  // The worker sends heartbeats there, too: else the new scheduler would give it up.
  cluster_.RunUntil([&] { return cluster_.scheduler->beats > 3; });
  ExpectTrains();
}

TEST_F(SchedulerTest, ADeadlineSaysWhenTheAwaitedWorkersWereLastHeard) {
  cluster_.scheduler->status_text =
      R"({"workers": [{"rank": 3, "state": "alive", "address": "10.0.0.7", "last_heard_ms": 12000}]})";
  cluster_.servers[0]->intercept = [&](const proto::Request& request) {
    cluster_.servers[0]->Reply(
        request, absl::DeadlineExceededError(
                     "worker 3 is at clock 41; waiting for clock 42 of table w (bsp)"));
    return true;
  };
  std::vector<float> got(16);
  const absl::Status status = cluster_.Await(cluster_.Pull(table_, {}, &got));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("worker 3 is at clock 41, last heard 12.0s ago from 10.0.0.7; waiting for "
                        "clock 42 of table w"));
  // The deadline holds without a scheduler, too.
  cluster_.CrashScheduler();
  const absl::Time start = cluster_.world.Now();
  const absl::Status plain =
      cluster_.Await(cluster_.Pull(table_, {}, &got, {.timeout = absl::Milliseconds(200)}));
  EXPECT_EQ(cluster_.world.Now() - start, absl::Milliseconds(200));
  EXPECT_THAT(std::string(plain.message()), HasSubstr("worker 3 is at clock 41; waiting"));
}

TEST_F(SchedulerTest, ACheckpointIsRequestedUntilItIsComplete) {
  cluster_.scheduler->answer_admins = false;
  absl::StatusOr<std::string> path = absl::UnknownError("none");
  const auto keep = [&](absl::StatusOr<std::string> result) { path = std::move(result); };
  cluster_.core->Checkpoint("/data", absl::Minutes(1), keep);
  cluster_.world.RunFor(absl::Seconds(5));
  cluster_.scheduler->answer_admins = true;
  cluster_.scheduler->admin_text = R"({"path": "/data/ckpt-3"})";
  cluster_.RunUntil([&] { return path.ok(); });
  EXPECT_EQ(*path, "/data/ckpt-3");
  ASSERT_GE(cluster_.scheduler->admins.size(), 2u);
  EXPECT_EQ(cluster_.scheduler->admins[0].command, "checkpoint-save");
  EXPECT_EQ(cluster_.scheduler->admins[0].arguments, (std::vector<std::string>{"/data", "at:0"}));
  EXPECT_EQ(cluster_.scheduler->admins[0].request, cluster_.scheduler->admins[1].request);

  cluster_.scheduler->answer_admins = false;
  cluster_.core->Checkpoint("/data", absl::Seconds(3), keep);
  cluster_.RunUntil([&] { return !path.ok(); });
  EXPECT_EQ(path.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(path.status().message()),
              HasSubstr("saving a checkpoint in '/data': the scheduler at"));
}

// The answer that opens a table has a change that no map has told servers of yet.
TEST_F(SchedulerTest, RequestsUnderNewSettingsWaitForTheirMap) {
  TableSpec spec = TableSpec::Dense("changed", {16});
  spec.consistency = Consistency::Ssp(2);
  cluster_.scheduler->settings = {
      {.table = 2, .number = 1, .since = 1, .decided = true, .consistency = Consistency::Ssp(1)}};
  const auto table = cluster_.MakeTable(spec);
  EXPECT_EQ(table->spec.consistency, Consistency::Ssp(1));
  std::vector<float> got(16);
  EXPECT_TRUE(cluster_.Await(cluster_.Pull(table, {}, &got)).ok());  // of clock 0
  ASSERT_TRUE(cluster_.core->Clock().ok());
  const auto pull = cluster_.Pull(table, {}, &got);
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(pull->done());
  cluster_.scheduler->map.table_settings = cluster_.scheduler->settings;
  ++cluster_.scheduler->map.version;
  cluster_.scheduler->Publish();
  EXPECT_TRUE(cluster_.Await(pull).ok());
}

// A reader has no clock, and gets no map that only changes a table.
TEST(ReaderTest, WaitsForNoSettings) {
  TestCluster cluster(
      {.servers = 1, .shards = 1, .configure = [](Config* config) { config->read_only = true; }});
  cluster.scheduler->AddTable(TableSpec::Dense("w", {16}));
  cluster.scheduler->settings = {
      {.table = 1, .number = 1, .since = 0, .decided = true, .consistency = Consistency::Ssp(1)}};
  cluster.Connect();
  std::vector<float> got(16);
  EXPECT_TRUE(
      cluster.Await(cluster.Pull(cluster.MakeTable(TableSpec::Dense("w", {16})), {}, &got)).ok());
}

TEST(ReaderTest, EntersNoBarrier) {
  TestCluster cluster({.configure = [](Config* config) { config->read_only = true; }});
  cluster.Connect();
  absl::Status result;
  cluster.core->Barrier(Group::kWorkers, "b", absl::Seconds(5),
                        [&](const absl::Status& status) { result = status; });
  EXPECT_EQ(result.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace leeway::worker
