#include "scheduler/checkpoints/restoration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/folder.h"
#include "runtime/sim/sim_file_system.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kClock = 41;

// Puts a checkpoint of two tables on the scheduler's disk. The content of its files does not matter
// here, as servers read it.
std::string PutCheckpoint(TestCluster* cluster, std::uint64_t clock = kClock,
                          std::uint64_t* checksum = nullptr) {
  runtime::SimFileSystem* files = cluster->world.files(kSchedulerHost);
  checkpoint::Manifest manifest;
  manifest.name = checkpoint::CheckpointName(7);
  manifest.clock = clock;
  manifest.num_shards = 1;
  manifest.block_bytes = Config().block_bytes;
  manifest.files.resize(1);
  manifest.files[0].name = checkpoint::ShardFileName(0);
  manifest.tables = {{.id = 3, .spec = TableSpec::Dense("w", {10})},
                     {.id = 5, .spec = TableSpec::Dense("b", {4})}};
  const std::string path = "saved/ckpt-00000007";
  EXPECT_TRUE(checkpoint::StartCheckpoint(files, path).ok());
  EXPECT_TRUE(checkpoint::FinishCheckpoint(files, path, &manifest).ok());
  if (checksum != nullptr) *checksum = manifest.checksum;
  return path;
}

class RestorationTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.config.restore = "saved";
    path_ = PutCheckpoint(&cluster_, kClock, &checksum_);
    cluster_.StartAll();
  }
  bool WorkersHaveTheMap() const {
    return std::all_of(cluster_.workers.begin(), cluster_.workers.end(),
                       [](const TestNode* worker) { return worker->epoch() > 0; });
  }
  bool ServersLoad() const {
    return std::all_of(cluster_.servers.begin(), cluster_.servers.end(),
                       [](const TestNode* server) { return server->loads.size() > 0; });
  }

  TestCluster cluster_;
  std::string path_;
  std::uint64_t checksum_ = 0;
};

TEST_F(RestorationTest, WorkersHearOfTheClusterWhenAllServersHaveLoaded) {
  Start();
  cluster_.servers[1]->answers_loads = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return ServersLoad(); }));
  for (const TestNode* server : cluster_.servers) {
    EXPECT_THAT(server->installed, ElementsAre(3, 5));
    EXPECT_GT(server->epoch(), 0u);  // it knows which shards are its own
    EXPECT_EQ(server->loads.front().directory, path_);
    EXPECT_EQ(server->loads.front().checksum, checksum_);
    EXPECT_EQ(server->welcome->clock, kClock);
  }
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_FALSE(WorkersHaveTheMap());
  EXPECT_THAT(cluster_.scheduler->StatusJson(), HasSubstr("1 of 2 servers have"));
  const auto drained = cluster_.Ask("drain", {"server:0"});
  const auto saved = cluster_.Ask("checkpoint-save", {"elsewhere"});
  ASSERT_TRUE(cluster_.RunUntil([&] { return drained->answer && saved->answer; }));
  EXPECT_THAT(std::string(drained->answer->message()), HasSubstr("has not started yet"));
  EXPECT_THAT(std::string(saved->answer->message()), HasSubstr("has not started yet"));

  cluster_.servers[1]->answers_loads = true;  // asked again
  ASSERT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
  EXPECT_EQ(cluster_.workers[0]->welcome->clock, kClock);
  cluster_.workers[0]->OpenTable(1, "b");
  cluster_.workers[1]->CreateTable(1, TableSpec::Dense("new", {4}));
  ASSERT_TRUE(cluster_.RunUntil([&] {
    return !cluster_.workers[0]->tables.empty() && !cluster_.workers[1]->tables.empty();
  }));
  EXPECT_EQ(cluster_.workers[0]->tables.at(1).table, 5u);
  EXPECT_EQ(cluster_.workers[1]->tables.at(1).table, 6u);
}

TEST_F(RestorationTest, NoServerLoadsBeforeAllHaveTheTables) {
  Start();
  cluster_.servers[1]->answers_installs = false;
  cluster_.world.RunFor(absl::Seconds(10));
  for (const TestNode* server : cluster_.servers) EXPECT_THAT(server->loads, IsEmpty());
  cluster_.servers[1]->answers_installs = true;  // asked again
  EXPECT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
}

TEST_F(RestorationTest, ATableIsNotOpenedWhileItsSettingsAreRenewed) {
  Start();
  ASSERT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
  cluster_.servers[1]->answers_installs = false;
  TableSpec renewed = TableSpec::Dense("w", {10});
  renewed.consistency = Consistency::Ssp(7);
  cluster_.workers[0]->CreateTable(1, renewed);
  cluster_.world.RunFor(absl::Seconds(1));
  cluster_.workers[1]->OpenTable(1, "w");
  cluster_.world.RunFor(absl::Seconds(5));
  EXPECT_THAT(cluster_.workers[1]->tables, IsEmpty());
  cluster_.servers[1]->answers_installs = true;  // asked again
  for (const TestNode* worker : cluster_.workers) {
    ASSERT_TRUE(cluster_.RunUntil([&] { return !worker->tables.empty(); }));
    ASSERT_EQ(worker->tables.at(1).table_settings.size(), 1u) << worker->tables.at(1).result;
    EXPECT_EQ(worker->tables.at(1).table_settings[0].since, kClock);
  }
}

// A worker that comes late creates its tables as the others did, whatever was changed meanwhile.
TEST_F(RestorationTest, ATableMayBeCreatedAgainAsItWasRenewed) {
  Start();
  ASSERT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
  TableSpec renewed = TableSpec::Dense("w", {10});
  renewed.consistency = Consistency::Ssp(7);
  cluster_.workers[0]->CreateTable(1, renewed);
  ASSERT_TRUE(cluster_.RunUntil([&] { return !cluster_.workers[0]->tables.empty(); }));
  const auto changed = cluster_.Ask("table", {"w", "consistency=ssp:2"});
  ASSERT_TRUE(cluster_.RunUntil([&] { return changed->answer.has_value(); }));
  ASSERT_TRUE(changed->answer->ok()) << *changed->answer;
  cluster_.workers[1]->CreateTable(1, renewed);
  ASSERT_TRUE(cluster_.RunUntil([&] { return !cluster_.workers[1]->tables.empty(); }));
  EXPECT_TRUE(cluster_.workers[1]->tables.at(1).result.ok())
      << cluster_.workers[1]->tables.at(1).result;
}

TEST_F(RestorationTest, BlocksOfAnotherSizeAreRefused) {
  cluster_.config.restore = "saved";
  PutCheckpoint(&cluster_);
  cluster_.config.block_bytes *= 2;
  cluster_.StartScheduler();
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.over.has_value(); }));
  EXPECT_EQ(cluster_.over->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("LEEWAY_BLOCK_BYTES"));
}

TEST_F(RestorationTest, AServerThatCannotLoadEndsTheClusterAndIsNamed) {
  Start();
  cluster_.servers[1]->load_result = absl::DataLossError("shard-00000 has the wrong checksum");
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.over.has_value(); }));
  EXPECT_EQ(cluster_.over->code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("wrong checksum"));
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("server "));
  EXPECT_FALSE(WorkersHaveTheMap());
}

TEST_F(RestorationTest, AServerThatDiesMeanwhileEndsTheCluster) {
  cluster_.config.replication = 2;
  Start();
  for (TestNode* server : cluster_.servers) server->answers_loads = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return ServersLoad(); }));
  cluster_.Kill(cluster_.servers[0]);
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.over.has_value(); }));
  EXPECT_EQ(cluster_.over->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("cannot start from"));
}

TEST_F(RestorationTest, AServerThatDoesNotLoadInTimeIsNamed) {
  cluster_.config.checkpoint_timeout = absl::Seconds(30);
  Start();
  cluster_.servers[1]->answers_loads = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.over.has_value(); }));
  EXPECT_EQ(cluster_.over->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("LEEWAY_CHECKPOINT_TIMEOUT_MS"));
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("server"));
}

// A reply to the request of a scheduler before this one.
TEST_F(RestorationTest, AReplyToAnotherRequestDoesNotCount) {
  Start();
  TestNode* const server = cluster_.servers[1];
  server->answers_loads = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return ServersLoad(); }));
  const std::uint64_t request = server->loads.front().request;
  server->Say(proto::RestoreShardsReply{.request = request - 1});
  cluster_.world.RunFor(absl::Seconds(1));
  EXPECT_FALSE(WorkersHaveTheMap());
  server->Say(proto::RestoreShardsReply{.request = request});
  EXPECT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
}

TEST_F(RestorationTest, ASchedulerThatComesBackMeanwhileLoadsAgain) {
  cluster_.config.scheduler_state = "state";
  Start();
  for (TestNode* server : cluster_.servers) server->answers_loads = false;
  ASSERT_TRUE(cluster_.RunUntil([&] { return ServersLoad(); }));
  cluster_.KillScheduler();
  cluster_.config.restore.clear();  // it remembers
  for (TestNode* server : cluster_.servers) {
    server->loads.clear();
    server->answers_loads = true;
  }
  cluster_.StartScheduler();
  ASSERT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
  EXPECT_TRUE(ServersLoad());
}

TEST_F(RestorationTest, ASchedulerThatComesBackLaterDoesNot) {
  cluster_.config.scheduler_state = "state";
  Start();
  ASSERT_TRUE(cluster_.RunUntil([&] { return WorkersHaveTheMap(); }));
  cluster_.world.RunFor(absl::Seconds(5));
  cluster_.KillScheduler();
  for (TestNode* server : cluster_.servers) server->loads.clear();
  cluster_.StartScheduler();
  cluster_.world.RunFor(absl::Seconds(20));
  for (TestNode* server : cluster_.servers) EXPECT_THAT(server->loads, IsEmpty());
  const auto status = cluster_.scheduler->StatusJson();
  EXPECT_THAT(status, HasSubstr("\"complete\": true"));
  // A node that joins now gets the first clock, too.
  TestNode* late = cluster_.Start(Role::kServer, [](Config* config) { config->elastic = true; });
  ASSERT_TRUE(cluster_.RunUntil([&] { return late->welcome.has_value(); }));
  EXPECT_EQ(late->welcome->clock, kClock);
}

TEST_F(RestorationTest, AMissingCheckpointIsNamedAtOnce) {
  cluster_.config.restore = "elsewhere";
  cluster_.StartScheduler();
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.over.has_value(); }));
  EXPECT_EQ(cluster_.over->code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(cluster_.over->message()), HasSubstr("LEEWAY_RESTORE=elsewhere"));
}

}  // namespace
}  // namespace leeway::scheduler
