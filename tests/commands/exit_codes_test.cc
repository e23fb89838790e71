// The exit codes that docs/operations.md promises.
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

const Environment kQuick = {{"LEEWAY_HEARTBEAT_INTERVAL_MS", "100"},
                            {"LEEWAY_FAILURE_TIMEOUT_MS", "1000"},
                            {"LEEWAY_DRAIN_TIMEOUT_MS", "1000"}};

class ExitCodesTest : public CommandsTest {
 protected:
  // Starts a cluster whose worker has trained, and stays.
  void Start(int servers = 1, const Environment& more = kQuick) {
    cluster_ = std::make_unique<Cluster>(servers, 1, more);
    worker_ = std::make_unique<Command>(
        std::vector<std::string>{
            kRudeWorker, "nan",
            "echo trained; while [ $(ps -o ppid= -p $$) = $PPID ]; do sleep 0.05; done"},
        cluster_->environment());
    ASSERT_TRUE(worker_->Says("trained"));
  }
  void TearDown() override {
    worker_.reset();
    cluster_.reset();
    // Children of the worker's shell end with its group, a moment later.
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    CommandsTest::TearDown();
  }
  static int CodeOf(Command* command) {
    const Ended ended = command->Finish(Patience());
    EXPECT_TRUE(ended.in_time);
    last_words_ = ended.errors;
    return ended.code;
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Command> worker_;
  static inline std::string last_words_;
};

TEST_F(ExitCodesTest, TrainingThatEndsInOrder) {
  Cluster cluster;
  EXPECT_EQ(RunToEnd({kHello}, cluster.environment()).code, 0);
  EXPECT_EQ(CodeOf(cluster.server(0)), 0);
  EXPECT_EQ(CodeOf(cluster.scheduler()), 0);
}

TEST_F(ExitCodesTest, ArgumentsThatCannotBeUnderstood) {
  EXPECT_EQ(RunToEnd({kLeeway, "server"}, {{"LEEWAY_SCHEDULER", "x"}}).code, 1);
  EXPECT_EQ(RunToEnd({kLeeway, "scheduler"}, {{"LEEWAY_NUM_SERVERS", "0"}}).code, 1);
  EXPECT_EQ(RunToEnd({kLeeway, "train", "--no-such-option"}).code, 2);
  EXPECT_EQ(RunToEnd({kLeeway, "launch", "-s", "1"}).code, 2);
}

TEST_F(ExitCodesTest, NobodyThere) {
  const TakenPort nobody(/*listens=*/false);
  EXPECT_EQ(RunToEnd({kLeeway, "status"},
                     {{"LEEWAY_SCHEDULER", nobody.address()}, {"LEEWAY_CONNECT_TIMEOUT_MS", "500"}})
                .code,
            1);
  EXPECT_EQ(RunToEnd({kLeeway, "server"},
                     {{"LEEWAY_SCHEDULER", nobody.address()}, {"LEEWAY_CONNECT_TIMEOUT_MS", "500"}})
                .code,
            1);
}

TEST_F(ExitCodesTest, AWorkerThatDies) {
  ASSERT_NO_FATAL_FAILURE(Start());
  worker_->Signal(SIGKILL);
  EXPECT_EQ(CodeOf(worker_.get()), 128 + SIGKILL);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 0);
  EXPECT_EQ(CodeOf(cluster_->scheduler()), 1);
  EXPECT_THAT(last_words_, testing::HasSubstr("worker 0"));
}

TEST_F(ExitCodesTest, AServerThatDiesWithItsShards) {
  ASSERT_NO_FATAL_FAILURE(Start());
  cluster_->server(0)->Signal(SIGKILL);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 128 + SIGKILL);
  ASSERT_TRUE(cluster_->scheduler()->Says("taken"));
  worker_->Signal(SIGKILL);
  EXPECT_EQ(CodeOf(worker_.get()), 128 + SIGKILL);
  EXPECT_EQ(CodeOf(cluster_->scheduler()), 1);
  EXPECT_THAT(last_words_, testing::HasSubstr("shards were lost"));
}

TEST_F(ExitCodesTest, AServerThatIsDrained) {
  ASSERT_NO_FATAL_FAILURE(Start(2, {}));
  cluster_->server(0)->Signal(SIGTERM);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 0);
}

// It is the only server.
TEST_F(ExitCodesTest, AServerThatCannotBeDrained) {
  ASSERT_NO_FATAL_FAILURE(Start());
  cluster_->server(0)->Signal(SIGTERM);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 1);
}

// It does not wait until its shards are elsewhere, though another server could take them.
TEST_F(ExitCodesTest, AServerThatIsInterrupted) {
  ASSERT_NO_FATAL_FAILURE(Start(2, {}));
  cluster_->server(0)->Signal(SIGINT);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 1);
}

TEST_F(ExitCodesTest, ASchedulerThatIsStopped) {
  ASSERT_NO_FATAL_FAILURE(Start());
  cluster_->scheduler()->Signal(SIGTERM);
  EXPECT_EQ(CodeOf(cluster_->scheduler()), 1);
  EXPECT_EQ(CodeOf(cluster_->server(0)), 1);
}

TEST_F(ExitCodesTest, ACheckpointAtTheEndThatIsNotSaved) {
  Cluster cluster(
      1, 1, {{"LEEWAY_CHECKPOINT_DIR", "/proc/no-such-place"}, {"LEEWAY_CHECKPOINT_AT_END", "1"}});
  EXPECT_EQ(RunToEnd({kHello}, cluster.environment()).code, 0);
  EXPECT_EQ(CodeOf(cluster.scheduler()), 1);
  EXPECT_THAT(last_words_, testing::HasSubstr("LEEWAY_CHECKPOINT_AT_END"));
}

TEST_F(ExitCodesTest, ALaunchedCluster) {
  EXPECT_EQ(RunToEnd({kLeeway, "launch", "--", kHello}).code, 0);
  EXPECT_EQ(RunToEnd({kLeeway, "launch", "--", "sh", "-c", "exit 3"}).code, 3);
  EXPECT_EQ(RunToEnd({kLeeway, "launch", "--", "sh", "-c", "kill -9 $$"}).code, 128 + SIGKILL);
  EXPECT_EQ(RunToEnd({kLeeway, "launch", "--", "/no/such/program"}).code, 127);
}

// Kills one of the servers of the launcher whose worker runs this.
const std::string kKillServer =
    "kill -9 $(pgrep -P $(ps -o ppid= -p $PPID) -f 'leeway [s]erver' | tail -1); ";

// The server is replaced, and the training ends as if nothing had happened.
TEST_F(ExitCodesTest, ALaunchedClusterWhoseServerDies) {
  Environment environment = kQuick;
  environment["LEEWAY_REPLICATION"] = "2";
  environment["LEEWAY_SUSPICION_MS"] = "200";
  // It succeeds once another server serves in its place: in one status all four nodes are alive,
  // one of them at another endpoint than before.
  const std::string again =
      absl::StrCat("look() { now=$(", kLeeway, " status --json); ",
                   "endpoints=$(echo \"$now\" | grep -o 'tcp://[0-9.:]*' | sort -u); }; ",
                   "look; before=$endpoints; ", kKillServer,
                   "until [ $(echo \"$now\" | grep -c '\"state\": *\"alive\"') = 4 ] && ",
                   "[ \"$endpoints\" != \"$before\" ]; do sleep 0.1; look; done");
  const Ended ended =
      RunToEnd({kLeeway, "launch", "-s", "3", "--", kRudeWorker, "nan", again}, environment);
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.errors, testing::HasSubstr("another is started in its place (1 of 20)"));
}

// Likewise for a server of `leeway train`, whose launcher is a child of its own.
std::string TrainAndKillAServer(const std::string& arguments) {
  return absl::StrCat(
      kLeeway, " train --quiet --model softmax --workers 1 ", arguments, " & train=$!; ",
      "until kill -9 $(pgrep -P $(pgrep -P $train) -f 'leeway [s]erver' | tail -1); do ",
      "sleep 0.05; done 2>/dev/null; wait $train");
}

TEST_F(ExitCodesTest, ATrainingWhoseServerDies) {
  Environment environment = kQuick;
  environment["LEEWAY_SUSPICION_MS"] = "200";
  const Ended lost =
      RunToEnd({"sh", "-c", TrainAndKillAServer("--servers 2 --steps 100000")}, environment);
  EXPECT_EQ(lost.code, 128 + SIGKILL) << lost.errors;
  EXPECT_THAT(lost.errors, testing::HasSubstr("LEEWAY_REPLICATION=2 keeps the cluster up"));

  environment["LEEWAY_REPLICATION"] = "2";
  // The training lasts longer than until the server is replaced, a second later.
  const Ended replaced =
      RunToEnd({"sh", "-c", TrainAndKillAServer("--servers 3 --steps 4000")}, environment);
  EXPECT_EQ(replaced.code, 0) << replaced.errors;
  EXPECT_THAT(replaced.errors, testing::HasSubstr("another is started in its place (1 of 20)"));
}

TEST_F(ExitCodesTest, ALaunchedClusterThatRestartsNobody) {
  const std::string kill =
      absl::StrCat(kKillServer, "while [ $(ps -o ppid= -p $$) = $PPID ]; do sleep 0.05; done");
  Environment environment = kQuick;
  environment["LEEWAY_REPLICATION"] = "2";
  const Ended never =
      RunToEnd({kLeeway, "launch", "-s", "3", "--restart", "never", "--", kRudeWorker, "nan", kill},
               environment);
  EXPECT_EQ(never.code, 128 + SIGKILL) << never.errors;
  // No other server has the shards of one that dies.
  const Ended alone =
      RunToEnd({kLeeway, "launch", "-s", "3", "--", kRudeWorker, "nan", kill}, kQuick);
  EXPECT_EQ(alone.code, 128 + SIGKILL) << alone.errors;
  EXPECT_THAT(alone.errors, testing::HasSubstr("LEEWAY_REPLICATION=2 keeps the cluster up"));
}

}  // namespace
}  // namespace leeway::tests
