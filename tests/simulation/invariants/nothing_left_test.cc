// "Nothing is left behind" finds what an ended process has left.
#include "tests/simulation/invariants/nothing_left.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/log/log.h"

namespace leeway::simulation::nothing_left_test {
namespace {

using ::testing::HasSubstr;

TEST(NothingLeft, FilesThatAreOpen) {
  runtime::SimFileSystem disk(1);
  EXPECT_EQ(FindOpen(disk), "");
  auto file = disk.Create("/a");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(FindOpen(disk), HasSubstr("1 files that are written"));
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ(FindOpen(disk), "");
  auto again = disk.OpenForAppend("/a");
  const auto read = disk.OpenToRead("/a");
  auto lock = disk.Lock("/b");
  ASSERT_TRUE(again.ok() && read.ok() && lock.ok());
  EXPECT_EQ(FindOpen(disk), "1 files that are written, 1 that are read, and 1 locks");
  disk.Crash();  // closes all files
  EXPECT_EQ(FindOpen(disk), "");
  lock->reset();
  again->reset();
  EXPECT_EQ(FindOpen(disk), "");
}

// A cluster whose nodes do not leave.
TEST(NothingLeft, TimersAndConnections) {
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  SimCluster::Setup setup;
  setup.config.num_servers = setup.config.num_workers = 1;
  SimCluster cluster(setup);
  EXPECT_EQ(FindLeftBehind(&cluster), "");
  SimProcess* const scheduler = cluster.Start(Role::kScheduler);
  EXPECT_THAT(FindLeftBehind(&cluster), HasSubstr("tasks or timers"));
  cluster.Start(Role::kServer, 0);
  cluster.Start(Role::kWorker, 0)->core()->Start([](const absl::Status&) {});
  EXPECT_TRUE(cluster.RunUntil(
      [&] { return scheduler->scheduler() != nullptr && scheduler->scheduler()->map()->epoch > 0; },
      absl::Seconds(5)));
  EXPECT_GT(cluster.network().ConnectionsOf("worker0"), 0u);
  EXPECT_GT(cluster.world().PendingOf("worker0"), 0u);
  cluster.Kill("worker0");
  EXPECT_EQ(cluster.network().ConnectionsOf("worker0"), 0u);
  EXPECT_EQ(cluster.world().PendingOf("worker0"), 0u);
  runtime::SetLogLevel(runtime::LogLevel::kInfo);
}

}  // namespace
}  // namespace leeway::simulation::nothing_left_test
