// The chains when servers die, join and are drained: the whole scheduler on virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/chain.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ChainsTest : public ::testing::Test {
 protected:
  void Begin(std::uint32_t servers, std::uint32_t workers, std::uint32_t replication,
             std::uint64_t seed = 1) {
    cluster_ = std::make_unique<TestCluster>(seed, servers, workers);
    cluster_->config.replication = replication;
    van::LinkFaults uneven;
    uneven.delay_max = absl::Milliseconds(1);
    cluster_->network.SetFaults(uneven);
    cluster_->StartAll();
    cluster_->RunUntilComplete();
    cluster_->world.RunFor(absl::Seconds(3));
  }
  const proto::ClusterMap& Map() const { return *cluster_->workers[0]->map; }

  // Each shard has that many members, all on living servers, and no state transfer is under way.
  bool Whole(std::size_t members) const {
    if (!Map().epoch) return false;
    for (std::uint32_t shard = 0; shard < Map().owners.size(); ++shard) {
      const proto::Chain chain = proto::ChainOf(Map(), shard);
      if (chain.members.size() != members || !chain.joining.empty()) return false;
      for (const proto::ShardOwner& place : chain.members) {
        if (!Map().servers[place.server_rank].alive) return false;
      }
    }
    return true;
  }
  std::map<std::uint32_t, int> Members() const {
    std::map<std::uint32_t, int> members;
    for (std::uint32_t shard = 0; shard < Map().owners.size(); ++shard) {
      for (const auto& place : proto::ChainOf(Map(), shard).members) ++members[place.server_rank];
    }
    return members;
  }
  bool Even() const {
    const auto status = nlohmann::json::parse(cluster_->scheduler->StatusJson());
    return status["shards"]["settled"] == true;
  }
  TestNode* StartLate(Role role, bool elastic = false) {
    return cluster_->Start(role, [elastic](Config* config) { config->elastic = elastic; });
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(ChainsTest, AfterADeathTheWorkersKnowTheNewHeadsAtOnce) {
  Begin(3, 4, 2);
  const absl::Time died = cluster_->world.Now();
  cluster_->Kill(cluster_->servers[1]);
  const std::uint32_t dead = cluster_->servers[1]->welcome->rank;
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->downs.empty(); }));
  EXPECT_LT(cluster_->world.Now() - died, cluster_->config.suspicion + absl::Milliseconds(5));
  EXPECT_THAT(cluster_->workers[0]->downs[0].reason, HasSubstr("LEEWAY_SUSPICION_MS"));
  const absl::Time detected = cluster_->world.Now();
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return std::all_of(cluster_->workers.begin(), cluster_->workers.end(),
                       [](const TestNode* worker) { return worker->epoch() == 2; });
  }));
  EXPECT_LT(cluster_->world.Now() - detected, absl::Milliseconds(5));
  EXPECT_THAT(
      cluster_->scheduler->StatusJson(),
      HasSubstr(absl::StrCat("2 of 3 servers and 4 of 4 workers live; server ", dead, " is dead")));
  for (const proto::ShardOwner& owner : Map().owners) {
    EXPECT_NE(owner.server_rank, dead);
    EXPECT_NE(owner.server_rank, proto::kNoServer);
  }
  ASSERT_TRUE(cluster_->RunUntil([&] { return Whole(2); }, absl::Minutes(1)));
  EXPECT_LT(cluster_->workers[0]->epochs, 16);
}

TEST_F(ChainsTest, ADeadServerWithoutTheMapHoldsUpWorkersOnlyBriefly) {
  Begin(4, 1, 2);
  cluster_->servers[2]->acknowledges_maps = false;
  cluster_->Kill(cluster_->servers[1]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->downs.empty(); }));
  const absl::Time detected = cluster_->world.Now();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() == 2; }));
  EXPECT_LT(cluster_->world.Now() - detected, absl::Milliseconds(110));
}

TEST_F(ChainsTest, LogsWhenReplicasAreWholeAgain) {
  Begin(3, 1, 2);
  for (TestNode* server : cluster_->servers) server->reports_ready = false;
  const auto said = [&](const std::function<void()>& action) {
    ::testing::internal::CaptureStderr();
    action();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said([&] {
                cluster_->Kill(cluster_->servers[1]);
                cluster_->world.RunFor(absl::Seconds(90));
              }),
              Not(HasSubstr("whole")))
      << "the new replicas have no state yet";
  EXPECT_FALSE(Whole(2));
  EXPECT_THAT(said([&] {
                for (TestNode* server : cluster_->servers) server->ReportReady();
                ASSERT_TRUE(cluster_->RunUntil([&] { return Even() && Whole(2); }));
                cluster_->world.RunFor(absl::Minutes(1));
              }),
              ContainsRegex("replicas are whole again, 1m[0-9.]+s after a server had gone: all 96 "
                            "shards have 2\n"));
  EXPECT_THAT(said([&] { cluster_->world.RunFor(absl::Minutes(10)); }), Not(HasSubstr("whole")))
      << "said before";
}

TEST_F(ChainsTest, LogsWhenTooFewServersAreLeft) {
  Begin(2, 1, 2);
  ::testing::internal::CaptureStderr();
  cluster_->Kill(cluster_->servers[1]);
  cluster_->world.RunFor(absl::Minutes(1));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              ContainsRegex("replicas are as whole as they can be, .* 64 shards have 1 each"));
  EXPECT_THAT(said, Not(HasSubstr("whole again")));
  ::testing::internal::CaptureStderr();
  StartLate(Role::kServer);
  cluster_->world.RunFor(absl::Minutes(1));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("replicas are whole again, [0-9ms.]+ after a server had gone: all 64 "
                            "shards have 2\n"));
}

TEST_F(ChainsTest, NodesSayHowLongTheyHaveBeenThere) {
  Begin(2, 1, 1);
  cluster_->world.RunFor(absl::Seconds(100));
  const auto status = nlohmann::json::parse(cluster_->scheduler->StatusJson());
  EXPECT_NEAR(status["uptime_ms"].get<double>(), 103'000, 3'000);
  EXPECT_NEAR(status["servers"][0]["uptime_ms"].get<double>(), 103'000, 3'000);
  EXPECT_NEAR(status["workers"][0]["uptime_ms"].get<double>(), 103'000, 3'000);
}

TEST_F(ChainsTest, WithoutReplicasTheFailureTimeoutCounts) {
  Begin(2, 1, 1);
  const absl::Time died = cluster_->world.Now();
  cluster_->Kill(cluster_->servers[1]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() == 2; }));
  EXPECT_GT(cluster_->world.Now() - died,
            cluster_->config.failure_timeout - cluster_->config.heartbeat_interval);
  const auto lost =
      std::count(Map().owners.begin(), Map().owners.end(), proto::ShardOwner{proto::kNoServer, 0});
  EXPECT_EQ(lost, 32);
}

// If all break at once, the scheduler's own network failed. If some do, the last replica stays.
TEST_F(ChainsTest, BrokenConnectionsOfASchedulerCostNoShard) {
  for (const std::size_t broken : {3u, 2u}) {
    SCOPED_TRACE(broken);
    Begin(3, 4, 2);
    const auto for_each = [&](const auto& what) {
      for (std::size_t i = 0; i < broken; ++i) what(cluster_->servers[i]->name());
    };
    for_each([&](const std::string& server) { cluster_->network.Break(server, kSchedulerHost); });
    cluster_->world.RunFor(absl::Microseconds(100));  // both ends have heard of it
    for_each([&](const std::string& server) {
      cluster_->network.Cut(server, kSchedulerHost);
      cluster_->network.Cut(kSchedulerHost, server);
    });
    cluster_->world.RunFor(cluster_->config.suspicion + absl::Milliseconds(500));
    cluster_->network.HealAll();
    cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
    EXPECT_EQ(std::count(Map().owners.begin(), Map().owners.end(),
                         proto::ShardOwner{proto::kNoServer, 0}),
              0);
    EXPECT_EQ(cluster_->workers[0]->downs.size(), broken == 3 ? 0u : 1u);
    EXPECT_FALSE(cluster_->over.has_value());
  }
}

TEST_F(ChainsTest, ASchedulerThatIsCutOffDeclaresNoNodeDead) {
  for (const std::size_t workers_heard : {0u, 1u, 4u}) {
    Begin(3, 4, 2);
    const auto cut = [&](const TestNode* node) {
      cluster_->network.Cut(node->name(), kSchedulerHost);
      cluster_->network.Cut(kSchedulerHost, node->name());
    };
    for (const TestNode* server : cluster_->servers) cut(server);
    for (std::size_t i = workers_heard; i < cluster_->workers.size(); ++i) {
      cut(cluster_->workers[i]);
    }
    cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
    cluster_->network.HealAll();
    cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
    EXPECT_FALSE(cluster_->over.has_value());
    for (const auto& node : cluster_->nodes) {
      EXPECT_THAT(node->downs, IsEmpty());
      EXPECT_FALSE(node->over.has_value());
      EXPECT_EQ(node->epoch(), 1u);
    }
    // From then on dead servers are found again.
    cluster_->Kill(cluster_->servers[1]);
    ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->downs.empty(); }));
  }
}

TEST_F(ChainsTest, ASchedulerThatIsCutOffGivesUpWhenItsNodesDo) {
  Begin(3, 1, 2);
  for (const auto& node : cluster_->nodes) cluster_->network.Cut(node->name(), kSchedulerHost);
  const absl::Time cut = cluster_->world.Now();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }, absl::Hours(1)));
  EXPECT_GT(cluster_->world.Now() - cut, cluster_->config.scheduler_timeout);
  EXPECT_LT(cluster_->world.Now() - cut,
            cluster_->config.scheduler_timeout + 3 * cluster_->config.failure_timeout);
}

TEST_F(ChainsTest, AProcessStartedBeforeItsForerunnersConnectionsBreakIsNotTurnedAway) {
  Begin(3, 1, 2);
  TestNode* late = StartLate(Role::kServer);
  cluster_->world.RunFor(absl::Milliseconds(300));  // it has asked
  cluster_->Kill(cluster_->servers[2]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return late->welcome.has_value(); }));
  EXPECT_EQ(late->welcome->rank, cluster_->servers[2]->welcome->rank);
  // No node dies: there is no free rank.
  TestNode* too_many = StartLate(Role::kServer);
  ASSERT_TRUE(cluster_->RunUntil([&] { return too_many->over.has_value(); }));
  EXPECT_THAT(Text(*too_many->over), HasSubstr("LEEWAY_ELASTIC=1"));
}

TEST_F(ChainsTest, ADeathCostsAFewMessagesANode) {
  Begin(10, 100, 2);
  for (const auto& node : cluster_->nodes) node->reports_ready = false;
  const std::uint64_t before = cluster_->MessagesSent();
  const absl::Time then = cluster_->world.Now();
  cluster_->Kill(cluster_->servers[3]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[99]->epoch() == 2; }));
  const double beats = absl::ToDoubleSeconds(cluster_->world.Now() - then) + 1;
  EXPECT_LE(cluster_->MessagesSent() - before, static_cast<std::uint64_t>(109 * (2 + beats)));
}

TEST_F(ChainsTest, AServerThatIsReplacedGetsTheTablesAndThenItsShare) {
  Begin(3, 2, 2);
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster_->workers[0]->CreateTable(2, TableSpec::Dense("v", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->tables.size() == 2; }));
  const std::uint32_t rank = cluster_->servers[1]->welcome->rank;
  cluster_->Kill(cluster_->servers[1]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() >= 2; }));
  TestNode* replacement = StartLate(Role::kServer);
  replacement->answers_installs = false;
  cluster_->world.RunFor(absl::Seconds(20));
  ASSERT_TRUE(replacement->welcome.has_value());
  EXPECT_EQ(replacement->welcome->rank, rank);
  EXPECT_EQ(Map().servers[rank].node, replacement->welcome->node);
  EXPECT_EQ(Members()[rank], 0);  // it lacks the tables
  EXPECT_TRUE(Whole(2));
  replacement->answers_installs = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return Even() && Members()[rank] == 64; }));
  EXPECT_EQ(replacement->installed.size(), 2u);
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_TRUE(Whole(2));
  std::map<std::uint32_t, int> heads;
  for (const proto::ShardOwner& owner : Map().owners) ++heads[owner.server_rank];
  for (const auto& [server, count] : heads) EXPECT_NEAR(count, 32, 1);
}

// The server sends heartbeats, which have a thread of their own, and does nothing else.
TEST_F(ChainsTest, ALateServerThatStallsHoldsUpNoWorker) {
  Begin(2, 2, 2);
  TestNode* const still = StartLate(Role::kServer, true);
  still->acknowledges_maps = false;
  ASSERT_TRUE(cluster_->RunUntil([&] { return still->epoch() == 2; }));
  const auto all_have = [&](std::uint64_t epoch) {
    return cluster_->RunUntil(
        [&] {
          return cluster_->workers[0]->epoch() >= epoch && cluster_->workers[1]->epoch() >= epoch;
        },
        absl::Seconds(2));
  };
  ASSERT_TRUE(all_have(2));
  cluster_->world.RunFor(absl::Seconds(20));
  EXPECT_EQ(Members()[still->welcome->rank], 0);
  // Nor do others that come: they get shards.
  TestNode* const third = StartLate(Role::kServer, true);
  ASSERT_TRUE(cluster_->RunUntil([&] { return third->epoch() >= 3; }));
  ASSERT_TRUE(all_have(3));
  ASSERT_TRUE(cluster_->RunUntil([&] { return Members()[third->welcome->rank] > 0; }));
  EXPECT_EQ(Members()[still->welcome->rank], 0);
}

TEST_F(ChainsTest, ALateServerTakesPartInATableThatIsBeingCreated) {
  Begin(2, 1, 1);
  cluster_->servers[0]->answers_installs = false;
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster_->world.RunFor(absl::Seconds(1));
  TestNode* late = StartLate(Role::kServer, true);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !late->installed.empty(); }));
  cluster_->servers[0]->answers_installs = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  EXPECT_TRUE(cluster_->workers[0]->tables[1].result.ok());
}

TEST_F(ChainsTest, ALateServerThatLacksAnUpdaterIsSentAway) {
  Begin(2, 1, 2);
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  TestNode* late = StartLate(Role::kServer, true);
  late->refusal = absl::NotFoundError("no updater 'x'");
  ASSERT_TRUE(cluster_->RunUntil([&] { return late->over.has_value(); }));
  EXPECT_THAT(Text(*late->over), HasSubstr("LEEWAY_PLUGINS"));
  EXPECT_FALSE(cluster_->workers[0]->over.has_value());
  EXPECT_TRUE(Whole(2));
}

TEST_F(ChainsTest, AReplacementThatIsThereBeforeTheDeathIsKnownWaitsForIt) {
  Begin(3, 1, 2);
  cluster_->Kill(cluster_->servers[1]);
  TestNode* replacement = StartLate(Role::kServer);
  ASSERT_TRUE(cluster_->RunUntil([&] { return replacement->welcome.has_value(); }));
  EXPECT_EQ(replacement->welcome->rank, cluster_->servers[1]->welcome->rank);
  TestNode* extra = StartLate(Role::kServer);
  ASSERT_TRUE(cluster_->RunUntil([&] { return extra->over.has_value(); }));
  EXPECT_THAT(Text(*extra->over), HasSubstr("LEEWAY_NUM_SERVERS=3"));
}

TEST_F(ChainsTest, ElasticNodesComeOnTopOnceTheClusterIsComplete) {
  cluster_ = std::make_unique<TestCluster>(1, 2, 1);
  cluster_->StartScheduler();
  TestNode* server = StartLate(Role::kServer, true);
  TestNode* worker = StartLate(Role::kWorker, true);
  cluster_->world.RunFor(absl::Seconds(30));
  EXPECT_FALSE(server->welcome.has_value());
  for (int i = 0; i < 2; ++i) cluster_->Start(Role::kServer);
  TestNode* founder = cluster_->Start(Role::kWorker);
  ASSERT_TRUE(cluster_->RunUntil([&] { return server->welcome.has_value() && worker->epoch() > 0; },
                                 absl::Minutes(1)));
  EXPECT_EQ(server->welcome->rank, 2u);
  EXPECT_EQ(worker->welcome->rank, 1u);
  ASSERT_TRUE(cluster_->RunUntil([&] { return founder->map->workers.size() == 2; }));
  EXPECT_FALSE(founder->map->workers[0].late);
  EXPECT_TRUE(founder->map->workers[1].late);
  ASSERT_TRUE(cluster_->RunUntil([&] { return Even(); }));
  cluster_->world.RunFor(absl::Seconds(1));
  for (const auto& [rank, count] : Members()) EXPECT_NEAR(count, 64 / 3.0, 1) << rank;
  // The one on top counts in barriers too, and is not waited for once it has left.
  founder->Enter("b", 1);
  cluster_->world.RunFor(absl::Seconds(5));
  EXPECT_THAT(founder->barriers, IsEmpty());
  worker->Leave();
  ASSERT_TRUE(cluster_->RunUntil([&] { return !founder->barriers.empty(); }));
}

TEST_F(ChainsTest, ADrainedServerIsEmptyThenGoesAndTheOthersAreEven) {
  Begin(4, 1, 2);
  const std::uint32_t rank = cluster_->servers[0]->welcome->rank;
  const auto tool = cluster_->Ask("drain", {absl::StrCat("server:", rank)});
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->servers[0]->over.has_value(); }));
  EXPECT_TRUE(cluster_->servers[0]->over->ok()) << *cluster_->servers[0]->over;
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_TRUE(Whole(2));
  EXPECT_FALSE(Members().contains(rank));
  ASSERT_TRUE(cluster_->RunUntil([&] { return Even(); }));
  cluster_->world.RunFor(absl::Seconds(1));
  for (const auto& [server, count] : Members()) EXPECT_NEAR(count, 128 * 2 / 3.0, 1) << server;
  ASSERT_EQ(cluster_->workers[0]->downs.size(), 1u);
  EXPECT_TRUE(cluster_->workers[0]->downs[0].left);
  cluster_->LeaveAllWorkers();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }));
  EXPECT_TRUE(cluster_->over->ok()) << *cluster_->over;
}

TEST_F(ChainsTest, AnImpossibleDrainIsRefusedInOneLine) {
  Begin(2, 1, 2);
  const auto refused = [&](std::vector<std::string> arguments) {
    const auto tool = cluster_->Ask("drain", std::move(arguments));
    EXPECT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
    EXPECT_FALSE(tool->answer->ok());
    return Text(*tool->answer);
  };
  EXPECT_THAT(refused({"server:1"}), HasSubstr("LEEWAY_REPLICATION=2"));
  EXPECT_THAT(refused({"server:7"}), HasSubstr("there is no server 7"));
  EXPECT_THAT(refused({"worker:0"}), HasSubstr("server:RANK"));
  EXPECT_THAT(refused({}), HasSubstr("server:RANK"));
  cluster_->Kill(cluster_->servers[1]);
  const std::uint32_t dead = cluster_->servers[1]->welcome->rank;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() >= 2; }));
  EXPECT_THAT(refused({absl::StrCat("server:", dead)}), HasSubstr("dead"));
  const auto unknown = cluster_->Ask("dance");
  ASSERT_TRUE(cluster_->RunUntil([&] { return unknown->answer.has_value(); }));
  EXPECT_THAT(Text(*unknown->answer), HasSubstr("drain, model, publish, rebalance"));
}

// Of three servers two are needed: while the first is being drained no other one can be.
TEST_F(ChainsTest, AServerThatIsBeingDrainedIsNoneThatStays) {
  Begin(3, 1, 2);
  for (TestNode* server : cluster_->servers) server->reports_ready = false;
  const auto drain = [&](int index) {
    return cluster_->Ask("drain",
                         {absl::StrCat("server:", cluster_->servers[index]->welcome->rank)});
  };
  const auto first = drain(0);
  cluster_->world.RunFor(absl::Seconds(1));
  ASSERT_FALSE(first->answer.has_value());
  const auto second = drain(1);
  ASSERT_TRUE(cluster_->RunUntil([&] { return second->answer.has_value(); }, absl::Seconds(5)));
  EXPECT_THAT(Text(*second->answer), HasSubstr("LEEWAY_REPLICATION=2"));
}

TEST_F(ChainsTest, ADrainWhoseServerDiesFails) {
  Begin(3, 1, 2);
  for (TestNode* server : cluster_->servers) server->reports_ready = false;
  const std::uint32_t rank = cluster_->servers[0]->welcome->rank;
  const auto tool = cluster_->Ask("drain", {absl::StrCat("server:", rank)});
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_FALSE(tool->answer.has_value());
  cluster_->Kill(cluster_->servers[0]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_THAT(Text(*tool->answer), HasSubstr(absl::StrCat("server ", rank)));
}

TEST_F(ChainsTest, RebalancesByWhatTheServersReport) {
  Begin(2, 1, 1);
  // Server r says that its first shards are heavy.
  for (TestNode* server : cluster_->servers) {
    proto::LoadReport report;
    for (std::uint32_t shard = 0; shard < Map().owners.size(); ++shard) {
      if (Map().owners[shard].server_rank != server->welcome->rank) continue;
      const bool heavy = server->welcome->rank == 0 && report.shards.size() < 8;
      report.shards.push_back({.shard = shard, .bytes = heavy ? 1000u : 100u, .requests = 0});
    }
    server->Say(report);
  }
  cluster_->world.RunFor(absl::Seconds(1));
  const auto tool = cluster_->Ask("rebalance");
  ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
  cluster_->world.RunFor(absl::Seconds(1));
  // 10,400 and 3,200 bytes before; every move takes at most 1,000 of them.
  EXPECT_NE(Members()[0], 32);
  const auto wrong = cluster_->Ask("rebalance", {"luck"});
  ASSERT_TRUE(cluster_->RunUntil([&] { return wrong->answer.has_value(); }));
  EXPECT_THAT(Text(*wrong->answer), HasSubstr("'luck'"));
}

TEST_F(ChainsTest, AWorkerThatDiedMayComeBackAndCountsAgain) {
  Begin(1, 2, 1);
  for (std::uint64_t number : {1, 2}) {
    for (TestNode* worker : cluster_->workers) worker->Enter("b", number);
    cluster_->world.RunFor(absl::Seconds(1));
  }
  TestNode* dead = cluster_->workers[1];
  TestNode* other = cluster_->workers[0];
  cluster_->Kill(dead);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !other->downs.empty(); }));
  TestNode* returned =
      cluster_->Start(Role::kWorker, [&](Config* config) { config->rank = dead->welcome->rank; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return returned->epoch() > 0; }));
  EXPECT_EQ(returned->welcome->rank, dead->welcome->rank);
  EXPECT_TRUE(returned->map->workers[dead->welcome->rank].late);
  other->Enter("b", 3);
  cluster_->world.RunFor(absl::Seconds(3));
  EXPECT_EQ(other->barriers.size(), 2u);
  returned->Enter("b", 1);
  ASSERT_TRUE(cluster_->RunUntil([&] { return other->barriers.size() == 3; }));
  cluster_->LeaveAllWorkers();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }));
  EXPECT_TRUE(cluster_->over->ok()) << "the dead one was replaced: " << *cluster_->over;
}

TEST_F(ChainsTest, TheClusterWaitsAWhileForItsLastWorkerToComeBack) {
  Begin(1, 1, 1);
  cluster_->Kill(cluster_->workers[0]);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->servers[0]->downs.empty(); }));
  cluster_->world.RunFor(cluster_->config.failure_timeout - absl::Seconds(1));
  EXPECT_FALSE(cluster_->over.has_value());
  TestNode* returned = StartLate(Role::kWorker);
  ASSERT_TRUE(cluster_->RunUntil([&] { return returned->epoch() > 0; }));
  cluster_->world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(cluster_->over.has_value());
  cluster_->Kill(returned);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }, absl::Seconds(25)));
  EXPECT_EQ(cluster_->over->code(), absl::StatusCode::kUnavailable);
}

TEST_F(ChainsTest, TheSameSeedGivesTheSameMapsAtTheSameTimes) {
  const auto history_of = [&](std::uint64_t seed) {
    Begin(3, 2, 2, seed);
    std::string history;
    const auto watch = [&](absl::Duration duration) {
      const absl::Time until = cluster_->world.Now() + duration;
      std::uint64_t version = 0;
      while (cluster_->world.Now() < until && cluster_->world.Step()) {
        if (Map().version == version) continue;
        version = Map().version;
        absl::StrAppend(&history, absl::ToUnixNanos(cluster_->world.Now()), " ",
                        absl::string_view(proto::Encode(Map()).text()), "\n");
      }
    };
    cluster_->Kill(cluster_->servers[1]);
    watch(absl::Seconds(3));
    StartLate(Role::kServer);
    watch(absl::Seconds(3));
    EXPECT_EQ(Members().size(), 3u);
    return history;
  };
  const std::string first = history_of(5);
  EXPECT_EQ(first, history_of(5));
  EXPECT_NE(first, history_of(6));
}

}  // namespace
}  // namespace leeway::scheduler
