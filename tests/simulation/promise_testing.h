// PromiseTest is a small cluster of real roles on virtual time, for tests of promises under faults
// of the network or a clock: the test breaks things at chosen times, and asks workers for their
// results.
#ifndef LEEWAY_TESTS_SIMULATION_PROMISE_TESTING_H_
#define LEEWAY_TESTS_SIMULATION_PROMISE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/messages/chain.h"
#include "runtime/log/log.h"
#include "tests/simulation/sim_cluster.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {

class PromiseTest : public testing::Test {
 protected:
  using Table = std::shared_ptr<const worker::TableInfo>;
  using Op = std::shared_ptr<worker::Operation>;
  // The result of a pull; no values if it was not answered in time, or failed.
  struct Pulled {
    absl::Status status = absl::DeadlineExceededError("not answered in the test's time");
    std::vector<float> values;
  };
  static constexpr absl::Duration kFailureTimeout = absl::Seconds(5);

  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }

  static SimCluster::Setup Base(std::uint32_t servers, std::uint32_t workers,
                                std::uint32_t replication, std::uint32_t shards = 1) {
    SimCluster::Setup setup;
    setup.seed = 7;
    setup.config.num_servers = servers;
    setup.config.num_workers = workers;
    setup.config.server_threads = 1;
    setup.config.num_shards = shards;
    setup.config.replication = replication;
    setup.config.block_bytes = 4096;
    setup.config.heartbeat_interval = absl::Milliseconds(250);
    setup.config.failure_timeout = kFailureTimeout;
    setup.config.suspicion = absl::Milliseconds(200);
    return setup;
  }
  void StartAll(const SimCluster::Setup& setup) {
    ready_ = 0;
    cluster_ = std::make_unique<SimCluster>(setup);
    cluster_->Start(Role::kScheduler);
    for (std::uint32_t i = 0; i < setup.config.num_servers; ++i) cluster_->Start(Role::kServer, i);
    for (std::uint32_t i = 0; i < setup.config.num_workers; ++i) StartWorker(i);
    ASSERT_TRUE(Until([&] { return ready_ == setup.config.num_workers; }, absl::Seconds(20)));
  }
  void StartWorker(std::uint32_t rank) {
    cluster_->Start(Role::kWorker, rank)->core()->Start([this](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ready_ += status.ok() ? 1 : 0;
    });
  }

  bool Until(const std::function<bool()>& done, absl::Duration limit) {
    return cluster_->RunUntil(done, limit);
  }
  void Run(absl::Duration time) { cluster_->world().RunFor(time); }
  absl::Time Now() { return cluster_->world().Now(); }

  worker::Core* core(std::uint32_t rank) {
    return cluster_->Find(SimCluster::HostName(Role::kWorker, rank))->core();
  }
  static TableSpec Dense(const Consistency& consistency) {
    TableSpec spec = TableSpec::Dense("t", {4});
    spec.consistency = consistency;
    return spec;
  }
  Table Create(const TableSpec& spec) {
    Table table;
    core(0)->CreateTable(spec, absl::Minutes(1), [&](auto result) { table = *result; });
    EXPECT_TRUE(Until([&] { return table != nullptr; }, absl::Seconds(10)));
    return table;
  }
  // Pushes one value to all four elements of a table by Dense.
  Op Push(std::uint32_t rank, const Table& table, float value) {
    return PushRows(rank, table, {}, std::vector<float>(4, value));
  }
  Pulled Pull(std::uint32_t rank, const Table& table, absl::Duration patience = absl::Seconds(30)) {
    // An answer may come after the test has stopped waiting.
    const auto values = std::make_shared<std::vector<float>>(4, -1.0f);
    pulled_.push_back(values);
    worker::Access access;
    access.table = table;
    access.op = proto::Op::kPull;
    access.dtype = DType::kFloat32;
    access.result = values->data();
    access.result_size = values->size();
    const Op operation =
        core(rank)->Submit(worker::Slice(access, core(rank)->poster()), {}, nullptr);
    Pulled pulled;
    if (!Until([&] { return operation->done(); }, patience)) return pulled;
    pulled.status = operation->status();
    if (pulled.status.ok()) pulled.values = *values;
    return pulled;
  }
  // Pushes rows of a sparse or ragged table, with the widths of a ragged one; without keys, a dense
  // table.
  Op PushRows(std::uint32_t rank, const Table& table, const std::vector<std::uint64_t>& keys,
              const std::vector<float>& values, const std::vector<std::uint32_t>& widths = {}) {
    worker::Access access;
    access.table = table;
    access.kind = table->spec.kind;
    access.op = proto::Op::kPush;
    access.dtype = DType::kFloat32;
    access.keys = keys;
    access.widths = widths;
    access.values = values.data();
    access.size = values.size();
    access.copy = true;
    return core(rank)->Submit(worker::Slice(access, core(rank)->poster()), {}, nullptr);
  }
  // Pushes one value to all four elements of a table by Dense; the pulled values are dropped.
  Op PushPull(std::uint32_t rank, const Table& table, float value, absl::Duration timeout) {
    const auto values = std::make_shared<std::vector<float>>(4, value);
    pulled_.push_back(values);
    worker::Access access;
    access.table = table;
    access.op = proto::Op::kPushPull;
    access.dtype = DType::kFloat32;
    access.values = access.result = values->data();
    access.size = access.result_size = values->size();
    access.copy = true;
    return core(rank)->Submit(worker::Slice(access, core(rank)->poster()), {.timeout = timeout},
                              nullptr);
  }
  // `widths`: for rows of a ragged table.
  Pulled PullRows(std::uint32_t rank, const Table& table, const std::vector<std::uint64_t>& keys,
                  std::vector<std::uint32_t>* widths = nullptr) {
    std::vector<float> values;
    worker::Access access;
    access.table = table;
    access.kind = table->spec.kind;
    access.op = proto::Op::kPull;
    access.dtype = DType::kFloat32;
    access.keys = keys;
    if (table->spec.kind == TableKind::kRagged) {
      access.result_widths = widths;
      access.resize = [&](std::size_t size) {
        values.resize(size);
        return static_cast<void*>(values.data());
      };
    } else {
      values.resize(keys.size() * table->spec.row_width);
      access.result = values.data();
      access.result_size = values.size();
    }
    Pulled pulled;
    pulled.status =
        Wait(core(rank)->Submit(worker::Slice(access, core(rank)->poster()), {}, nullptr));
    if (pulled.status.ok()) pulled.values = values;
    return pulled;
  }
  absl::Status Wait(const Op& op, absl::Duration patience = absl::Seconds(30)) {
    if (!Until([&] { return op->done(); }, patience)) {
      return absl::DeadlineExceededError("not done in the test's time");
    }
    return op->status();
  }
  void Clock(std::uint32_t rank) { ASSERT_TRUE(core(rank)->Clock().ok()); }

  // The scheduler's newest map.
  std::shared_ptr<const proto::ClusterMap> Map() {
    return cluster_->Find("scheduler")->scheduler()->map();
  }
  // Ranks, head first.
  std::vector<std::uint32_t> Members(std::uint32_t shard = 0) {
    std::vector<std::uint32_t> ranks;
    for (const proto::ShardOwner& place : proto::ChainOf(*Map(), shard).members) {
      ranks.push_back(place.server_rank);
    }
    return ranks;
  }
  std::uint32_t Head(std::uint32_t shard = 0) { return Map()->owners[shard].server_rank; }
  // True if all chains have that many members, and no replica is joining.
  bool Whole(std::size_t members) {
    for (std::uint32_t shard = 0; shard < Map()->owners.size(); ++shard) {
      const proto::Chain chain = proto::ChainOf(*Map(), shard);
      if (chain.members.size() != members || !chain.joining.empty()) return false;
    }
    return true;
  }
  static std::string ServerHost(std::uint32_t rank) {
    return SimCluster::HostName(Role::kServer, rank);
  }
  void CutBoth(const std::string& one, const std::string& other) {
    cluster_->network().Cut(one, other);
    cluster_->network().Cut(other, one);
  }

  std::unique_ptr<SimCluster> cluster_;
  std::uint32_t ready_ = 0;  // workers that have joined, over all starts

 private:
  std::vector<std::shared_ptr<std::vector<float>>> pulled_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_PROMISE_TESTING_H_
