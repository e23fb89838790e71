// A scheduler that nodes cannot reach for a while, or that knows less than they do: no living node
// is taken for dead, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/sim/sim_file_system.h"
#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::scheduler_unreached_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class SchedulerUnreached : public PromiseTest {
 protected:
  void Begin(std::uint32_t workers, std::uint32_t replication) {
    SimCluster::Setup setup = Base(3, workers, replication, 6);
    setup.config.suspicion = absl::Seconds(1);
    setup.config.scheduler_state = "/scheduler";
    StartAll(setup);
    table_ = Create(Dense(Consistency::Asp()));
    ASSERT_TRUE(Wait(Push(0, table_, 1)).ok());
  }
  void ExpectAllLiveAndNothingLost() {
    for (const auto& server : Map()->servers) EXPECT_TRUE(server.alive) << "server " << server.rank;
    const Pulled pulled = Pull(0, table_);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_THAT(pulled.values, ElementsAre(1, 1, 1, 1));
    EXPECT_TRUE(Wait(Push(0, table_, 1)).ok());
  }

  Table table_;
};

TEST_F(SchedulerUnreached, AllItsConnectionsBreakAndCannotBeMadeAgainForAMoment) {
  for (const absl::Duration outage : {absl::ZeroDuration(), absl::Milliseconds(1500)}) {
    SCOPED_TRACE(absl::FormatDuration(outage));
    Begin(2, 2);
    std::vector<std::string> others;
    for (const std::string& host : cluster_->HostNames()) {
      if (host != "scheduler") others.push_back(host);
    }
    for (const std::string& host : others) {
      cluster_->network().Break("scheduler", host);
      if (outage != absl::ZeroDuration()) CutBoth("scheduler", host);
    }
    Run(outage);
    cluster_->network().HealAll();
    Run(3 * kFailureTimeout);
    ExpectAllLiveAndNothingLost();
  }
}

// A lost message is repeated sooner than a connection can be made.
TEST_F(SchedulerUnreached, ItComesBackAtAnotherAddressFarFromAServer) {
  SimCluster::Setup setup = Base(3, 2, 2, 6);
  setup.config.scheduler_state = "/scheduler";
  setup.config.resend_interval = absl::Milliseconds(30);
  StartAll(setup);
  table_ = Create(Dense(Consistency::Asp()));
  ASSERT_TRUE(Wait(Push(0, table_, 1)).ok());
  van::LinkFaults far;
  far.delay_min = far.delay_max = absl::Milliseconds(100);
  cluster_->network().SetFaults("scheduler", "server0", far);
  cluster_->network().SetFaults("server0", "scheduler", far);
  cluster_->Kill("scheduler");
  cluster_->MoveScheduler();
  cluster_->Start(Role::kScheduler);
  Run(2 * kFailureTimeout);
  EXPECT_EQ(Map()->servers.size(), 3u);
  ExpectAllLiveAndNothingLost();
}

// The worker knows both addresses and has been at the first one alone, so its heartbeats go there.
TEST_F(SchedulerUnreached, ItDiesAtAnotherAddressBeforeAWorkerHasBeenThere) {
  for (int phase = 0; phase < 20; ++phase) {
    SCOPED_TRACE(phase);
    Begin(2, 2);
    cluster_->Kill("scheduler");
    cluster_->MoveScheduler();
    CutBoth("scheduler", "worker1");
    cluster_->Start(Role::kScheduler);
    Run(absl::Seconds(1));
    cluster_->Kill("scheduler");
    cluster_->network().HealAll();
    Run(phase * absl::Seconds(1));
    cluster_->Start(Role::kScheduler);
    Run(2 * kFailureTimeout);
    for (const auto& worker : Map()->workers) {
      EXPECT_EQ(worker.state, proto::WorkerState::kAlive) << "worker " << worker.rank;
    }
    ExpectAllLiveAndNothingLost();
    EXPECT_TRUE(Wait(Push(1, table_, 1)).ok());
  }
}

// No other node tells a server where the scheduler is.
TEST_F(SchedulerUnreached, ItDiesAtAnotherAddressBeforeAServerHasHeardOfIt) {
  Begin(2, 2);
  cluster_->Kill("scheduler");
  cluster_->MoveScheduler();
  CutBoth("scheduler", "server1");
  cluster_->Start(Role::kScheduler);
  Run(absl::Seconds(1));
  cluster_->Kill("scheduler");
  cluster_->network().HealAll();
  cluster_->Start(Role::kScheduler);
  Run(2 * kFailureTimeout);
  ExpectAllLiveAndNothingLost();
}

TEST_F(SchedulerUnreached, AllServersAreSilentWhileWorkersAreHeard) {
  for (const std::uint32_t workers : {2u, 5u}) {
    SCOPED_TRACE(workers);
    Begin(workers, 3);
    for (const std::uint32_t rank : {0u, 1u, 2u}) CutBoth("scheduler", ServerHost(rank));
    Run(kFailureTimeout + absl::Seconds(1));
    cluster_->network().HealAll();
    Run(2 * kFailureTimeout);
    // The last member of a chain is not given up; other members may have been, and come back.
    const Pulled pulled = Pull(0, table_);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_THAT(pulled.values, ElementsAre(1, 1, 1, 1));
    EXPECT_TRUE(Wait(Push(0, table_, 1)).ok());
  }
}

// The copy is older than the move of shards to another server.
TEST_F(SchedulerUnreached, AnOldCopyOfItsStateIsFoundOutAndNobodyTrainsByIt) {
  SimCluster::Setup setup = Base(2, 2, 1, 8);
  setup.config.scheduler_state = "/scheduler";
  setup.spare_servers = 1;
  StartAll(setup);
  TableSpec spec = TableSpec::Sparse("t", 4);
  spec.consistency = Consistency::Asp();
  const Table table = Create(spec);
  std::vector<std::uint64_t> keys(64);
  for (std::uint64_t key = 0; key < keys.size(); ++key) keys[key] = key;
  const std::vector<float> ones(4 * keys.size(), 1);
  ASSERT_TRUE(Wait(PushRows(0, table, keys, ones)).ok());
  Run(absl::Seconds(2));
  constexpr char kState[] = "/scheduler/scheduler-state";
  runtime::FileSystem* const files = cluster_->world().files("scheduler");
  const std::string copy = *files->Read(kState);
  const std::uint64_t epoch = Map()->epoch;
  cluster_->Start(Role::kServer, 2);
  ASSERT_TRUE(Until([&] { return Map()->epoch > epoch && Whole(1); }, absl::Seconds(20)));
  Run(absl::Seconds(2));
  ASSERT_TRUE(Wait(PushRows(0, table, keys, ones)).ok());
  cluster_->Kill("scheduler");
  ASSERT_TRUE(runtime::WriteFileAtomically(files, kState, copy).ok());
  cluster_->Start(Role::kScheduler);
  SimProcess* const scheduler = cluster_->Find("scheduler");
  ASSERT_TRUE(Until([&] { return scheduler->over().has_value(); }, 2 * kFailureTimeout));
  EXPECT_THAT(std::string(scheduler->over()->message()), HasSubstr("is an old copy"));
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    EXPECT_FALSE(cluster_->Find(ServerHost(rank))->over().has_value()) << "server " << rank;
  }
  const Pulled pulled = PullRows(0, table, keys);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_THAT(pulled.values, Each(2));
}

}  // namespace
}  // namespace leeway::simulation::scheduler_unreached_test
