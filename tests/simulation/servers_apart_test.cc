// Two servers cannot reach each other, while both reach the scheduler and all workers: their shards
// go on, and nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/layout.h"
#include "tests/simulation/promise_testing.h"
#include "tests/simulation/sim_tool.h"

namespace leeway::simulation::servers_apart_test {
namespace {

// A report comes after twice the failure timeout; the rest is for the following messages.
constexpr absl::Duration kWithin = absl::Seconds(12);

class ServersApart : public PromiseTest {
 protected:
  void Begin(std::uint32_t servers, std::uint32_t replication, std::uint32_t shards = 1,
             const Consistency& consistency = Consistency::Asp(), std::uint32_t threads = 1) {
    SimCluster::Setup setup = Base(servers, 2, replication, shards);
    setup.config.server_threads = threads;
    setup.config.request_timeout = absl::Minutes(5);
    setup.config.scheduler_state = "/scheduler";
    StartAll(setup);
    table_ = Create(Dense(consistency));
    shard_ = proto::ShardOfBlock(table_->id, 0, shards);
    ASSERT_TRUE(Wait(Push(0, table_, 1)).ok());
    Run(absl::Seconds(2));
  }
  void ExpectPushAndPull(absl::Duration within, float then) {
    const absl::Status pushed = Wait(Push(0, table_, 1), within);
    ASSERT_TRUE(pushed.ok()) << pushed;
    for (const std::uint32_t rank : {0u, 1u}) {
      const Pulled pulled = Pull(rank, table_);
      ASSERT_TRUE(pulled.status.ok()) << pulled.status;
      EXPECT_EQ(pulled.values, std::vector<float>(4, then));
    }
  }
  // For two shards: a table with values in it, by shard.
  std::map<std::uint32_t, Table> TableInEach() {
    std::map<std::uint32_t, Table> tables = {{shard_, table_}};
    for (int i = 0; i < 20 && tables.size() < 2; ++i) {
      TableSpec spec = Dense(Consistency::Asp());
      spec.name = absl::StrCat("table ", i);
      const Table table = Create(spec);
      EXPECT_TRUE(Wait(Push(0, table, 1)).ok());
      tables.emplace(proto::ShardOfBlock(table->id, 0, 2), table);
    }
    EXPECT_EQ(tables.size(), 2u);
    return tables;
  }
  // For two servers and two shards: server 0 leads both, and just now server 1 becomes head of one.
  void TurnAHeadTo1() {
    cluster_->Kill(ServerHost(1));
    ASSERT_TRUE(Until([&] { return Head(0) == 0 && Head(1) == 0; }, 2 * kFailureTimeout));
    cluster_->Start(Role::kServer, 1);
    ASSERT_TRUE(Until([&] { return Whole(2); }, 2 * kFailureTimeout));
    const SimTool tool(cluster_.get(), "tool", "rebalance", {}, [](const absl::Status&) {});
    ASSERT_TRUE(Until([&] { return Head(0) == 1 || Head(1) == 1; }, absl::Seconds(20)));
  }
  void Part(std::uint32_t one, std::uint32_t other) { CutBoth(ServerHost(one), ServerHost(other)); }

  Table table_;
  std::uint32_t shard_ = 0;
};

TEST_F(ServersApart, AnotherServerTakesThePlaceOfTheOneThatIsNotReached) {
  Begin(3, 2, /*shards=*/6);
  const std::vector<std::uint32_t> before = Members(shard_);
  Part(before[0], before[1]);
  ExpectPushAndPull(kWithin, 2);
  EXPECT_TRUE(Until([&] { return Members(shard_).size() == 2; }, absl::Seconds(2)));
  EXPECT_EQ(Head(shard_), before[0]);
  EXPECT_NE(Members(shard_)[1], before[1]);
  // A chain of the other two keeps what was acknowledged, whichever server dies.
  cluster_->Kill(ServerHost(before[0]));
  ExpectPushAndPull(absl::Seconds(5), 3);
}

TEST_F(ServersApart, TheyMayBeInOneChainWhereTheyAreNotNextToEachOther) {
  Begin(3, 3);
  const std::vector<std::uint32_t> before = Members();
  Part(before[0], before[1]);
  ExpectPushAndPull(kWithin, 2);
  EXPECT_TRUE(Until([&] { return Whole(3); }, absl::Seconds(2)));
  EXPECT_EQ(Members(), (std::vector<std::uint32_t>{before[0], before[2], before[1]}));
  ExpectPushAndPull(absl::Seconds(1), 3);
}

TEST_F(ServersApart, TheLastTwoOfAChainOfThree) {
  Begin(4, 3);
  const std::vector<std::uint32_t> before = Members();
  Part(before[1], before[2]);
  ExpectPushAndPull(kWithin, 2);
  EXPECT_TRUE(Until([&] { return Whole(3); }, absl::Seconds(2)));
  EXPECT_NE(Members()[2], before[2]);
}

TEST_F(ServersApart, WithNobodyElseTheShardGoesOnWithFewerReplicasUntilTheyMeetAgain) {
  Begin(2, 2);
  const std::vector<std::uint32_t> before = Members();
  Part(before[0], before[1]);
  ExpectPushAndPull(kWithin, 2);
  EXPECT_EQ(Members(), std::vector<std::uint32_t>{before[0]});
  // The scheduler tries it again now and then, which delays no worker.
  for (int minute = 0; minute < 10; ++minute) {
    Run(absl::Minutes(1));
    ExpectPushAndPull(absl::Seconds(1), static_cast<float>(3 + minute));
  }
  cluster_->network().HealAll();
  EXPECT_TRUE(Until([&] { return Whole(2); }, absl::Minutes(6)));
  ExpectPushAndPull(absl::Seconds(1), 13);
  cluster_->Kill(ServerHost(before[0]));
  ExpectPushAndPull(absl::Seconds(5), 14);
}

// The scheduler tries it again soon the first time.
TEST_F(ServersApart, AShortBreakCostsTheReplicaOnlyShortly) {
  Begin(2, 2);
  Part(0, 1);
  ExpectPushAndPull(kWithin, 2);
  cluster_->network().HealAll();
  EXPECT_TRUE(Until([&] { return Whole(2); }, 5 * kFailureTimeout));
}

TEST_F(ServersApart, OneWayIsEnough) {
  for (const bool forth : {false, true}) {
    Begin(3, 2);
    const std::vector<std::uint32_t> before = Members();
    cluster_->network().Cut(ServerHost(before[forth ? 0 : 1]), ServerHost(before[forth ? 1 : 0]));
    ExpectPushAndPull(kWithin, 2);
    EXPECT_TRUE(Until([&] { return Whole(2); }, absl::Seconds(2)));
  }
}

TEST_F(ServersApart, InBspClocksGoOnToClose) {
  Begin(3, 2, 1, Consistency::Bsp());
  const std::vector<std::uint32_t> before = Members();
  for (const std::uint32_t rank : {0u, 1u}) Clock(rank);
  Part(before[0], before[1]);
  const Pulled pulled = Pull(1, table_, kWithin);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_EQ(pulled.values, std::vector<float>(4, 1));
}

// Idle replicas need no connection: there is no report and no change.
TEST_F(ServersApart, WithNothingToSayNothingHappens) {
  Begin(3, 2);
  const std::uint64_t epoch = Map()->epoch;
  Part(Members()[0], Members()[1]);
  Run(absl::Minutes(5));
  EXPECT_EQ(Map()->epoch, epoch);
}

// A shard changes its head, and the new one dies before it can lead. The restarted scheduler does
// not know yet that it is dead when the old head, the last server with the shard, reports that the
// handover does not get through.
TEST_F(ServersApart, TheOldHeadKeepsItsShardWhereTheNewOneDiedUnnoticed) {
  Begin(2, 2, /*shards=*/2);
  std::map<std::uint32_t, Table> tables = TableInEach();
  ASSERT_NO_FATAL_FAILURE(TurnAHeadTo1());
  table_ = tables.at(Head(0) == 1 ? 0 : 1);
  ASSERT_EQ(Members(Head(0) == 1 ? 0 : 1), (std::vector<std::uint32_t>{1, 0}));

  cluster_->Kill(ServerHost(1));
  Run(absl::Milliseconds(10));  // the old head learns that it is deposed
  cluster_->Kill("scheduler");
  Run(2 * kFailureTimeout - absl::Seconds(1));
  cluster_->Start(Role::kScheduler);
  ExpectPushAndPull(absl::Seconds(30), 2);
}

// One thread of a server waits for a handover, the other has nothing to wait for.
TEST_F(ServersApart, WorkersHearOfAMapOnceAllThreadsActByIt) {
  Begin(2, 2, /*shards=*/2, Consistency::Asp(), /*threads=*/2);
  std::uint64_t told = 0;  // the newest epoch that a worker was told of
  cluster_->SetTap([&](const van::Overheard& heard) {
    const auto* const map = std::get_if<proto::ClusterMap>(&heard.message);
    if (map != nullptr && absl::StartsWith(heard.to, "worker")) told = std::max(told, map->epoch);
  });
  TableInEach();
  ASSERT_NO_FATAL_FAILURE(TurnAHeadTo1());
  const std::uint64_t epoch = Map()->epoch;
  Part(0, 1);
  Run(absl::Seconds(2));
  ASSERT_EQ(Map()->epoch, epoch);
  EXPECT_LT(told, epoch);
  cluster_->network().HealAll();
  EXPECT_TRUE(Until([&] { return told == epoch; }, kFailureTimeout));
  cluster_->SetTap(nullptr);
}

// The old head and the new one lose their connection just when the shard is to be handed over.
TEST_F(ServersApart, ADrainEndsThoughTheLastHandoverCannot) {
  for (const std::uint32_t replication : {1u, 2u}) {
    Begin(3, replication);
    const std::uint32_t drained = Head();
    absl::Status result = absl::UnknownError("");
    const SimTool tool(cluster_.get(), "tool", "drain", {absl::StrCat("server:", drained)},
                       [&](const absl::Status& status) { result = status; });
    ASSERT_TRUE(Until([&] { return Head() != drained; }, absl::Seconds(20)));
    Part(drained, Head());  // no server has that map yet
    EXPECT_TRUE(Until([&] { return !absl::IsUnknown(result); }, kWithin));
    EXPECT_TRUE(result.ok()) << result;
    ExpectPushAndPull(absl::Seconds(2), 2);
  }
}

}  // namespace
}  // namespace leeway::simulation::servers_apart_test
