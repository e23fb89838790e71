// Workers in programs that end, fork and wait as users' programs do.
#include <csignal>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/memory/sanitized.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

using testing::HasSubstr;

// Over each van.
class WorkerLifeTest : public CommandsTest, public testing::WithParamInterface<const char*> {
 protected:
  Environment environment() const { return {{"LEEWAY_VAN", GetParam()}}; }

  // The worker ends with success and without a complaint, and so the cluster ends in order.
  std::string RunInOrder(const std::string& way, const Environment& more = {}) {
    SCOPED_TRACE(way);
    Cluster cluster(1, 1, environment());
    const Ended worker = RunToEnd({kWorkerLife, way}, cluster.With(more));
    EXPECT_EQ(worker.code, 0) << worker.errors;
    EXPECT_THAT(PlainLines(worker.errors), testing::IsEmpty());
    cluster.ExpectEndInOrder();
    return worker.output;
  }
  // Likewise, of a worker whose process forks. In a child of several threads LeakSanitizer takes
  // what the other threads hold for leaked.
  std::string RunWithChildren(const std::string& way) {
    return RunInOrder(way, {{"ASAN_OPTIONS", "detect_leaks=0"}});
  }
};

TEST_P(WorkerLifeTest, AWorkerInStaticStorageLeavesAtExit) {
  for (const char* way : {"static", "function-static", "atexit"}) RunInOrder(way);
}

// The kernel closes its connections, so it is dead soon and not by the failure timeout.
TEST_P(WorkerLifeTest, AWorkerThatEndsWithoutLeavingIsDeadSoon) {
  for (const char* way : {"exit", "leak", "exit-at-once"}) {
    SCOPED_TRACE(way);
    Environment quick = environment();
    quick["LEEWAY_SUSPICION_MS"] = "100";
    quick["LEEWAY_FAILURE_TIMEOUT_MS"] = "600000";
    Cluster cluster(1, 1, quick);
    EXPECT_EQ(RunToEnd({kWorkerLife, way}, cluster.environment()).code, 0);
    EXPECT_TRUE(cluster.scheduler()->Says("LEEWAY_SUSPICION_MS=100"));
  }
}

TEST_P(WorkerLifeTest, AWorkerThatAChildOutlivesIsDeadSoon) {
  Environment quick = environment();
  quick["LEEWAY_SUSPICION_MS"] = "100";
  quick["LEEWAY_FAILURE_TIMEOUT_MS"] = "600000";
  Cluster cluster(1, 1, quick);
  const Command parent({kWorkerLife, "fork-end"}, cluster.environment());
  EXPECT_TRUE(cluster.scheduler()->Says("LEEWAY_SUSPICION_MS=100"));
}

// It comes in the midst of training, when the other has started long since.
TEST(TrainingLifeTest, AWorkerThatTakesTheRankOfADeadOneTrainsOn) {
  Cluster cluster(1, 2, {{"LEEWAY_SUSPICION_MS", "100"}});
  const std::vector<std::string> train = {kLeeway,  "train",  "--quiet", "--model", "softmax",
                                          "--mode", "ssp:3",  "--batch", "1",       "--steps",
                                          "300",    "--slow", "0:20",    "--slow",  "1:20"};
  const Environment as_worker = cluster.With({{"LEEWAY_ROLE", "worker"}});
  Command stays(train, as_worker), dies(train, as_worker);
  const auto steps = [&] {
    const nlohmann::json server = cluster.Status()["servers"][0];
    const nlohmann::json threads = server.value("threads", nlohmann::json::array());
    return threads.empty() ? 0 : threads[0].value("slowest_clock", 0);
  };
  const absl::Time give_up = absl::Now() + Patience();
  while (steps() == 0 && absl::Now() < give_up) continue;
  dies.Signal(SIGKILL);
  EXPECT_EQ(dies.Finish(Patience()).code, 128 + SIGKILL);
  Command comes(train, as_worker);
  for (Command* const worker : {&stays, &comes}) {
    const Ended ended = worker->Finish(Patience());
    EXPECT_EQ(ended.code, 0) << ended.errors;
  }
}

// `launch` tells what went wrong from success.
TEST(LaunchedLifeTest, AWorkerThatNeverJoinsOrNeverLeavesIsAFailure) {
  const std::vector<std::vector<std::string>> ways = {
      {"sh", "-c", "true"}, {kWorkerLife, "exit"}, {kWorkerLife, "leak"}};
  for (const std::vector<std::string>& way : ways) {
    SCOPED_TRACE(way.back());
    std::vector<std::string> command = {kLeeway, "launch", "--"};
    command.insert(command.end(), way.begin(), way.end());
    const Ended ended = RunToEnd(command);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.errors, HasSubstr("never joined it or ended without leaving it"));
  }
  const Ended waits = RunToEnd({kLeeway, "launch", "-w", "2", "--", "sh", "-c",
                                "[ $LEEWAY_RANK = 1 ] || exec \"$0\" static", kWorkerLife});
  EXPECT_EQ(waits.code, 1);
  EXPECT_THAT(waits.errors, HasSubstr("leeway: worker 1 ended without having joined the cluster"));
  const Ended good = RunToEnd({kLeeway, "launch", "--", kWorkerLife, "static"});
  EXPECT_EQ(good.code, 0) << good.errors;
}

TEST_P(WorkerLifeTest, AWorkerIsDestroyedWithinACallback) {
  Cluster cluster(1, 1, environment());
  Command worker({kWorkerLife, "callback"}, cluster.environment());
  EXPECT_TRUE(worker.Says("destroyed"));
  cluster.ExpectEndInOrder();
}

TEST_P(WorkerLifeTest, AWorkerIsDestroyedWithinACallbackJustBeforeTheProcessEnds) {
  for (const char* way : {"callback-before-end", "callback-exits", "callback-exits-in-wait"}) {
    RunInOrder(way);
  }
}

TEST_P(WorkerLifeTest, AFailedWaitGivesTheArraysBack) { RunInOrder("wait-before-clock"); }

TEST_P(WorkerLifeTest, AChildThatEndsTouchesNothingOfItsParent) {
  EXPECT_EQ(RunWithChildren("fork-exit"), "sum 201\n");
  EXPECT_EQ(RunWithChildren("fork-destroy"), "sum 201\n");
}

TEST_P(WorkerLifeTest, AChildsCallsFailAndSayWhy) {
  EXPECT_EQ(RunWithChildren("fork-call"), "sum 201\n");
}

TEST_P(WorkerLifeTest, AChildConnectsAWorkerOfItsOwn) {
  if (runtime::kThreadSanitized)
    GTEST_SKIP() << "ThreadSanitizer allows a child of threads no threads";
  EXPECT_EQ(RunWithChildren("fork-connect"), "sum 221\n");
}

INSTANTIATE_TEST_SUITE_P(Vans, WorkerLifeTest, testing::Values("shm", "tcp", "zmq"),
                         [](const auto& van) { return std::string(van.param); });

}  // namespace
}  // namespace leeway::tests
