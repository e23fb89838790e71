// LocalSgd on whole clusters, against its formulas worked out step by step.
#include "leeway/local_sgd.h"

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr std::uint32_t kWorkers = 3;
constexpr float kInnerRate = 0.1f;

// Worker r's loss is half the square of the distance to this.
float TargetOf(std::uint32_t rank, std::size_t i) {
  return static_cast<float>(rank) + 0.5f * static_cast<float>(i);
}
void InnerStep(std::uint32_t rank, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] -= kInnerRate * (values[i] - TargetOf(rank, i));
  }
}

TableSpec OuterTable(const std::string& name, std::size_t elements) {
  TableSpec spec = TableSpec::Dense(name, {elements});
  spec.updater = {"nesterov", {{"learning_rate", 0.7}, {"momentum", 0.9}}};
  spec.aggregate = Aggregate::kMean;
  return spec;
}

// One part of DiLoCo: all workers, its exchange at the steps `first`, `first` + `every`, …, whose
// result is taken `overlap` steps later.
std::vector<std::vector<float>> Expected(std::size_t elements, std::uint64_t steps,
                                         std::uint64_t first, std::uint64_t every,
                                         std::uint64_t overlap, float mixing) {
  std::vector<float> global(elements), velocity(elements);
  std::vector<std::vector<float>> values(kWorkers, global), anchors = values;
  const auto exchange = [&] {
    for (std::size_t i = 0; i < elements; ++i) {
      float gradient = 0;
      for (std::uint32_t r = 0; r < kWorkers; ++r) gradient += anchors[r][i] - values[r][i];
      gradient /= kWorkers;
      velocity[i] = 0.9f * velocity[i] + gradient;
      global[i] -= 0.7f * (gradient + 0.9f * velocity[i]);
    }
  };
  const auto take = [&](float kept) {
    for (std::uint32_t r = 0; r < kWorkers; ++r) {
      for (std::size_t i = 0; i < elements; ++i) {
        values[r][i] = kept * values[r][i] + (1 - kept) * global[i];
      }
      anchors[r] = global;
    }
  };
  std::uint64_t next = first, due = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    for (std::uint32_t r = 0; r < kWorkers; ++r) InnerStep(r, values[r]);
    if (step == next) {
      exchange();
      next += every;
      due = step + overlap;
    }
    if (step == due) take(overlap == 0 ? 0 : mixing);
  }
  if (due > steps) take(mixing);
  exchange();
  take(0);
  return values;
}

struct Case {
  LocalSgdOptions options;
  std::uint64_t steps;
};

class LocalSgdTest : public testing::TestWithParam<Case> {};

TEST_P(LocalSgdTest, IsAsTheFormulasSay) {
  const LocalSgdOptions& options = GetParam().options;
  const std::uint64_t steps = GetParam().steps;
  LocalCluster::Setup setup;
  setup.servers = 2;
  setup.workers = kWorkers;
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto first = worker->CreateTable(OuterTable("first", 5));
    const auto second = worker->CreateTable(OuterTable("second", 3));
    ASSERT_TRUE(first.ok() && second.ok());
    std::vector<float> u(5), v(3);
    LocalSgd local(worker, {{*first, u}, {*second, v}}, options);
    ASSERT_TRUE(local.Begin().ok());
    for (std::uint64_t step = 0; step < steps; ++step) {
      InnerStep(worker->rank(), u);
      InnerStep(worker->rank(), v);
      const absl::Status stepped = local.Step();
      ASSERT_TRUE(stepped.ok()) << stepped;
    }
    const absl::Status finished = local.Finish();
    ASSERT_TRUE(finished.ok()) << finished;
    EXPECT_EQ(local.step(), steps);
    const std::uint64_t every = options.steps;
    const auto of_u = Expected(5, steps, every, every, options.overlap_steps, options.mixing);
    const auto of_v =
        Expected(3, steps, every - every / 2, every, options.overlap_steps, options.mixing);
    EXPECT_THAT(u, Pointwise(FloatNear(1e-4f), of_u[worker->rank()]));
    EXPECT_THAT(v, Pointwise(FloatNear(1e-4f), of_v[worker->rank()]));
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

INSTANTIATE_TEST_SUITE_P(Forms, LocalSgdTest,
                         testing::Values(Case{{.steps = 1}, 6}, Case{{.steps = 5}, 23},
                                         Case{{.steps = 6, .overlap_steps = 2}, 21},
                                         Case{{.steps = 6, .overlap_steps = 5, .mixing = 0.5f},
                                              29}));

TEST(LocalSgdAsynchronous, SlowerWorkersTakeFewerSteps) {
  LocalCluster::Setup setup;
  setup.workers = 2;
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    TableSpec spec = TableSpec::Dense("w", {4});
    spec.updater = {"delayed_nesterov", {{"learning_rate", 0.5}, {"momentum", 0.5}, {"delay", 2}}};
    spec.consistency = Consistency::Asp();
    const auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> values(4);
    LocalSgd local(worker, {{*table, values}}, {.steps = 8, .by_speed = true});
    ASSERT_TRUE(local.Begin().ok());
    ASSERT_TRUE(worker->Barrier(Group::kWorkers, "begin").ok());
    // The slow one goes on until it knows of the other.
    for (int step = 0; worker->rank() == 0 ? step < 64 : local.steps_between() == 8; ++step) {
      InnerStep(worker->rank(), values);
      absl::SleepFor(absl::Milliseconds(worker->rank() == 0 ? 1 : 8));
      ASSERT_TRUE(local.Step().ok());
    }
    ASSERT_TRUE(local.Finish().ok());
    EXPECT_LE(local.steps_between(), worker->rank() == 0 ? 8u : 4u);
    ASSERT_TRUE(worker->Barrier(Group::kWorkers, "end").ok());
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

// A worker of a BSP table, alone with its own clock until `OthersGoOn`.
class LocalSgdAlone : public testing::Test {
 protected:
  void Begin(LocalSgdOptions options, std::uint32_t workers) {
    LocalCluster::Setup setup;
    setup.workers = workers;
    setup.config.request_timeout = absl::Milliseconds(200);
    cluster_ = std::move(LocalCluster::Start(setup).value());
    std::vector<std::thread> threads;
    workers_.resize(workers);
    for (auto& worker : workers_) {
      threads.emplace_back([&] { worker = std::move(cluster_->Connect().value()); });
    }
    for (std::thread& thread : threads) thread.join();
    TableSpec spec = TableSpec::Dense("w", {4});
    spec.updater = {"sgd", {{"learning_rate", 1}}};
    for (auto& worker : workers_) table_ = worker->CreateTable(spec).value();
    local_.emplace(workers_.back().get(), std::vector<LocalSgd::Part>{{table_, values_}}, options);
    ASSERT_TRUE(local_->Begin().ok());
  }
  absl::Status Step() {
    for (float& value : values_) ++value;
    return local_->Step();
  }
  void OthersGoOn(int clocks) {
    for (std::size_t w = 0; w + 1 < workers_.size(); ++w) {
      for (int clock = 0; clock < clocks; ++clock) ASSERT_TRUE(workers_[w]->Clock().ok());
    }
  }

  std::unique_ptr<LocalCluster> cluster_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Table table_;
  std::vector<float> values_ = std::vector<float>(4);
  std::optional<LocalSgd> local_;
};

TEST_F(LocalSgdAlone, BegunAgainItGoesOnFromTheTable) {
  Begin({.steps = 5, .overlap_steps = 2}, /*workers=*/1);
  for (int step = 0; step < 6; ++step) ASSERT_TRUE(Step().ok());  // a result is out
  ASSERT_TRUE(local_->Begin().ok());
  EXPECT_EQ(local_->exchanges(), 0u);
  EXPECT_THAT(values_, testing::Each(5));
  for (int step = 0; step < 10; ++step) ASSERT_TRUE(Step().ok());
  EXPECT_EQ(local_->step(), 10u);
  EXPECT_EQ(local_->exchanges(), 2u);
  ASSERT_TRUE(local_->Finish().ok());
}

TEST_F(LocalSgdAlone, AnExchangeThatFailedGoesOnAtTheNextStep) {
  Begin({.steps = 3}, /*workers=*/2);
  for (int step = 1; step <= 5; ++step) {
    EXPECT_EQ(Step().code(), step < 3 ? absl::StatusCode::kOk : absl::StatusCode::kDeadlineExceeded)
        << step;
  }
  EXPECT_EQ(local_->exchanges(), 1u);
  OthersGoOn(10);
  EXPECT_TRUE(Step().ok());  // takes the first result, and begins the second exchange
  EXPECT_THAT(values_, testing::Each(3));
  EXPECT_EQ(local_->exchanges(), 2u);
  for (int step = 7; step <= 20; ++step) ASSERT_TRUE(Step().ok());
  EXPECT_EQ(local_->exchanges(), 6u);
}

TEST_F(LocalSgdAlone, ALastExchangeThatFailedGoesOnWhenItIsFinishedAgain) {
  Begin({.steps = 3}, /*workers=*/2);
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(local_->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  OthersGoOn(1);
  EXPECT_TRUE(local_->Finish().ok());
  EXPECT_EQ(local_->exchanges(), 1u);
  EXPECT_THAT(values_, testing::Each(1));
}

TEST(LocalSgdOptionsTest, OutOfRangeTheyAreRefused) {
  auto cluster = LocalCluster::Start({});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(OuterTable("w", 4));
    ASSERT_TRUE(table.ok());
    std::vector<float> values(4), other(5);
    const auto refused = [&](std::vector<LocalSgd::Part> parts, LocalSgdOptions options) {
      return std::string(LocalSgd(worker, std::move(parts), options).Begin().message());
    };
    EXPECT_THAT(refused({{*table, values}}, {.steps = 0}), HasSubstr("steps is 0"));
    EXPECT_THAT(refused({{*table, values}}, {.steps = 3, .overlap_steps = 3}),
                HasSubstr("overlap_steps is 3"));
    EXPECT_THAT(refused({{*table, values}}, {.mixing = 2}), HasSubstr("mixing is 2"));
    EXPECT_THAT(refused({}, {}), HasSubstr("no parts"));
    EXPECT_THAT(refused({{*table, other}}, {}), HasSubstr("its array 5"));
    LocalSgd early(worker, {{*table, values}});
    EXPECT_EQ(early.Step().code(), absl::StatusCode::kFailedPrecondition);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

}  // namespace
}  // namespace leeway::tests
