// A worker leaves in order, and a new process takes its rank at once: what the first one gave to a
// clock that is still open counts on every server, whenever each hears of the two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "proto/messages/layout.h"
#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::left_and_replaced {
namespace {

constexpr std::uint32_t kShards = 2;

class LeftAndReplaced : public PromiseTest {
 protected:
  // A key of each shard, ascending.
  static std::vector<std::uint64_t> KeyOfEachShard() {
    std::vector<std::uint64_t> keys;
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      std::uint64_t key = 1;
      while (proto::ShardOfKey(key, kShards) != shard) ++key;
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  void StartWithTable(std::uint32_t workers) {
    workers_ = workers;
    StartAll(Base(2, workers, 1, kShards));
    TableSpec spec = TableSpec::Sparse("t", 1);
    spec.consistency = Consistency::Bsp();
    table_ = Create(spec);
  }

  // In clock 0, which stays open.
  void PushOfWorker(std::uint32_t rank) {
    ASSERT_TRUE(Wait(PushRows(rank, table_, keys_, {4, 4})).ok());
    Run(absl::Milliseconds(200));
  }

  void LeaveAndReplace(std::uint32_t rank) {
    Leave(rank);
    cluster_->Kill(SimCluster::HostName(Role::kWorker, rank));
    StartWorker(rank);
  }

  void Leave(std::uint32_t rank) {
    bool over = false;
    absl::Status how;
    core(rank)->Leave(absl::Seconds(10), [&](const absl::Status& status) {
      how = status;
      over = true;
    });
    ASSERT_TRUE(Until([&] { return over; }, absl::Seconds(5)));
    ASSERT_TRUE(how.ok()) << how;
  }

  void AwaitReplacement() {
    ASSERT_TRUE(Until([&] { return ready_ == workers_ + 1; }, absl::Seconds(20)));
  }

  void ExpectThePushEverywhere() {
    const Pulled pulled = PullRows(0, table_, keys_);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_THAT(pulled.values, testing::Each(4));
  }

  const std::vector<std::uint64_t> keys_ = KeyOfEachShard();
  std::uint32_t workers_ = 0;
  Table table_;
};

TEST_F(LeftAndReplaced, WhileOneServerDoesNotHearTheScheduler) {
  StartWithTable(3);
  PushOfWorker(2);
  const std::string deaf = ServerHost(Head(1));
  CutBoth("scheduler", deaf);
  LeaveAndReplace(2);
  Run(absl::Milliseconds(300));
  EXPECT_EQ(ready_, workers_) << "the rank is given before every server knows of the leaving";
  cluster_->network().Heal("scheduler", deaf);
  cluster_->network().Heal(deaf, "scheduler");
  AwaitReplacement();
  Clock(0);
  Clock(1);
  ExpectThePushEverywhere();
}

// A map of 40 nodes goes out 40 ms after the map before at the earliest.
TEST_F(LeftAndReplaced, BetweenTwoMaps) {
  StartWithTable(40);
  PushOfWorker(2);
  Leave(1);
  LeaveAndReplace(2);
  AwaitReplacement();
  for (std::uint32_t rank = 0; rank < workers_; ++rank) {
    if (rank != 1 && rank != 2) Clock(rank);
  }
  ExpectThePushEverywhere();
}

TEST_F(LeftAndReplaced, WhileTheSchedulerIsStartedAgain) {
  SimCluster::Setup setup = Base(2, 3, 1, kShards);
  setup.config.scheduler_state = "/scheduler";
  workers_ = 3;
  StartAll(setup);
  TableSpec spec = TableSpec::Sparse("t", 1);
  spec.consistency = Consistency::Bsp();
  table_ = Create(spec);
  PushOfWorker(2);
  const std::string deaf = ServerHost(Head(1));
  CutBoth("scheduler", deaf);
  Leave(2);
  cluster_->Kill("scheduler");
  cluster_->Start(Role::kScheduler);
  cluster_->Kill("worker2");
  StartWorker(2);
  Run(absl::Seconds(2));
  EXPECT_EQ(ready_, workers_) << "the rank is given before every server knows of the leaving";
  cluster_->network().Heal("scheduler", deaf);
  cluster_->network().Heal(deaf, "scheduler");
  AwaitReplacement();
  Clock(0);
  Clock(1);
  ExpectThePushEverywhere();
}

}  // namespace
}  // namespace leeway::simulation::left_and_replaced
