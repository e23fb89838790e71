// Readers with the real scheduler and memberships: they join and leave, and nothing waits for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/members/membership_table.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Readers, GetAnIdOfTheirOwnAndKeepItWhenTheyComeBack) {
  Readers readers;
  Node* const one = *readers.Admit({.role = Role::kReader, .incarnation = 7});
  Node* const same_chance =
      *readers.Admit({.role = Role::kReader, .incarnation = 7 + std::uint64_t{kFirstReaderNode}});
  EXPECT_GE(one->id, kFirstReaderNode);
  EXPECT_NE(one->id, same_chance->id);
  EXPECT_EQ(readers.FindIncarnation(7), one);
  const std::uint32_t id = same_chance->id;
  readers.Forget(one->id);
  readers.Forget(id);
  EXPECT_EQ(readers.size(), 0u);
  EXPECT_EQ(readers.FindIncarnation(7), nullptr);
  Node* const back = *readers.Admit(
      {.role = Role::kReader, .node = id, .incarnation = 7 + std::uint64_t{kFirstReaderNode}});
  EXPECT_EQ(back->id, id);
}

TEST(Readers, AreLimited) {
  EXPECT_LE(ReadersMax(), kReadersMax);
  Readers readers(/*most=*/100);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(readers.Admit({.role = Role::kReader, .incarnation = i}).ok());
  }
  const absl::Status refused =
      readers.Admit({.role = Role::kReader, .incarnation = 1 << 20}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused), HasSubstr("LEEWAY_READ_ONLY"));
}

std::uint64_t ReadersOf(const TestCluster& cluster) {
  return nlohmann::json::parse(cluster.scheduler->StatusJson())["readers"];
}

TEST(Readers, WaitUntilTheClusterIsCompleteAndAreInNoMap) {
  TestCluster cluster(1, 2, 2);
  cluster.StartScheduler();
  TestNode* const early = cluster.Start(Role::kReader);
  cluster.world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(early->welcome.has_value());
  for (int i = 0; i < 2; ++i) cluster.Start(Role::kServer);
  for (int i = 0; i < 2; ++i) cluster.Start(Role::kWorker);
  ASSERT_TRUE(cluster.RunUntil([&] { return early->epoch() == 1; }));
  cluster.world.RunFor(absl::Seconds(1));
  const std::uint64_t version = cluster.scheduler->map()->version;
  TestNode* const late = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return late->epoch() == 1; }));
  EXPECT_NE(late->welcome->node, early->welcome->node);
  EXPECT_EQ(late->welcome->cluster, early->welcome->cluster);
  EXPECT_EQ(ReadersOf(cluster), 2u);
  late->Leave();
  ASSERT_TRUE(cluster.RunUntil([&] { return late->left.has_value(); }));
  EXPECT_TRUE(late->left->ok()) << *late->left;
  EXPECT_EQ(ReadersOf(cluster), 1u);
  // Nobody else has heard of any of them.
  cluster.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.scheduler->map()->version, version);
  EXPECT_EQ(cluster.scheduler->map()->workers.size(), 2u);
  for (TestNode* worker : cluster.workers) EXPECT_TRUE(worker->downs.empty());
}

// Not that the scheduler does not answer.
TEST(Readers, ThatComeTooEarlySayWhoIsMissing) {
  TestCluster cluster(1, 2, 2);
  cluster.StartScheduler();
  cluster.Start(Role::kServer);
  TestNode* const reader =
      cluster.Start(Role::kReader, [](Config* its) { its->connect_timeout = absl::Seconds(10); });
  EXPECT_FALSE(cluster.RunUntil([&] { return reader->over.has_value(); }, absl::Seconds(9)));
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->over.has_value(); }, absl::Seconds(2)));
  EXPECT_EQ(reader->over->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(*reader->over),
              AllOf(HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS"), HasSubstr("is not complete"),
                    HasSubstr("1 of 2 servers and 0 of 2 workers have joined")));
  const nlohmann::json status = nlohmann::json::parse(cluster.scheduler->StatusJson());
  EXPECT_EQ(status["counters"]["joins_refused"], 0);
}

TEST(Readers, AreNotWaitedForByBarriersNorByTheEnd) {
  TestCluster cluster(1, 2, 2);
  cluster.StartAll();
  cluster.RunUntilComplete();
  TestNode* const reader = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() == 1; }));
  reader->Say(proto::BarrierEnter{.name = "b", .number = 1, .timeout_ms = 1000});
  for (TestNode* worker : cluster.workers) worker->Enter("b", 1);
  ASSERT_TRUE(cluster.RunUntil([&] {
    return cluster.workers[0]->barriers.contains({"b", 1}) &&
           cluster.workers[1]->barriers.contains({"b", 1});
  }));
  EXPECT_TRUE(cluster.workers[0]->barriers.at({"b", 1}).ok());
  EXPECT_TRUE(reader->barriers.empty());
  cluster.LeaveAllWorkers();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
  EXPECT_TRUE(cluster.over->ok()) << *cluster.over;
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->over.has_value(); }));
  EXPECT_TRUE(reader->over->ok()) << *reader->over;
}

TEST(Readers, OpenTablesAndCreateNone) {
  TestCluster cluster(1, 1, 1);
  cluster.StartAll();
  cluster.RunUntilComplete();
  TestNode* const reader = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() == 1; }));
  cluster.workers[0]->CreateTable(1, TableSpec::Dense("w", {4}));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->tables.contains(1); }));
  reader->Say(proto::CreateTable{.request = 1, .spec = TableSpec::Dense("mine", {4})});
  reader->OpenTable(2, "w");
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->tables.contains(2); }));
  EXPECT_TRUE(reader->tables.at(2).result.ok());
  EXPECT_EQ(reader->tables.at(2).table, cluster.workers[0]->tables.at(1).table);
  EXPECT_FALSE(reader->tables.contains(1));
}

TEST(Readers, HearOfAnotherHeadButNotOfWorkers) {
  TestCluster cluster(1, 2, 2);
  cluster.config.replication = 2;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.world.RunFor(absl::Seconds(30));  // replicas have their state
  TestNode* const reader = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() > 0; }));
  const std::uint64_t epoch = reader->epoch();
  const int maps = reader->maps;
  cluster.workers[0]->Leave();
  cluster.world.RunFor(absl::Seconds(5));
  EXPECT_EQ(reader->maps, maps);
  cluster.Kill(cluster.servers[0]);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() > epoch; }));
}

TEST(Readers, ThatWereForgottenJoinAgain) {
  TestCluster cluster(1, 1, 1);
  cluster.StartAll();
  cluster.RunUntilComplete();
  TestNode* const reader = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() == 1; }));
  cluster.network.Cut(reader->name(), kSchedulerHost);
  ASSERT_TRUE(cluster.RunUntil([&] { return ReadersOf(cluster) == 0; }));
  cluster.world.RunFor(absl::Seconds(20));
  cluster.network.Heal(reader->name(), kSchedulerHost);
  ASSERT_TRUE(cluster.RunUntil([&] { return ReadersOf(cluster) == 1; }));
  EXPECT_FALSE(reader->over.has_value());
  EXPECT_EQ(reader->welcomes, 1);
}

// There may be one after the other as fast as they come, whether they leave or are killed.
TEST(Readers, ThatHaveGoneTakeNoPlace) {
  TestCluster cluster(1, 1, 1);
  cluster.StartAll();
  cluster.RunUntilComplete();
  const absl::Time begin = cluster.world.Now();
  for (int i = 0; i < 100; ++i) {
    TestNode* const reader = cluster.Start(Role::kReader);
    ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() == 1; }));
    if (i % 2 == 0) {
      cluster.Kill(reader);
    } else {
      reader->Leave();
    }
    cluster.world.RunFor(absl::Milliseconds(10));
    ASSERT_LE(ReadersOf(cluster), 3u);
  }
  EXPECT_LT(cluster.world.Now() - begin, cluster.config.failure_timeout);
}

TEST(Readers, OutliveARestartOfTheScheduler) {
  TestCluster cluster(1, 1, 1);
  cluster.config.scheduler_state = "/state";
  cluster.StartAll();
  cluster.RunUntilComplete();
  TestNode* const reader = cluster.Start(Role::kReader);
  ASSERT_TRUE(cluster.RunUntil([&] { return reader->epoch() == 1; }));
  cluster.KillScheduler();
  cluster.world.RunFor(absl::Seconds(3));
  cluster.StartScheduler();
  ASSERT_TRUE(cluster.RunUntil([&] { return ReadersOf(cluster) == 1; }));
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_FALSE(reader->over.has_value());
  EXPECT_EQ(ReadersOf(cluster), 1u);
  // It is no member: that it claims a newer map does not end the scheduler as outdated.
  reader->Say(proto::MapAck{.version = std::uint64_t{1} << 60});
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_FALSE(cluster.over.has_value());
  EXPECT_EQ(ReadersOf(cluster), 1u);
}

}  // namespace
}  // namespace leeway::scheduler
