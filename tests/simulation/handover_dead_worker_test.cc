// A worker dies within its iteration, and its death is told while a shard is being handed over to
// another server: its half iteration counts nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "proto/messages/layout.h"
#include "tests/simulation/promise_testing.h"
#include "tests/simulation/sim_tool.h"

namespace leeway::simulation::handover_dead_worker {
namespace {

constexpr std::uint32_t kShards = 2;

class HandoverDeadWorker : public PromiseTest {
 protected:
  bool IsDead(std::uint32_t rank) {
    return std::ranges::any_of(Map()->workers, [&](const proto::WorkerEntry& worker) {
      return worker.rank == rank && worker.state == proto::WorkerState::kDead;
    });
  }
};

TEST_F(HandoverDeadWorker, ADrainedServerHandsOverWhatItGaveToNoOne) {
  SimCluster::Setup setup = Base(3, 2, 2, kShards);
  setup.config.suspicion = kFailureTimeout;  // the death is told during the handover
  StartAll(setup);
  TableSpec spec = TableSpec::Sparse("t", 1);
  spec.consistency = Consistency::Bsp();
  spec.aggregate = Aggregate::kMean;
  const Table table = Create(spec);
  std::vector<std::uint64_t> keys;
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    std::uint64_t key = 1;
    while (proto::ShardOfKey(key, kShards) != shard) ++key;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  ASSERT_TRUE(Until([&] { return Whole(2); }, absl::Seconds(20)));
  // In clock 0 worker 1 pushes to both shards and dies without ending it.
  ASSERT_TRUE(Wait(PushRows(1, table, keys, {4, 4})).ok());
  ASSERT_TRUE(Wait(PushRows(0, table, keys, {100, 100})).ok());
  Run(absl::Milliseconds(100));
  cluster_->Kill("worker1");
  ASSERT_FALSE(IsDead(1));
  const std::uint32_t from = Head(0);
  SimTool tool(cluster_.get(), "tool", "drain", {std::to_string(from)}, [](const absl::Status&) {});
  ASSERT_TRUE(Until([&] { return Head(0) != from; }, absl::Seconds(2)));
  ASSERT_FALSE(IsDead(1));
  const std::uint32_t to = Head(0);
  CutBoth(ServerHost(from), ServerHost(to));
  ASSERT_TRUE(Until([&] { return IsDead(1); }, kFailureTimeout + absl::Seconds(3)));
  Run(absl::Milliseconds(100));
  cluster_->network().Heal(ServerHost(from), ServerHost(to));
  cluster_->network().Heal(ServerHost(to), ServerHost(from));
  Clock(0);
  const Pulled pulled = PullRows(0, table, keys);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  EXPECT_THAT(pulled.values, testing::Each(100));
}

}  // namespace
}  // namespace leeway::simulation::handover_dead_worker
