// Restarts of a scheduler that was killed, with which all nodes go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFolder[] = "/state";
constexpr char kFile[] = "/state/scheduler-state";

class RecoveryTest : public ::testing::Test {
 protected:
  void Make(std::uint64_t seed = 1, std::uint32_t servers = 3, std::uint32_t workers = 2) {
    cluster_ = std::make_unique<TestCluster>(seed, servers, workers);
    cluster_->config.replication = 2;
    cluster_->config.scheduler_state = kFolder;
  }
  void Begin() {
    Make();
    cluster_->StartAll();
    cluster_->RunUntilComplete();
  }
  void Restart(absl::Duration pause = absl::Seconds(1)) {
    cluster_->KillScheduler();
    cluster_->world.RunFor(pause);
    cluster_->StartScheduler();
  }
  nlohmann::json Status() { return nlohmann::json::parse(cluster_->scheduler->StatusJson()); }
  // The error of a scheduler that cannot start.
  std::string WhyNot() {
    cluster_->over.reset();
    cluster_->StartScheduler();
    EXPECT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }));
    return Text(cluster_->over.value_or(absl::OkStatus()));
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(RecoveryTest, AllGoOnWithTheSameClusterRanksTablesAndBarriers) {
  Begin();
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  for (TestNode* worker : cluster_->workers) worker->Enter("b", 1);
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return !cluster_->workers[0]->tables.empty() && !cluster_->workers[1]->barriers.empty();
  }));
  const auto before = Status();
  const std::uint64_t version = cluster_->workers[0]->map->version;
  Restart();
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return std::all_of(cluster_->nodes.begin(), cluster_->nodes.end(), [&](const auto& node) {
      return node->map->version > version || node->over.has_value();
    });
  }));
  const auto after = Status();
  for (const char* same : {"epoch", "tables"}) EXPECT_EQ(after[same], before[same]);
  for (const auto& node : cluster_->nodes) {
    EXPECT_FALSE(node->over.has_value()) << node->name() << ": " << *node->over;
    EXPECT_EQ(node->welcomes, 1);
    EXPECT_EQ(node->epochs, 1);
    EXPECT_TRUE(node->downs.empty());
  }
  cluster_->workers[0]->CreateTable(2, TableSpec::Dense("v", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->tables.size() == 2; }));
  EXPECT_EQ(cluster_->workers[0]->tables[2].table, 2u);
  for (TestNode* worker : cluster_->workers) worker->Enter("b", 2);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[1]->barriers.size() == 2; }));
  cluster_->LeaveAllWorkers();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); }));
  EXPECT_TRUE(cluster_->over->ok()) << *cluster_->over;
  for (const char* file : {kFile, "/state/lock"}) {
    EXPECT_FALSE(cluster_->world.files(kSchedulerHost)->Exists(file)) << "the cluster is over";
  }
}

TEST_F(RecoveryTest, ANodeThatDiedMeanwhileIsFoundDead) {
  Begin();
  cluster_->KillScheduler();
  cluster_->Kill(cluster_->servers[2]);
  cluster_->world.RunFor(absl::Seconds(1));
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() > 1; }));
  EXPECT_FALSE(cluster_->workers[0]->map->servers[cluster_->servers[2]->welcome->rank].alive);
  EXPECT_FALSE(cluster_->workers[1]->over.has_value());
}

TEST_F(RecoveryTest, ARestartedSchedulerThatHearsNoNodeDeclaresNoneDead) {
  Begin();
  cluster_->KillScheduler();
  for (const auto& node : cluster_->nodes) {
    cluster_->network.Cut(node->name(), kSchedulerHost);
    cluster_->network.Cut(kSchedulerHost, node->name());
  }
  cluster_->StartScheduler();
  cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
  cluster_->network.HealAll();
  cluster_->world.RunFor(3 * cluster_->config.failure_timeout);
  EXPECT_FALSE(cluster_->over.has_value());
  for (const auto& node : cluster_->nodes) {
    EXPECT_TRUE(node->downs.empty());
    EXPECT_FALSE(node->over.has_value());
    EXPECT_EQ(node->epoch(), 1u);
  }
}

// After a power cut all nodes are new processes, which the state does not know.
TEST_F(RecoveryTest, WhereOnlyNewNodesComeTheOldOnesAreSoonTakenForDead) {
  Begin();
  cluster_->KillScheduler();
  for (TestNode* server : cluster_->servers) cluster_->Kill(server);
  for (TestNode* worker : cluster_->workers) cluster_->Kill(worker);
  cluster_->StartScheduler();
  cluster_->Start(Role::kServer);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); },
                                 3 * cluster_->config.failure_timeout));
  EXPECT_FALSE(cluster_->over->ok());
}

// A codec that a command has set for a table with codec auto stays until a command sets auto.
TEST_F(RecoveryTest, ACodecThatWasAskedForIsNotChosenAutomaticallyAgain) {
  Begin();
  TableSpec spec = TableSpec::Dense("w", {8});
  spec.codec = "auto";
  spec.codecs = {"none", "onebit"};
  cluster_->workers[0]->CreateTable(1, spec);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  EXPECT_EQ(Status()["tables"][0]["codec_automatic"], true);
  const auto give = [&](const std::string& codec) {
    const auto tool = cluster_->Ask("codec", {"w", codec});
    ASSERT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
    EXPECT_TRUE(tool->answer->ok()) << *tool->answer;
  };
  const auto restart = [&] {
    Restart();
    ASSERT_TRUE(cluster_->RunUntil([&] { return !Status()["tables"].empty(); }));
  };
  give("onebit");
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(Status()["tables"][0]["codec_automatic"], false);
    EXPECT_EQ(Status()["tables"][0]["codec"], "onebit");
    EXPECT_EQ(Status()["tables"][0]["codec_reason"], "it was asked for");
    restart();
  }
  give("auto");
  EXPECT_EQ(Status()["tables"][0]["codec_automatic"], true);
  restart();
  EXPECT_EQ(Status()["tables"][0]["codec_automatic"], true);
}

// The table is created anew: some servers have it, and others do not.
TEST_F(RecoveryTest, ATableThatWasBeingCreatedIsNotTakenForThere) {
  Begin();
  TestNode* const slow = cluster_->servers[0];
  slow->answers_installs = false;
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster_->world.RunFor(absl::Seconds(1));
  Restart();
  cluster_->world.RunFor(absl::Seconds(2));
  EXPECT_TRUE(cluster_->workers[0]->tables.empty());
  slow->answers_installs = true;
  EXPECT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
}

// Nothing else has changed then that would be kept.
TEST_F(RecoveryTest, ACodecThatMayBeChosenAgainIsNotGivenBackBeforeThatIsKept) {
  Begin();
  TableSpec spec = TableSpec::Dense("w", {8});
  spec.codec = "auto";
  spec.codecs = {"none", "onebit"};
  cluster_->workers[0]->CreateTable(1, spec);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  const auto give = [&](const std::string& codec) {
    const auto tool = cluster_->Ask("codec", {"w", codec});
    EXPECT_TRUE(cluster_->RunUntil([&] { return tool->answer.has_value(); }));
  };
  give("none");
  cluster_->world.RunFor(absl::Seconds(1));
  give("auto");
  cluster_->KillScheduler();
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return !Status()["tables"].empty(); }));
  EXPECT_EQ(Status()["tables"][0]["codec_automatic"], true);
}

TEST_F(RecoveryTest, AMoveThatWasUnderWayIsFinished) {
  Begin();
  TestNode* late = cluster_->Start(Role::kServer, [](Config* config) { config->elastic = true; });
  late->reports_ready = false;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return !cluster_->workers[0]->map->replicas.empty() && cluster_->workers[0]->epoch() > 2;
  }));
  Restart();
  late->reports_ready = true;
  ASSERT_TRUE(cluster_->RunUntil(
      [&] { return Status()["complete"] == true && Status()["shards"]["settled"] == true; }));
  const auto servers = Status()["shards"]["servers"];
  ASSERT_EQ(servers.size(), 4u);
  for (const auto& server : servers) {
    EXPECT_NEAR(server["heads"].get<int>() + server["replicas"].get<int>(), 48, 1);
  }
}

TEST_F(RecoveryTest, AFullDiskHoldsBackChangesUntilThereIsRoom) {
  Begin();
  cluster_->world.RunFor(absl::Seconds(1));
  cluster_->world.files(kSchedulerHost)->SetFaults({.bytes_max = 100});
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  cluster_->world.RunFor(absl::Seconds(60));
  EXPECT_TRUE(cluster_->servers[0]->installed.empty());
  EXPECT_FALSE(cluster_->servers[0]->over.has_value()) << "heartbeats are answered";
  // And the status says so.
  EXPECT_NE(Status()["state"]["error"].get<std::string>(), "");
  EXPECT_NEAR(Status()["state"]["since_s"].get<double>(), 60, 2);
  EXPECT_THAT(Status()["summary"].get<std::string>(), HasSubstr("cannot keep its state"));
  cluster_->world.files(kSchedulerHost)->SetFaults({});
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  EXPECT_TRUE(cluster_->workers[0]->tables[1].result.ok());
  EXPECT_FALSE(Status()["state"].contains("error"));
}

TEST_F(RecoveryTest, AFullDiskAndDeathsMeanwhileAreInTheStatus) {
  Begin();
  cluster_->world.RunFor(absl::Seconds(1));
  const auto before = Status()["state"];
  EXPECT_EQ(before["folder"], kFolder);
  EXPECT_EQ(before["up_to_date"], true);
  EXPECT_EQ(before["written_version"], Status()["map_version"]);
  EXPECT_FALSE(before.contains("error"));
  cluster_->world.files(kSchedulerHost)->SetFaults({.bytes_max = 100});
  cluster_->Kill(cluster_->servers[2]);
  cluster_->world.RunFor(2 * cluster_->config.failure_timeout);
  const auto status = Status();
  EXPECT_EQ(status["state"]["up_to_date"], false);
  EXPECT_EQ(status["state"]["written_version"], before["written_version"]);
  EXPECT_NE(status["state"]["error"].get<std::string>(), "");
  EXPECT_NEAR(status["state"]["since_s"].get<double>(), 20, 10);
  EXPECT_THAT(status["summary"].get<std::string>(),
              AllOf(HasSubstr("2 of 3 servers"), HasSubstr("is dead"),
                    HasSubstr("the scheduler cannot keep its state")));
  cluster_->world.files(kSchedulerHost)->SetFaults({});
  ASSERT_TRUE(cluster_->RunUntil([&] { return Status()["state"]["up_to_date"] == true; }));
  EXPECT_FALSE(Status()["state"].contains("error"));
}

TEST_F(RecoveryTest, ADamagedStateIsRefusedWithAWayOut) {
  Begin();
  cluster_->KillScheduler();
  runtime::FileSystem* files = cluster_->world.files(kSchedulerHost);
  std::string bytes = *files->Read(kFile);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(runtime::WriteFileAtomically(files, kFile, bytes).ok());
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("LEEWAY_SCHEDULER_STATE=/state"), HasSubstr(kFile),
                              HasSubstr("checksum"), HasSubstr("remove it")));
}

// ---- an old copy of the state ----

class OldCopyTest : public RecoveryTest {
 protected:
  std::string Kept() { return *cluster_->world.files(kSchedulerHost)->Read(kFile); }
  void GoOnFrom(const std::string& state) {
    cluster_->KillScheduler();
    cluster_->over.reset();
    runtime::FileSystem* const files = cluster_->world.files(kSchedulerHost);
    ASSERT_TRUE(runtime::WriteFileAtomically(files, kFile, state).ok());
    cluster_->StartScheduler();
  }
  void ReplaceAServer() {
    cluster_->Kill(cluster_->servers[2]);
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->epoch() > 1; }));
    cluster_->Start(Role::kServer);
    ASSERT_TRUE(cluster_->RunUntil([&] { return Status()["shards"]["settled"] == true; }));
  }
  void ExpectFoundOut(const std::string& how) {
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->over.has_value(); },
                                   2 * cluster_->config.failure_timeout));
    EXPECT_EQ(cluster_->over->code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Text(*cluster_->over),
                AllOf(HasSubstr("LEEWAY_SCHEDULER_STATE=/state is an old copy"), HasSubstr(how)));
    EXPECT_TRUE(cluster_->world.files(kSchedulerHost)->Exists(kFile));
  }
  void ExpectNobodyEnded() {
    for (const auto& node : cluster_->nodes) {
      if (cluster_->killed.contains(node.get())) continue;
      EXPECT_FALSE(node->over.has_value()) << node->name() << ": " << *node->over;
    }
  }
};

TEST_F(OldCopyTest, IsFoundOutByMembersWhoGoOnWithTheNewest) {
  Begin();
  const std::string old = Kept();
  ReplaceAServer();
  const std::string newest = Kept();
  const std::uint64_t version = cluster_->workers[0]->map->version;
  GoOnFrom(old);
  ExpectFoundOut(" of the cluster's map, and the newest one here is ");
  cluster_->world.RunFor(absl::Seconds(1));
  ExpectNobodyEnded();
  GoOnFrom(newest);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->workers[0]->map->version > version; }));
  ExpectNobodyEnded();
  EXPECT_FALSE(cluster_->over.has_value());
}

TEST_F(OldCopyTest, IsFoundOutByATableThatItDoesNotHave) {
  Begin();
  const std::string old = Kept();
  cluster_->workers[0]->CreateTable(1, TableSpec::Dense("w", {8}));
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->workers[0]->tables.empty(); }));
  cluster_->world.RunFor(2 * cluster_->config.resend_interval);
  GoOnFrom(old);
  ExpectFoundOut(" of the cluster's map, and the newest one here is ");
  ExpectNobodyEnded();
}

TEST_F(OldCopyTest, IsFoundOutByNodesThatItDoesNotKnow) {
  Begin();
  const std::string old = Kept();
  ReplaceAServer();
  for (TestNode* node :
       {cluster_->servers[0], cluster_->servers[1], cluster_->workers[0], cluster_->workers[1]}) {
    cluster_->Kill(node);
  }
  GoOnFrom(old);
  ExpectFoundOut("has joined the cluster, but is not in it");
  ExpectNobodyEnded();
}

TEST_F(RecoveryTest, OtherSettingsAreRefused) {
  Begin();
  cluster_->KillScheduler();
  cluster_->config.num_workers = 7;
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("LEEWAY_NUM_WORKERS=7"), HasSubstr("started with 2")));
}

TEST_F(RecoveryTest, TwoSchedulersCannotShareAFolder) {
  Begin();
  const auto factory = cluster_->network.NewFactory(kSchedulerHost);
  Config config = cluster_->config;
  config.scheduler = "sim://scheduler/other";
  Scheduler second(cluster_->host.get(), cluster_->runner->loop(), factory.get(), config);
  const absl::Status started = second.Start([](absl::Status) { FAIL(); });
  EXPECT_EQ(started.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(started), AllOf(HasSubstr("LEEWAY_SCHEDULER_STATE=/state"),
                                   HasSubstr("a scheduler runs with it")));
}

// The parts of the servers' data threads that hear of the scheduler's new address, and tell their
// control threads and all workers.
class DataThreads {
 public:
  explicit DataThreads(TestCluster* cluster) {
    for (TestNode* server : cluster->servers) {
      auto thread = std::make_unique<Thread>();
      thread->followers = cluster->workers;
      thread->followers.push_back(server);
      thread->host = cluster->world.NewHost(server->name() + "-data");
      thread->runner = thread->host->Spawn("data");
      thread->factory = cluster->network.NewFactory(server->name());
      van::Identity identity;
      identity.role = Role::kServer;
      identity.incarnation = 5;
      identity.cluster = server->welcome->cluster;
      thread->van =
          thread->factory->New(thread->runner->loop(), identity, van::Limits(), thread.get());
      EXPECT_TRUE(thread->van->Listen(absl::StrCat("sim://", server->name(), "/0")).ok());
      threads_.push_back(std::move(thread));
    }
  }

  bool AllHaveHeard() const {
    return std::ranges::all_of(threads_, [](const auto& thread) { return !thread->moved.empty(); });
  }
  bool HasHeard(std::size_t server) const { return !threads_[server]->moved.empty(); }
  bool NoneHasHeard() const {
    return std::ranges::all_of(threads_, [](const auto& thread) { return thread->moved.empty(); });
  }
  const proto::SchedulerMoved& heard() const { return threads_[0]->moved.at(0); }
  const van::Identity& from() const { return threads_[0]->from; }

 private:
  struct Thread final : van::Handler {
    void OnPeerUp(van::PeerId, const van::Identity& identity) override { from = identity; }
    void OnPeerDown(van::PeerId, const absl::Status&) override {}
    void OnMessage(van::PeerId, van::Message raw) override {
      const auto message = proto::Decode(raw.header, {});
      if (!message.ok()) return;
      const auto* it = std::get_if<proto::SchedulerMoved>(&*message);
      if (it == nullptr) return;
      moved.push_back(*it);
      for (TestNode* follower : followers) follower->Follow(*it);
    }
    std::vector<TestNode*> followers;
    van::Identity from;
    std::vector<proto::SchedulerMoved> moved;
    std::unique_ptr<runtime::Host> host;
    std::unique_ptr<van::Factory> factory;
    std::unique_ptr<runtime::LoopRunner> runner;
    std::unique_ptr<van::Van> van;
  };
  std::vector<std::unique_ptr<Thread>> threads_;
};

TEST_F(RecoveryTest, ComingBackElsewhereItTellsTheServers) {
  Begin();
  const DataThreads threads(cluster_.get());
  cluster_->KillScheduler();
  cluster_->config.scheduler = "sim://scheduler/elsewhere";
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return threads.AllHaveHeard(); }, absl::Seconds(5)));
  EXPECT_EQ(threads.heard().address, "sim://scheduler/elsewhere");
  EXPECT_EQ(threads.heard().cluster, cluster_->servers[0]->welcome->cluster);
  EXPECT_EQ(threads.from().role, Role::kScheduler);
}

// It dies at the new address, which is in its state then, before a server has heard of it.
TEST_F(RecoveryTest, NewsThatItCouldNotTellBeforeItDiedAgainIsToldAfterThat) {
  Begin();
  const DataThreads threads(cluster_.get());
  cluster_->KillScheduler();
  cluster_->config.scheduler = "sim://scheduler/elsewhere";
  for (const TestNode* server : cluster_->servers) {
    cluster_->network.Cut("scheduler", server->name());
  }
  cluster_->StartScheduler();
  // A change, for which it writes its state, and the address with it.
  cluster_->Start(Role::kServer, [](Config* config) { config->elastic = true; });
  cluster_->world.RunFor(absl::Milliseconds(300));
  ASSERT_TRUE(threads.NoneHasHeard());
  cluster_->KillScheduler();
  cluster_->network.HealAll();
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return threads.AllHaveHeard(); }, absl::Seconds(5)));
  EXPECT_EQ(threads.heard().address, "sim://scheduler/elsewhere");
}

// A server that was drained, or is taken for dead, while it looked for the scheduler at the old
// address.
TEST_F(RecoveryTest, AServerThatIsGoneByNowIsToldAsWell) {
  Begin();
  const DataThreads threads(cluster_.get());
  cluster_->KillScheduler();
  cluster_->config.scheduler = "sim://scheduler/elsewhere";
  cluster_->network.Cut("scheduler", "server0");
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return Status()["servers"][0]["state"] == "dead"; }));
  cluster_->network.HealAll();
  EXPECT_TRUE(cluster_->RunUntil([&] { return threads.HasHeard(0); }, absl::Seconds(5)));
}

TEST_F(RecoveryTest, AServerThatCannotBeToldIsNotDialledForEver) {
  Begin();
  cluster_->KillScheduler();
  cluster_->config.scheduler = "sim://scheduler/elsewhere";
  cluster_->config.scheduler_timeout = absl::Seconds(30);
  cluster_->network.Cut("server0", "scheduler");
  cluster_->StartScheduler();
  cluster_->world.RunFor(absl::Seconds(40));
  const DataThreads threads(cluster_.get());
  cluster_->network.HealAll();
  cluster_->world.RunFor(absl::Seconds(30));
  EXPECT_FALSE(threads.HasHeard(0));
}

// ---- killed at every step ----

// A cluster's life, short: tables, barriers, a death, a replacement.
class Life {
 public:
  explicit Life(TestCluster* cluster) : cluster_(cluster) {}

  void Start() {
    cluster_->StartAll();
    Begin();
  }
  bool Lived() const {
    if (cluster_->servers.size() < 4 || !cluster_->servers[3]->welcome.has_value()) return false;
    for (const TestNode* worker : cluster_->workers) {
      if (worker->tables.empty() || worker->barriers.size() < 2) return false;
    }
    if (cluster_->workers[0]->tables.size() < 2 || cluster_->scheduler == nullptr) return false;
    const auto status = nlohmann::json::parse(cluster_->scheduler->StatusJson());
    return status["complete"] == true && status["shards"]["settled"] == true &&
           status["shards"]["servers"].size() == 3;
  }

 private:
  // To be called once all nodes know that the cluster is complete.
  void Begin() {
    if (!cluster_->Complete()) {
      cluster_->world.Schedule(absl::Milliseconds(20), [this] { Begin(); });
      return;
    }
    for (TestNode* worker : cluster_->workers) {
      worker->CreateTable(1, TableSpec::Dense("w", {8}));
      worker->Enter("b", 1);
    }
    cluster_->world.Schedule(absl::Milliseconds(1500), [this] { Lose(); });
  }
  void Lose() {
    cluster_->Kill(cluster_->servers[1]);
    for (TestNode* worker : cluster_->workers) worker->Enter("b", 2);
    cluster_->workers[0]->CreateTable(2, TableSpec::Dense("v", {8}));
    cluster_->world.Schedule(absl::Seconds(3), [this] { cluster_->Start(Role::kServer); });
  }

  TestCluster* const cluster_;
};

// Checks what holds however often the scheduler is killed.
void CheckNothingWasForgotten(const TestCluster& cluster) {
  std::map<std::uint64_t, const proto::ClusterMap*> versions;
  for (const auto& node : cluster.nodes) {
    if (cluster.killed.contains(node.get())) continue;
    ASSERT_FALSE(node->over.has_value()) << node->name() << ": " << *node->over;
    EXPECT_EQ(node->welcomes, 1);
    EXPECT_TRUE(node->maps_only_grew);
    ASSERT_NE(node->map, nullptr);
    EXPECT_EQ(node->welcome->cluster, cluster.nodes[0]->welcome->cluster);
    for (const auto& map : node->seen) {
      const auto [other, first] = versions.emplace(map->version, map.get());
      EXPECT_EQ(*other->second, *map) << "two maps of version " << map->version;
    }
  }
  for (const TestNode* worker : cluster.workers) {
    for (const auto& [request, reply] : worker->tables) {
      EXPECT_TRUE(reply.result.ok()) << reply.result;
      EXPECT_EQ(reply.spec.name, request == 1 ? "w" : "v");
    }
    EXPECT_EQ(worker->tables.at(1).table, cluster.workers[0]->tables.at(1).table);
    for (const auto& [barrier, result] : worker->barriers) EXPECT_TRUE(result.ok()) << result;
  }
  EXPECT_NE(cluster.workers[0]->tables.at(1).table, cluster.workers[0]->tables.at(2).table);
}

class EveryStepTest : public RecoveryTest {
 protected:
  EveryStepTest() { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  ~EveryStepTest() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }
};

TEST_F(EveryStepTest, KilledAfterAnyMessageNothingIsForgotten) {
  constexpr int kStep = runtime::kSanitized ? 607 : 101;  // events between two places to die at
  constexpr int kPlaces = runtime::kSanitized ? 10 : 60;
  for (int place = 1; place <= kPlaces; ++place) {
    SCOPED_TRACE(absl::StrCat("killed after event ", place * kStep));
    Make(place);
    Life life(cluster_.get());
    life.Start();
    for (int event = 0; event < place * kStep; ++event) ASSERT_TRUE(cluster_->world.Step());
    Restart(absl::Milliseconds(300 + place % 7 * 400));
    ASSERT_TRUE(cluster_->RunUntil([&] { return life.Lived(); })) << Status().dump(1);
    cluster_->world.RunFor(absl::Seconds(3));
    CheckNothingWasForgotten(*cluster_);
    if (HasFailure()) return;
  }
}

TEST_F(EveryStepTest, KilledAgainAndAgain) {
  constexpr std::uint64_t kSeeds = runtime::kSanitized ? 4 : 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Make(seed);
    Life life(cluster_.get());
    life.Start();
    for (int times = 0; times < 8; ++times) {
      const std::uint64_t calm_ms =
          times == 0 && seed % 2 == 0 ? 0 : cluster_->world.Random() % 900;
      cluster_->world.RunFor(absl::Milliseconds(calm_ms));
      // Its last changes are not on disk, so no node must know of them.
      cluster_->world.files(kSchedulerHost)->SetFaults({.bytes_max = 1});
      cluster_->world.RunFor(absl::Milliseconds(cluster_->world.Random() % 600));
      cluster_->KillScheduler();
      cluster_->world.files(kSchedulerHost)->SetFaults({});
      Restart(absl::Milliseconds(cluster_->world.Random() % 1500));
    }
    ASSERT_TRUE(cluster_->RunUntil([&] { return life.Lived(); })) << Status().dump(1);
    cluster_->world.RunFor(absl::Seconds(3));
    CheckNothingWasForgotten(*cluster_);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace leeway::scheduler
