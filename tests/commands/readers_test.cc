// Readers as processes of their own: examples/reader beside a worker that goes on.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/cluster.h"
#include "tests/commands/programs.h"

namespace leeway::tests {
namespace {

class ReaderProcessesTest : public CommandsTest {};

// The last reader runs when the cluster ends, which does not wait for it.
TEST_F(ReaderProcessesTest, ComeAreKilledAndComeAgainAndKeepNobody) {
  Cluster cluster;
  const std::string gate = absl::StrCat(testing::TempDir(), "/readers_test_gate_", ::getpid());
  std::filesystem::remove(gate);
  Command worker({kRudeWorker, "nan",
                  absl::StrCat("echo trained; while [ ! -e ", gate,
                               " ] && [ $(ps -o ppid= -p $$) = $PPID ]; do sleep 0.05; done")},
                 cluster.environment());
  ASSERT_TRUE(worker.Says("trained"));
  {
    Command killed({kReader, "weights"}, cluster.environment());
    EXPECT_TRUE(killed.Says("version 1: "));
    EXPECT_EQ(cluster.Status()["readers"], 1);
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Finish(Patience()).code, 128 + SIGKILL);
  }
  // There is no such table: the message is the library's.
  const Ended lost = RunToEnd({kReader, "no such table"}, cluster.environment());
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(lost.errors, testing::HasSubstr("'weights'"));
  Command reader({kReader, "weights"}, cluster.environment());
  EXPECT_TRUE(reader.Says("version 1: "));
  EXPECT_EQ(cluster.Status()["workers"].size(), 1u);
  std::ofstream(gate) << "open";
  EXPECT_EQ(worker.Finish(Patience()).code, 0);
  cluster.ExpectEndInOrder();
  std::filesystem::remove(gate);
  const Ended ended = reader.Finish(Patience());
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 1);
}

}  // namespace
}  // namespace leeway::tests
