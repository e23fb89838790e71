// One worker is slow: how long the others wait for it is what the modes differ in. On virtual time,
// so that the machine's own load does not count.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/log.h"
#include "tests/simulation/sim_cluster.h"
#include "worker/slice.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr int kSteps = 60;
constexpr absl::Duration kFastStep = absl::Milliseconds(5);
constexpr absl::Duration kSlowStep = absl::Milliseconds(55);

// Pulls, computes for a while, pushes and ends its iteration, kSteps times.
class SteppingWorker {
 public:
  SteppingWorker(runtime::SimWorld* world, worker::Core* core, absl::Duration step)
      : world_(world), core_(core), step_(step) {}

  void Run(std::shared_ptr<const worker::TableInfo> table) {
    table_ = std::move(table);
    values_.assign(table_->spec.NumElements(), 1);
    Pull();
  }
  bool over() const { return steps_ == kSteps; }
  absl::Duration waited() const { return waited_; }
  std::uint64_t max_staleness() const { return core_->stats().max_staleness; }
  std::uint64_t violations() const { return core_->stats().staleness_violations; }

 private:
  void Submit(proto::Op op, std::function<void()> then) {
    worker::Access access;
    access.table = table_;
    access.op = op;
    access.dtype = DType::kInt64;
    if (proto::HasPush(op)) access.values = values_.data(), access.size = values_.size();
    if (proto::HasPull(op)) access.result = pulled_.data(), access.result_size = pulled_.size();
    core_->Submit(worker::Slice(access, core_->poster()), {},
                  [then = std::move(then)](const std::shared_ptr<worker::Operation>& operation) {
                    EXPECT_TRUE(operation->result.ok()) << operation->result;
                    then();
                  });
  }

  void Pull() {
    pulled_.resize(values_.size());
    const absl::Time since = world_->Now();
    Submit(proto::Op::kPull, [this, since] {
      waited_ += world_->Now() - since;
      world_->Schedule(step_, [this] { EndStep(); });
    });
  }
  void EndStep() {
    Submit(proto::Op::kPush, [] {});
    EXPECT_TRUE(core_->Clock().ok());
    if (++steps_ < kSteps) Pull();
  }

  runtime::SimWorld* const world_;
  worker::Core* const core_;
  const absl::Duration step_;
  std::shared_ptr<const worker::TableInfo> table_;
  std::vector<std::int64_t> values_, pulled_;
  int steps_ = 0;
  absl::Duration waited_;
};

struct Outcome {
  absl::Duration fast_workers_waited;
  std::uint64_t max_staleness = 0;
};

Outcome RunWithStraggler(const Consistency& consistency) {
  SimCluster::Setup setup;
  setup.config.num_servers = 2;
  setup.config.num_workers = kWorkers;
  setup.config.num_shards = 4;
  SimCluster cluster(setup);
  cluster.Start(Role::kScheduler);
  for (std::uint32_t i = 0; i < 2; ++i) cluster.Start(Role::kServer, i);
  std::vector<worker::Core*> cores;
  std::size_t ready = 0;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    cores.push_back(cluster.Start(Role::kWorker, i)->core());
    cores.back()->Start([&](const absl::Status& status) { ready += status.ok() ? 1 : 0; });
  }
  EXPECT_TRUE(cluster.RunUntil([&] { return ready == kWorkers; }, absl::Minutes(1)));

  TableSpec spec = TableSpec::Dense("w", {64}, DType::kInt64);
  spec.consistency = consistency;
  std::shared_ptr<const worker::TableInfo> table;
  cores[0]->CreateTable(spec, absl::Minutes(1), [&](auto created) { table = *created; });
  EXPECT_TRUE(cluster.RunUntil([&] { return table != nullptr; }, absl::Minutes(1)));

  std::vector<std::unique_ptr<SteppingWorker>> workers;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<SteppingWorker>(&cluster.world(), cores[i],
                                                       i == 0 ? kSlowStep : kFastStep));
    workers.back()->Run(table);
  }
  EXPECT_TRUE(cluster.RunUntil(
      [&] {
        return std::all_of(workers.begin(), workers.end(), [](auto& w) { return w->over(); });
      },
      absl::Minutes(5)));

  Outcome outcome;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    if (i > 0) outcome.fast_workers_waited += workers[i]->waited();
    outcome.max_staleness = std::max(outcome.max_staleness, workers[i]->max_staleness());
    EXPECT_EQ(workers[i]->violations(), 0u);
  }
  return outcome;
}

TEST(StragglerTest, TheMoreLeewayTheLessTheOthersWait) {
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  absl::Duration before = absl::InfiniteDuration();
  for (const std::uint64_t staleness : {0, 1, 3, 8}) {
    const Outcome outcome = RunWithStraggler(Consistency::Ssp(staleness));
    EXPECT_EQ(outcome.max_staleness, staleness);
    EXPECT_LT(outcome.fast_workers_waited, before) << "ssp:" << staleness;
    before = outcome.fast_workers_waited;
  }
  const Outcome asp = RunWithStraggler(Consistency::Asp());
  EXPECT_GT(asp.max_staleness, 8u);
  EXPECT_LT(asp.fast_workers_waited, before);
  runtime::SetLogLevel(runtime::LogLevel::kInfo);
}

}  // namespace
}  // namespace leeway::simulation
