// `leeway status` as people and programs use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "absl/time/clock.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusTest : public CommandsTest {};

TEST_F(StatusTest, TablesForPeople) {
  Cluster cluster(2);
  const Ended ended = RunToEnd({kLeeway, "status"}, cluster.environment());
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  EXPECT_THAT(ended.output, HasSubstr("2 of 2 servers and 0 of 1 workers have joined"));
  EXPECT_THAT(ended.output, ContainsRegex("\nnode +state +address +up +memory +tables"));
  EXPECT_THAT(ended.output, ContainsRegex("\nscheduler +alive +tcp://127.0.0.1:[0-9]+ +[0-9]+s "));
  EXPECT_THAT(ended.output, ContainsRegex("\nserver 1 +alive +tcp://[^ ]+ "));
  EXPECT_THAT(ended.output, ContainsRegex("\nworker 0 +missing\n"));
}

// A node reports its memory and uptime itself, with its first heartbeat.
TEST_F(StatusTest, NodesSayHowMuchMemoryTheyTake) {
  Cluster cluster;
  nlohmann::json server;
  const absl::Time deadline = absl::Now() + Patience();
  while (!server.contains("resident_bytes") && absl::Now() < deadline) {
    server = cluster.Status()["servers"][0];
  }
  EXPECT_GT(server.value("resident_bytes", 0.0), 1 << 20);
  EXPECT_LT(server.value("resident_bytes", 0.0), 1e10);
  EXPECT_LT(server.value("uptime_ms", 1e10), absl::ToDoubleMilliseconds(2 * Patience()));
  EXPECT_GT(cluster.Status().value("resident_bytes", 0.0), 1 << 20);
}

TEST_F(StatusTest, WatchDrawsAnewUntilItIsInterrupted) {
  Cluster cluster;
  Command watch({kLeeway, "status", "--watch", "0.2"},
                cluster.With({{"LEEWAY_CONNECT_TIMEOUT_MS", "1000"}}));
  ASSERT_TRUE(watch.Says("server 0"));
  EXPECT_EQ(RunToEnd({kHello}, cluster.environment()).code, 0);
  // The cluster has ended; the output says so, and goes on.
  ASSERT_TRUE(watch.Says("no scheduler answers at"));
  watch.Signal(SIGINT);
  const Ended ended = watch.Finish(Patience());
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 128 + SIGINT);
}

// Programs read one JSON text after the other; errors go to standard error.
TEST_F(StatusTest, WatchForProgramsPrintsJsonAlone) {
  Cluster cluster;
  Command watch({kLeeway, "status", "--json", "--watch", "0.2"},
                cluster.With({{"LEEWAY_CONNECT_TIMEOUT_MS", "1000"}}));
  ASSERT_TRUE(watch.Says("\"servers\""));
  EXPECT_EQ(RunToEnd({kHello}, cluster.environment()).code, 0);
  EXPECT_THAT(watch.ErrorLineWith("no scheduler answers at"), HasSubstr("leeway: "));
  watch.Signal(SIGINT);
  EXPECT_THAT(watch.Finish(Patience()).output, Not(HasSubstr("no scheduler answers at")));
}

// Both sides log it: the waiting one names its peer, and the process that stood still says so
// later.
TEST_F(StatusTest, AProcessThatStandsStillIsToldOf) {
  Cluster cluster;
  // It beats from now on.
  const absl::Time deadline = absl::Now() + Patience();
  while (!cluster.Status()["servers"][0].contains("resident_bytes") && absl::Now() < deadline) {
  }
  cluster.server(0)->Signal(SIGSTOP);
  EXPECT_THAT(cluster.scheduler()->ErrorLineWith(" is stalled: "),
              ContainsRegex("warning scheduler: the connection to server 0 \\((shm|tcp)://"));
  cluster.server(0)->Signal(SIGCONT);
  EXPECT_THAT(cluster.server(0)->ErrorLineWith("has stood still for"), HasSubstr("server 0: this"));
  EXPECT_THAT(cluster.scheduler()->ErrorLineWith("goes on; it was stalled for"),
              ContainsRegex("server 0 \\((shm|tcp)://"));
}

}  // namespace
}  // namespace leeway::tests
