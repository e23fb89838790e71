// The answers to commands, and their conditions, under the whole scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler::commands_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommandsTest : public ::testing::Test {
 protected:
  void Begin(std::uint32_t servers) {
    cluster_ = std::make_unique<TestCluster>(1, servers, 1);
    cluster_->config.replication = 2;
    cluster_->StartAll();
    cluster_->RunUntilComplete();
    cluster_->world.RunFor(absl::Seconds(3));
  }
  void SetReportsReady(bool reports) {
    for (TestNode* server : cluster_->servers) {
      if (cluster_->killed.contains(server)) continue;
      reports ? server->ReportReady() : void(server->reports_ready = false);
    }
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(CommandsTest, ARebalanceIsAnsweredWhenShardsAreEven) {
  Begin(2);
  TestNode* const late =
      cluster_->Start(Role::kServer, [](Config* config) { config->elastic = true; });
  late->reports_ready = false;
  SetReportsReady(false);
  ASSERT_TRUE(cluster_->RunUntil([&] { return late->epoch() > 0; }));
  cluster_->world.RunFor(absl::Seconds(1));
  const auto tool = cluster_->Ask("rebalance", {"count"});
  cluster_->world.RunFor(absl::Seconds(5));
  EXPECT_FALSE(tool->answer.has_value());
  SetReportsReady(true);
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
}

TEST_F(CommandsTest, ADrainThatWasRefusedIsNotDoneLater) {
  Begin(2);
  TestNode* const needed = cluster_->servers[0];
  const auto tool = cluster_->Ask("drain", {absl::StrCat("server:", needed->welcome->rank)});
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_FALSE(tool->answer->ok());
  cluster_->Start(Role::kServer, [](Config* config) { config->elastic = true; });
  cluster_->world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(needed->over.has_value());
}

// Pushes that were applied ahead of their clocks may still be in the state.
TEST_F(CommandsTest, ACheckpointOfATableThatWasBoundedIsCutAsOfOneThatIs) {
  Begin(2);
  TestNode* const worker = cluster_->workers[0];
  TableSpec spec = TableSpec::Dense("w", {8});
  spec.consistency = Consistency::Asp();
  worker->CreateTable(1, spec);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !worker->tables.empty(); }));
  for (const char* change : {"consistency=ssp:3", "consistency=asp"}) {
    const auto tool = cluster_->Ask("table", {"w", change});
    ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
    EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
    // It never reaches the clock of the first change, for which the second waits.
    if (!cluster_->killed.contains(worker)) cluster_->Kill(worker);
  }
  const auto tool = cluster_->Ask("checkpoint-save", {"saved"});
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->servers[0]->cuts.empty(); }));
  EXPECT_TRUE(cluster_->servers[0]->cuts[0].bounded);
  EXPECT_EQ(cluster_->servers[0]->cuts[0].clock, 6u);
}

// No plan is made meanwhile, since a server does not take the map; but a death is acted on at once.
TEST_F(CommandsTest, ADrainOfAServerThatIsBeingTakenInIsNotForgotten) {
  Begin(4);
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  TestNode* const late = cluster_->StartWithoutTables();
  cluster_->servers[0]->acknowledges_maps = false;
  const auto tool = cluster_->Ask("drain", {absl::StrCat("server:", late->welcome->rank)});
  cluster_->world.RunFor(absl::Seconds(1));
  late->answers_installs = true;
  cluster_->world.RunFor(absl::Seconds(2));
  EXPECT_FALSE(tool->answer.has_value());
  cluster_->servers[0]->acknowledges_maps = true;
  cluster_->Kill(cluster_->servers[1]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }, absl::Minutes(1)));
  EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
  EXPECT_TRUE(cluster_->RunUntil([&] { return late->over.has_value(); }, absl::Seconds(5)));
}

// A command whose answer was lost is repeated when another process has the rank.
TEST_F(CommandsTest, ADrainIsOfTheProcessThatItNames) {
  Begin(3);
  const proto::Welcome first = *cluster_->servers[0]->welcome;
  const std::string rank = absl::StrCat("server:", first.rank);
  const auto answer_to = [&](const std::string& server, const std::string& node) {
    const auto tool = cluster_->Ask("drain", {server, node});
    EXPECT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }, absl::Minutes(1)));
    return std::pair(*tool->answer, tool->json);
  };
  const std::string node = absl::StrCat("node:", first.node);
  EXPECT_TRUE(answer_to(rank, node).first.ok());
  TestNode* const next = cluster_->Start(Role::kServer);
  ASSERT_TRUE(cluster_->RunUntil([&] { return next->epoch() > 0; }));
  ASSERT_EQ(next->welcome->rank, first.rank);
  cluster_->world.RunFor(absl::Seconds(3));

  const auto [again, json] = answer_to(rank, node);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_THAT(json, HasSubstr(absl::StrCat("\"node\":", first.node)));
  cluster_->world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(next->over.has_value());

  cluster_->Kill(next);
  cluster_->world.RunFor(absl::Minutes(1));
  const std::string killed = absl::StrCat("node:", next->welcome->node);
  EXPECT_THAT(Text(answer_to(rank, killed).first), HasSubstr("is dead"));
  EXPECT_THAT(Text(answer_to("server:1", node).first), HasSubstr("is no server that has"));
  EXPECT_THAT(Text(answer_to(rank, "17").first), HasSubstr("it must be node:ID"));
}

TEST_F(CommandsTest, AModelThatHasLostShardsIsNotSaved) {
  cluster_ = std::make_unique<TestCluster>(1, 2, 1);
  cluster_->StartAll();
  cluster_->RunUntilComplete();
  cluster_->Kill(cluster_->servers[0]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() == 2; }));
  const auto tool = cluster_->Ask("checkpoint-save", {"saved"});
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_THAT(Text(*tool->answer), HasSubstr("shards are lost"));
}

// The answer names the reason and the remedy.
TEST_F(CommandsTest, ADrainThatCannotEndSaysSo) {
  Begin(3);
  SetReportsReady(false);
  const auto tool =
      cluster_->Ask("drain", {absl::StrCat("server:", cluster_->servers[0]->welcome->rank)});
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_FALSE(tool->answer.has_value());
  cluster_->Kill(cluster_->servers[1]);
  SetReportsReady(true);
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }, absl::Minutes(1)));
  EXPECT_THAT(Text(*tool->answer), HasSubstr("have nowhere to go"));
  // The drain goes on when another server has joined.
  cluster_->Start(Role::kServer);
  EXPECT_TRUE(
      cluster_->RunUntil([&] { return cluster_->servers[0]->over.has_value(); }, absl::Minutes(1)));
}

// The scheduler was cut off from all of them, and hears one of them first.
TEST_F(CommandsTest, AServerHeardALittleLaterIsNotDead) {
  Begin(3);
  for (const auto& node : cluster_->nodes) {
    cluster_->network.Cut(node->name(), kSchedulerHost);
    cluster_->network.Cut(kSchedulerHost, node->name());
  }
  cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
  const std::string first = cluster_->servers[0]->name();
  cluster_->network.Heal(first, kSchedulerHost);
  cluster_->network.Heal(kSchedulerHost, first);
  cluster_->world.RunFor(cluster_->config.failure_timeout / 2);
  cluster_->network.HealAll();
  cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
  for (const auto& node : cluster_->nodes) EXPECT_THAT(node->downs, IsEmpty());
}

}  // namespace
}  // namespace leeway::scheduler::commands_test
