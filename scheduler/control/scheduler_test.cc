// The whole scheduler on virtual time, with nodes that are the real node::Membership.
#include "scheduler/control/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Scheduler, RolesMayStartInAnyOrderMinutesApart) {
  // Every order of one scheduler, one server, one worker.
  std::string order = "msw";
  std::sort(order.begin(), order.end());
  do {
    TestCluster cluster(7, 1, 1);
    for (char role : order) {
      if (role == 'm') cluster.StartScheduler();
      if (role == 's') cluster.Start(Role::kServer);
      if (role == 'w') cluster.Start(Role::kWorker);
      cluster.world.RunFor(absl::Minutes(4));
    }
    EXPECT_TRUE(cluster.Complete()) << order;
    EXPECT_EQ(cluster.workers[0]->epoch(), 1u);
    EXPECT_EQ(cluster.servers[0]->welcome->rank, 0u);
    EXPECT_EQ(cluster.workers[0]->map->owners.size(), 32u);
    cluster.LeaveAllWorkers();
    EXPECT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
    EXPECT_TRUE(cluster.over->ok()) << *cluster.over;
    EXPECT_TRUE(cluster.servers[0]->over.has_value() && cluster.servers[0]->over->ok());
    EXPECT_TRUE(cluster.workers[0]->left.has_value() && cluster.workers[0]->left->ok());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Scheduler, AWorkerNeverKnowsMoreThanAServer) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.servers[1]->acknowledges_maps = false;
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(cluster.servers[1]->epoch(), 1u);
  EXPECT_EQ(cluster.workers[0]->epoch(), 0u);
  EXPECT_EQ(cluster.servers[0]->epoch(), 1u);
}

TEST(Scheduler, AClusterFormsWithAFewMessagesANode) {
  TestCluster cluster(1, 20, 200);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.world.RunFor(absl::Milliseconds(100));  // and the map is acknowledged
  for (const auto& node : cluster.nodes) EXPECT_EQ(node->maps, 1) << node->name();
  const auto status = nlohmann::json::parse(cluster.scheduler->StatusJson());
  // Welcome and the map for each, and perhaps repeated answers.
  EXPECT_LE(status["counters"]["messages_sent"], 4 * 220);
  EXPECT_LE(status["counters"]["messages_received"], 4 * 220);
}

TEST(Scheduler, DeathsFoundAtOnceAreOneMap) {
  TestCluster cluster(1, 2, 8);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.world.RunFor(absl::Seconds(5));
  for (int worker = 4; worker < 8; ++worker) cluster.Kill(cluster.workers[worker]);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->downs.size() == 4; }));
  cluster.world.RunFor(absl::Seconds(5));
  EXPECT_EQ(cluster.workers[0]->maps, 2);
  EXPECT_EQ(cluster.servers[1]->maps, 2);
}

// 220 nodes: a map that tells of workers alone rests for 220 ms before the next.
TEST(Scheduler, WorkersThatLeaveOneAfterTheOtherAreAFewMaps) {
  TestCluster cluster(1, 20, 200);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.world.RunFor(absl::Seconds(1));
  const std::uint64_t before = cluster.MessagesSent();
  for (int worker = 0; worker < 100; ++worker) {
    cluster.workers[worker]->Leave();
    cluster.world.RunFor(absl::Milliseconds(5));
  }
  cluster.world.RunFor(absl::Milliseconds(230));
  const TestNode& stays = *cluster.workers[199];
  EXPECT_EQ(stays.map->workers[99].state, proto::WorkerState::kLeft);
  EXPECT_EQ(stays.downs.size(), 100u);  // as the map tells
  EXPECT_LE(stays.maps, 1 + 4);
  // Four maps, and an answer for each that leaves and for each heartbeat.
  EXPECT_LE(cluster.MessagesSent() - before, 4u * 220 + 100 + 2 * 220);
}

TEST(Scheduler, ADeadServerIsToldOfAtOnceWhileWorkersLeave) {
  TestCluster cluster(1, 20, 200);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.Kill(cluster.servers[0]);
  cluster.world.RunFor(cluster.config.failure_timeout - absl::Milliseconds(500));
  const TestNode& stays = *cluster.workers[199];
  const auto told = [&] {
    return !stays.downs.empty() && stays.downs.back().role == Role::kServer;
  };
  for (int worker = 0; worker < 190 && !told(); ++worker) {
    cluster.workers[worker]->Leave();
    cluster.RunUntil(told, absl::Milliseconds(10));
  }
  ASSERT_TRUE(told());
  EXPECT_GT(cluster.servers[1]->downs.size(), 1u);  // workers have left
  EXPECT_TRUE(cluster.RunUntil([&] { return stays.epoch() == 2; }, absl::Milliseconds(5)));
}

TEST(Scheduler, ANodeThatWaitsForTheClusterMayAskForTheMissing) {
  TestCluster cluster;
  cluster.StartScheduler();
  cluster.Start(Role::kServer);
  TestNode* worker = cluster.Start(Role::kWorker);
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(worker->maps, 0);
  worker->AskForMap();
  cluster.world.RunFor(absl::Seconds(1));
  ASSERT_EQ(worker->maps, 1);
  EXPECT_EQ(worker->map->epoch, 0u);
  EXPECT_EQ(node::DescribeMissing(*worker->map, 2, 2),
            "1 of 2 servers and 1 of 2 workers have joined; missing server 1 and worker 1");
  cluster.Start(Role::kServer);
  cluster.Start(Role::kWorker);
  cluster.RunUntilComplete();
  EXPECT_EQ(worker->epoch(), 1u);
}

TEST(Scheduler, DoesNotWaitForNodesThatGaveUpOnAnIncompleteCluster) {
  TestCluster cluster;
  cluster.StartScheduler();
  TestNode* server = cluster.Start(Role::kServer);
  const absl::Time joined = cluster.world.Now();
  cluster.world.RunFor(absl::Seconds(1));
  cluster.Kill(server);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }, absl::Hours(1)));
  EXPECT_LT(cluster.world.Now() - joined, cluster.config.connect_timeout + absl::Seconds(1));
}

TEST(Scheduler, OneWorkerTooManyIsRefusedAndTheOthersGoOn) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  const TestNode* extra = cluster.Start(Role::kWorker);
  ASSERT_TRUE(cluster.RunUntil([&] { return extra->over.has_value(); }));
  EXPECT_THAT(Text(*extra->over), AllOf(HasSubstr("sim://scheduler/0"), HasSubstr("number 3"),
                                        HasSubstr("LEEWAY_NUM_WORKERS=2")));
  EXPECT_EQ(extra->overs, 1);
  EXPECT_EQ(extra->welcomes, 0);
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(cluster.workers[0]->over.has_value());
  EXPECT_EQ(cluster.workers[0]->epoch(), 1u);
}

TEST(Scheduler, NodesThatAnnounceOtherNumbersAreRefused) {
  TestCluster cluster;
  cluster.StartScheduler();
  const TestNode* node = cluster.Start(Role::kServer, [](Config* c) { c->num_workers = 9; });
  ASSERT_TRUE(cluster.RunUntil([&] { return node->over.has_value(); }));
  EXPECT_THAT(Text(*node->over),
              AllOf(HasSubstr("LEEWAY_NUM_WORKERS=9"), HasSubstr("LEEWAY_NUM_WORKERS=2")));
}

TEST(Scheduler, RanksAskedForAreGivenOrRefused) {
  TestCluster cluster;
  cluster.StartScheduler();
  const auto ask = [](std::uint32_t rank) { return [rank](Config* c) { c->rank = rank; }; };
  const TestNode* first = cluster.Start(Role::kWorker, ask(1));
  ASSERT_TRUE(cluster.RunUntil([&] { return first->welcome.has_value(); }));
  EXPECT_EQ(first->welcome->rank, 1u);
  const TestNode* same = cluster.Start(Role::kWorker, ask(1));
  const TestNode* beyond = cluster.Start(Role::kWorker, ask(2));
  const TestNode* far_beyond = cluster.Start(Role::kWorker, ask(4'000'000'000));
  ASSERT_TRUE(cluster.RunUntil([&] {
    return same->over.has_value() && beyond->over.has_value() && far_beyond->over.has_value();
  }));
  EXPECT_EQ(same->over->code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(*same->over), HasSubstr("LEEWAY_RANK=1 is taken by worker 1"));
  EXPECT_EQ(beyond->over->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(far_beyond->over->code(), absl::StatusCode::kOutOfRange);
}

TEST(Scheduler, JoiningAfterTheEndIsRefused) {
  TestCluster cluster(1, 1, 1);
  cluster.StartAll();
  cluster.RunUntilComplete();
  // The last worker's machine never says goodbye, so the scheduler waits a little.
  cluster.network.Cut("server0", kSchedulerHost);
  cluster.LeaveAllWorkers();
  cluster.world.RunFor(absl::Milliseconds(100));
  const TestNode* late = cluster.Start(Role::kWorker);
  ASSERT_TRUE(cluster.RunUntil([&] { return late->over.has_value(); }));
  EXPECT_THAT(Text(*late->over), HasSubstr("the cluster is over"));
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
}

TEST(Scheduler, ADeathIsNoticedInTimeAndNamed) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.world.RunFor(absl::Seconds(20));
  const absl::Time died = cluster.world.Now();
  cluster.Kill(cluster.workers[1]);
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.workers[0]->downs.empty(); }));
  const absl::Duration took = cluster.world.Now() - died;
  EXPECT_GE(took, cluster.config.suspicion);
  EXPECT_LT(took, cluster.config.suspicion + absl::Milliseconds(10));
  const proto::NodeDown& down = cluster.workers[0]->downs[0];
  EXPECT_EQ(down.node, cluster.workers[1]->welcome->node);
  EXPECT_EQ(down.role, Role::kWorker);
  EXPECT_FALSE(down.left);
  EXPECT_THAT(down.reason, HasSubstr("LEEWAY_SUSPICION_MS"));
  const std::uint32_t rank = cluster.workers[1]->welcome->rank;
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return cluster.workers[0]->map->workers[rank].state == proto::WorkerState::kDead; }));
  EXPECT_EQ(cluster.workers[0]->epoch(), 1u);

  cluster.LeaveAllWorkers();
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
  EXPECT_EQ(cluster.over->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(*cluster.over), HasSubstr(absl::StrCat("worker ", rank)));
  for (const TestNode* server : cluster.servers) EXPECT_TRUE(server->over->ok());
}

TEST(Scheduler, ALostServerIsANewEpoch) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.Kill(cluster.servers[0]);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->epoch() == 2; }));
  const std::uint32_t rank = cluster.servers[0]->welcome->rank;
  EXPECT_FALSE(cluster.workers[0]->map->servers[rank].alive);
  ASSERT_EQ(cluster.workers[0]->downs.size(), 1u);
  EXPECT_EQ(cluster.workers[0]->downs[0].role, Role::kServer);
  EXPECT_EQ(cluster.workers[0]->downs[0].epoch, 2u);
}

TEST(Scheduler, ADeathBeforeTheClusterIsCompleteFreesTheRank) {
  TestCluster cluster(1, 1, 1);
  cluster.StartScheduler();
  TestNode* first = cluster.Start(Role::kServer);
  ASSERT_TRUE(cluster.RunUntil([&] { return first->welcome.has_value(); }));
  cluster.Kill(first);
  cluster.world.RunFor(absl::Seconds(15));
  cluster.Start(Role::kServer);
  cluster.Start(Role::kWorker);
  cluster.RunUntilComplete();
  EXPECT_EQ(cluster.workers[0]->epoch(), 1u);
  EXPECT_EQ(cluster.servers[1]->welcome->rank, 0u);
}

TEST(Scheduler, ANodeCutOffForTooLongLearnsThatItWasGivenUp) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.network.Cut("worker0", kSchedulerHost);  // it hears, but is not heard
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->over.has_value(); }));
  EXPECT_FALSE(cluster.workers[0]->over->ok());
  EXPECT_THAT(Text(*cluster.workers[0]->over), HasSubstr("sim://scheduler/0"));
}

TEST(Scheduler, AConnectionThatBreaksIsNotDeath) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.network.Cut("worker0", kSchedulerHost);
  cluster.network.Cut(kSchedulerHost, "worker0");
  cluster.world.RunFor(absl::Seconds(5));
  cluster.network.HealAll();
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(cluster.workers[0]->over.has_value());
  EXPECT_EQ(cluster.workers[0]->welcomes, 1);
  EXPECT_TRUE(cluster.workers[1]->downs.empty());
}

TEST(Scheduler, NodesGiveUpOnASchedulerThatStaysLost) {
  TestCluster cluster;
  cluster.config.scheduler_timeout = absl::Seconds(30);
  cluster.StartAll();
  cluster.RunUntilComplete();
  const absl::Time lost = cluster.world.Now();
  cluster.KillScheduler();
  cluster.world.RunFor(absl::Seconds(28));
  for (const auto& node : cluster.nodes) EXPECT_FALSE(node->over.has_value());
  for (const auto& node : cluster.nodes) {
    ASSERT_TRUE(cluster.RunUntil([&] { return node->over.has_value(); }));
    EXPECT_THAT(Text(*node->over),
                AllOf(HasSubstr("sim://scheduler/0"), HasSubstr("LEEWAY_SCHEDULER_TIMEOUT_MS")));
    EXPECT_EQ(node->overs, 1);
  }
  EXPECT_LT(cluster.world.Now() - lost,
            cluster.config.scheduler_timeout + 3 * cluster.config.heartbeat_interval);
}

TEST(Scheduler, ANewSchedulerRefusesTheNodesOfTheOldOne) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.KillScheduler();
  cluster.StartScheduler();
  for (const auto& node : cluster.nodes) {
    ASSERT_TRUE(cluster.RunUntil([&] { return node->over.has_value(); }, absl::Seconds(8)));
    EXPECT_FALSE(node->over->ok());
  }
}

TEST(Scheduler, ASecondSchedulerCannotListen) {
  TestCluster cluster;
  cluster.StartScheduler();
  const std::unique_ptr<van::Factory> factory = cluster.network.NewFactory(kSchedulerHost);
  cluster.world.RunFor(absl::Seconds(1));
  Scheduler second(cluster.host.get(), cluster.runner->loop(), factory.get(), cluster.config);
  const absl::Status started = second.Start([](absl::Status) { FAIL(); });
  EXPECT_EQ(started.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(started), AllOf(HasSubstr("LEEWAY_SCHEDULER"), HasSubstr("sim://scheduler/0")));
}

TEST(Scheduler, AClusterThatNeverCompletesEndsAndNamesTheMissing) {
  TestCluster cluster;
  cluster.config.connect_timeout = absl::Minutes(2);
  cluster.StartScheduler();
  cluster.Start(Role::kServer);
  cluster.Start(Role::kWorker);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
  EXPECT_EQ(cluster.over->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(*cluster.over), AllOf(HasSubstr("missing server 1 and worker 1"),
                                         HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS")));
  EXPECT_EQ(cluster.servers[0]->over->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Scheduler, WaitsForTheClusterAsLongAsNodesCome) {
  TestCluster cluster;
  cluster.config.connect_timeout = absl::Minutes(2);
  cluster.StartScheduler();
  for (int i = 0; i < 2; ++i) {
    cluster.world.RunFor(absl::Seconds(90));
    cluster.Start(Role::kServer, [](Config* its) { its->connect_timeout = absl::Hours(1); });
  }
  cluster.world.RunFor(absl::Seconds(110));
  EXPECT_FALSE(cluster.over.has_value());
  cluster.world.RunFor(absl::Seconds(20));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_EQ(cluster.over->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Scheduler, StopTellsAllNodes) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.runner->loop()->Post([&] { cluster.scheduler->Stop(absl::CancelledError("SIGTERM")); });
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.over.has_value(); }));
  EXPECT_EQ(Text(*cluster.over), "SIGTERM");
  for (const auto& node : cluster.nodes) EXPECT_EQ(Text(*node->over), "SIGTERM");
}

TEST(Scheduler, ABarrierOpensWithoutTheDead) {
  TestCluster cluster(1, 1, 3);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.workers[0]->Enter("start", 1, absl::Minutes(1));
  cluster.workers[1]->Enter("start", 1, absl::Minutes(1));
  cluster.Kill(cluster.workers[2]);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->barriers.size() == 1; }));
  EXPECT_TRUE(cluster.workers[0]->barriers.begin()->second.ok());
  EXPECT_EQ(cluster.workers[0]->downs.size(), 1u);
}

TEST(Scheduler, ABarrierThatTimesOutNamesTheMissing) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.workers[0]->Enter("start", 1, absl::Seconds(5));
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.workers[0]->barriers.size() == 1; }, absl::Seconds(6)));
  const absl::Status result = cluster.workers[0]->barriers.begin()->second;
  EXPECT_EQ(result.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(result),
              AllOf(HasSubstr("worker 1"), HasSubstr("last heard"), HasSubstr("ago")));
}

TEST(Scheduler, AChangeOfATableIsRefusedInOneShortLine) {
  TestCluster cluster(1, 1, 1);
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.workers[0]->CreateTable(1, TableSpec::Dense("w", {4}));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.workers[0]->tables.contains(1); }));
  const auto refused = [&](std::vector<std::string> arguments, const std::string& part) {
    const auto tool = cluster.Ask("table", std::move(arguments));
    ASSERT_TRUE(cluster.RunUntil([&] { return tool->answer.has_value(); }));
    EXPECT_FALSE(tool->answer->ok());
    EXPECT_THAT(Text(*tool->answer), HasSubstr(part));
    EXPECT_LT(tool->answer->message().size(), 400u);
  };
  const std::string longest(4000, 'x');
  refused({longest}, "there is no table \"xxx");
  refused({"w", longest}, "changes nothing of a table");
  refused({"w", "updater." + longest + "=y"}, "must be a number");
  refused({"w", "updater." + longest + "=default"}, "not among the table's hyper-parameters");
  refused({"w", "consistency=" + longest}, "consistency is \"xxx");
  refused({"w", "updater.=1"}, "changes nothing of a table");
  refused({"w", "consistency=ssp:1", "nonfinite=count", "consistency=ssp:2"},
          "\"consistency\" is given twice");
  refused({"w", "updater.momentum=1", "updater.momentum=default"},
          "\"updater.momentum\" is given twice");
}

TEST(Scheduler, TablesAreInstalledEverywhereOnceAndConflictsShown) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  const TableSpec w = TableSpec::Dense("w", {8});
  cluster.workers[0]->CreateTable(1, w);
  cluster.workers[1]->CreateTable(1, w);
  cluster.workers[1]->CreateTable(2, TableSpec::Dense("w", {9}));
  cluster.workers[0]->OpenTable(2, "v");
  ASSERT_TRUE(cluster.RunUntil([&] {
    return cluster.workers[0]->tables.size() == 2 && cluster.workers[1]->tables.size() == 2;
  }));
  EXPECT_EQ(cluster.workers[0]->tables[1].table, 1u);
  EXPECT_EQ(cluster.workers[1]->tables[1].table, 1u);
  EXPECT_EQ(cluster.workers[1]->tables[2].result.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(cluster.workers[0]->tables[2].result.code(), absl::StatusCode::kNotFound);
  for (const TestNode* server : cluster.servers) EXPECT_EQ(server->installed.size(), 1u);
}

TEST(Scheduler, AServerMayRefuseATable) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.servers[1]->refusal = absl::NotFoundError("no updater 'x'");
  cluster.workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.workers[0]->tables.empty(); }));
  EXPECT_THAT(Text(cluster.workers[0]->tables[1].result),
              AllOf(HasSubstr("server 1"), HasSubstr("no updater 'x'")));
  // All or nothing: the other one forgets it, and the name is free for another table.
  EXPECT_TRUE(cluster.RunUntil([&] { return cluster.servers[0]->installed.empty(); }));
  cluster.servers[1]->refusal = absl::OkStatus();
  cluster.workers[1]->CreateTable(1, TableSpec::Dense("w", {9}));
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.workers[1]->tables.empty(); }));
  EXPECT_TRUE(cluster.workers[1]->tables[1].result.ok());
  EXPECT_EQ(cluster.workers[1]->tables[1].table, 2u);
  for (const TestNode* server : cluster.servers) EXPECT_EQ(server->installed.size(), 1u);
}

TEST(Scheduler, StatusShowsTheCluster) {
  TestCluster cluster;
  cluster.StartAll();
  cluster.RunUntilComplete();
  cluster.workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster.workers[0]->Enter("start", 1);
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.workers[0]->tables.empty(); }));
  const auto status = nlohmann::json::parse(cluster.scheduler->StatusJson());
  EXPECT_EQ(status["epoch"], 1);
  EXPECT_EQ(status["complete"], true);
  EXPECT_EQ(status["servers"].size(), 2u);
  EXPECT_EQ(status["workers"][1]["state"], "alive");
  EXPECT_EQ(status["tables"][0]["name"], "w");
  EXPECT_EQ(status["barriers"][0]["missing_workers"].size(), 1u);
  EXPECT_EQ(status["counters"]["offenders_dropped"], 0);
}

}  // namespace
}  // namespace leeway::scheduler
