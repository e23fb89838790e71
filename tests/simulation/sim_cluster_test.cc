#include "tests/simulation/sim_cluster.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/log/log.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {
namespace {

class SimClusterTest : public testing::Test {
 protected:
  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }

  void StartAll(std::uint64_t seed = 1) {
    SimCluster::Setup setup;
    setup.seed = seed;
    setup.config.num_servers = 2;
    setup.config.num_workers = 2;
    setup.config.server_threads = 2;
    setup.config.num_shards = 8;
    setup.config.failure_timeout = absl::Seconds(3);
    cluster_ = std::make_unique<SimCluster>(setup);
    cluster_->Start(Role::kScheduler);
    for (std::uint32_t i = 0; i < 2; ++i) cluster_->Start(Role::kServer, i);
    for (std::uint32_t i = 0; i < 2; ++i) {
      worker::Core* core = cluster_->Start(Role::kWorker, i)->core();
      core->Start([this](const absl::Status& status) { ready_ += status.ok() ? 1 : 0; });
    }
  }
  worker::Core* core(int rank) {
    return cluster_->Find(SimCluster::HostName(Role::kWorker, rank))->core();
  }
  std::shared_ptr<const worker::TableInfo> Create(const TableSpec& spec) {
    std::shared_ptr<const worker::TableInfo> table;
    core(0)->CreateTable(spec, absl::Minutes(1), [&](auto result) { table = *result; });
    EXPECT_TRUE(cluster_->RunUntil([&] { return table != nullptr; }, absl::Seconds(10)));
    return table;
  }
  absl::Status PushPull(int rank, const std::shared_ptr<const worker::TableInfo>& table,
                        const std::vector<std::int64_t>& values,
                        std::vector<std::int64_t>* result) {
    worker::Access access;
    access.table = table;
    access.op = proto::Op::kPushPull;
    access.dtype = DType::kInt64;
    access.values = values.data();
    access.size = access.result_size = values.size();
    result->resize(values.size());
    access.result = result->data();
    auto operation = core(rank)->Submit(worker::Slice(access, core(rank)->poster()), {}, nullptr);
    EXPECT_TRUE(cluster_->RunUntil([&] { return operation->done(); }, absl::Minutes(5)));
    return operation->done() ? operation->status() : absl::InternalError("never done");
  }

  std::unique_ptr<SimCluster> cluster_;
  int ready_ = 0;
};

TEST_F(SimClusterTest, ACompleteClusterServesAndEnds) {
  StartAll();
  ASSERT_TRUE(cluster_->RunUntil([&] { return ready_ == 2; }, absl::Seconds(10)));
  TableSpec spec = TableSpec::Dense("sum", {5}, DType::kInt64);
  spec.consistency = Consistency::Asp();
  const auto table = Create(spec);
  std::vector<std::int64_t> got;
  EXPECT_TRUE(PushPull(0, table, {1, 2, 3, 4, 5}, &got).ok());
  EXPECT_TRUE(PushPull(1, table, {10, 20, 30, 40, 50}, &got).ok());
  EXPECT_EQ(got, (std::vector<std::int64_t>{11, 22, 33, 44, 55}));
  for (int rank : {0, 1}) core(rank)->Leave(absl::Seconds(10), [](const absl::Status&) {});
  const SimProcess* scheduler = cluster_->Find("scheduler");
  ASSERT_TRUE(cluster_->RunUntil([&] { return scheduler->over().has_value(); }, absl::Minutes(1)));
  EXPECT_TRUE(scheduler->over()->ok()) << *scheduler->over();
  EXPECT_TRUE(cluster_->RunUntil(
      [&] { return cluster_->Find("server0")->over() && cluster_->Find("server1")->over(); },
      absl::Minutes(1)));
}

TEST_F(SimClusterTest, AKilledWorkerIsGoneAtOnceAndTheOthersGoOn) {
  StartAll();
  ASSERT_TRUE(cluster_->RunUntil([&] { return ready_ == 2; }, absl::Seconds(10)));
  TableSpec spec = TableSpec::Dense("sum", {5}, DType::kInt64);
  spec.consistency = Consistency::Bsp();
  const auto table = Create(spec);
  cluster_->Kill("worker1");
  EXPECT_TRUE(cluster_->WasKilled("worker1"));
  EXPECT_EQ(cluster_->Find("worker1"), nullptr);
  std::vector<std::int64_t> got;
  cluster_->world().Schedule(absl::Seconds(1), [&] { EXPECT_TRUE(core(0)->Clock().ok()); });
  EXPECT_TRUE(PushPull(0, table, {1, 1, 1, 1, 1}, &got).ok());  // once worker 1 is given up
  EXPECT_EQ(got, (std::vector<std::int64_t>{1, 1, 1, 1, 1}));
}

TEST_F(SimClusterTest, AHostStartedAgainIsANewIncarnation) {
  StartAll();
  cluster_->Kill("worker1");  // before the cluster is complete: its rank is assigned again
  worker::Core* again = cluster_->Start(Role::kWorker, 1)->core();
  again->Start([this](const absl::Status& status) { ready_ += status.ok() ? 1 : 0; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return ready_ == 2; }, absl::Minutes(1)));
  EXPECT_EQ(again->rank(), 1u);
}

TEST_F(SimClusterTest, TheSameSeedGivesTheSameTrace) {
  const auto hash_of = [this](std::uint64_t seed) {
    ready_ = 0;
    StartAll(seed);
    van::LinkFaults faults;
    faults.delay_max = absl::Milliseconds(5);
    cluster_->network().SetFaults(faults);
    EXPECT_TRUE(cluster_->RunUntil([&] { return ready_ == 2; }, absl::Seconds(10)));
    cluster_->Kill("server1");
    cluster_->world().RunFor(absl::Seconds(5));
    return cluster_->world().trace_hash();
  };
  const std::uint64_t first = hash_of(1);
  EXPECT_EQ(first, hash_of(1));
  EXPECT_NE(first, hash_of(2));
}

}  // namespace
}  // namespace leeway::simulation
