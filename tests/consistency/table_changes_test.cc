// Changes of tables' rates, bounds and policies while a whole cluster trains on them.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kElements = 3000;  // several blocks
constexpr double kBefore = 0.5, kAfter = 0.125;

TableSpec SgdTable(Consistency consistency) {
  TableSpec spec = TableSpec::Dense("w", {kElements});
  spec.updater = {"sgd", {{"learning_rate", kBefore}}};
  spec.consistency = consistency;
  return spec;
}

TableChange Rate(double rate) {
  TableChange change;
  change.parameters["learning_rate"] = rate;
  return change;
}

absl::StatusOr<std::unique_ptr<LocalCluster>> Start(std::uint32_t workers,
                                                    std::uint32_t servers = 2,
                                                    std::uint32_t replication = 1) {
  LocalCluster::Setup setup;
  setup.workers = workers;
  setup.servers = servers;
  setup.config.replication = replication;
  setup.config.block_bytes = 4096;
  setup.config.request_timeout = absl::Seconds(30);
  return LocalCluster::Start(setup);
}

// For every consistency the result shows to the bit from which clock on the rate held: if it held
// earlier or later in one block, the values differ.
class RateChangeTest : public testing::TestWithParam<Consistency> {};

TEST_P(RateChangeTest, HoldsFromOneClockOnInEveryBlock) {
  constexpr std::uint64_t kClocksAfter = 5;
  auto cluster = Start(2, 2, /*replication=*/2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::atomic<std::uint64_t> changed_at = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> end = std::numeric_limits<std::uint64_t>::max();
  std::vector<float> result(kElements);
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SgdTable(GetParam()));
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> ones(kElements, 1), values(kElements);
    std::thread changer;
    for (std::uint64_t clock = 0; clock < end; ++clock) {
      if (worker->rank() == 0 && clock == 10) {
        changer = std::thread([&, worker] {
          const auto from = worker->ChangeTable("w", Rate(kAfter));
          ASSERT_TRUE(from.ok()) << from.status();
          changed_at = *from;
        });
      }
      // Both end in the same clock, some after the change.
      if (worker->rank() == 0 && changed_at != std::numeric_limits<std::uint64_t>::max() &&
          end == std::numeric_limits<std::uint64_t>::max()) {
        end = std::max<std::uint64_t>(clock, changed_at) + kClocksAfter + 20;
      }
      ASSERT_TRUE(worker->Wait(table->Push(std::span<const float>(ones))).ok());
      ASSERT_TRUE(worker->Clock().ok());
      ASSERT_TRUE(worker->Wait(table->Pull(std::span<float>(values))).ok());
    }
    if (changer.joinable()) changer.join();
    ASSERT_TRUE(worker->Barrier().ok());
    if (worker->rank() != 0) return;
    while (worker->clock() < end) ASSERT_TRUE(worker->Clock().ok());
    ASSERT_TRUE(worker->Wait(table->Pull(std::span<float>(result))).ok());
    EXPECT_EQ(worker->stats().staleness_violations, 0u);
  });
  ASSERT_TRUE(ran.ok()) << ran;
  ASSERT_GT(changed_at, 10u);
  ASSERT_LT(changed_at, end);
  const double expected = -2 * (kBefore * static_cast<double>(changed_at) +
                                kAfter * static_cast<double>(end - changed_at));
  EXPECT_THAT(result, Each(static_cast<float>(expected)));
}
INSTANTIATE_TEST_SUITE_P(Policies, RateChangeTest,
                         testing::Values(Consistency::Bsp(), Consistency::Ssp(2)));

TEST(TableChangesTest, ABoundIsLoosenedAndTightenedAgain) {
  auto cluster = Start(2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::atomic<std::uint64_t> loose_from = 0, tight_from = 0;
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SgdTable(Consistency::Ssp(1)));
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> values(kElements);
    Options soon;
    soon.timeout = absl::Milliseconds(500);
    const auto pull = [&] { return worker->Wait(table->Pull(std::span<float>(values), soon)); };
    TableChange loose, tight;
    loose.consistency = Consistency::Asp();
    tight.consistency = Consistency::Ssp(2);
    const auto go_to = [&](std::uint64_t clock) {
      while (worker->clock() < clock) ASSERT_TRUE(worker->Clock().ok());
    };
    ASSERT_TRUE(worker->Barrier().ok());
    if (worker->rank() == 0) {
      const auto changed = worker->ChangeTable("w", loose);
      ASSERT_TRUE(changed.ok()) << changed.status();
      loose_from = *changed;
      go_to(loose_from + 20);
      EXPECT_TRUE(pull().ok());  // worker 1 is in clock 0
      EXPECT_EQ(worker->stats().max_staleness, loose_from + 20);
    }
    ASSERT_TRUE(worker->Barrier().ok());
    if (worker->rank() == 1) {
      go_to(loose_from + 1);
      const auto changed = worker->ChangeTable("w", tight);
      ASSERT_TRUE(changed.ok()) << changed.status();
      tight_from = *changed;
    }
    ASSERT_TRUE(worker->Barrier().ok());
    if (worker->rank() == 0) {
      go_to(tight_from - 1);
      EXPECT_TRUE(pull().ok());
      go_to(tight_from);
      EXPECT_EQ(pull().code(), absl::StatusCode::kDeadlineExceeded);
    } else {
      go_to(tight_from - 3);
    }
    ASSERT_TRUE(worker->Barrier().ok());
    go_to(tight_from + 1);
    EXPECT_TRUE(worker->Wait(table->Pull(std::span<float>(values))).ok());
    EXPECT_EQ(worker->stats().staleness_violations, 0u);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(TableChangesTest, NaNIsRefusedFromAClockOn) {
  auto cluster = Start(1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SgdTable(Consistency::Asp()));
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> nan(kElements, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(worker->Wait(table->Push(std::span<const float>(nan))).ok());
    TableChange refuse;
    refuse.nonfinite = NonFinite::kRefuse;
    const auto from = worker->ChangeTable("w", refuse);
    ASSERT_TRUE(from.ok()) << from.status();
    EXPECT_TRUE(worker->Wait(table->Push(std::span<const float>(nan))).ok());  // not there yet
    while (worker->clock() < *from) ASSERT_TRUE(worker->Clock().ok());
    EXPECT_EQ(worker->Wait(table->Push(std::span<const float>(nan))).code(),
              absl::StatusCode::kInvalidArgument);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(TableChangesTest, TheStatusShowsWhatATableHasBecome) {
  auto cluster = Start(1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    ASSERT_TRUE(worker->CreateTable(SgdTable(Consistency::Ssp(1))).ok());
    TableChange change = Rate(0.25);
    change.consistency = Consistency::Ssp(7);
    change.nonfinite = NonFinite::kRefuse;
    ASSERT_TRUE(worker->ChangeTable("w", change).ok());
    const std::string status = (*cluster)->SchedulerStatus();
    EXPECT_THAT(status, HasSubstr("\"consistency\": \"ssp:7\""));
    EXPECT_THAT(status, HasSubstr("learning_rate\\\": 0.25"));
    EXPECT_THAT(status, HasSubstr("nonfinite refuse"));
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(TableChangesTest, AnImpossibleChangeIsRefusedAndChangesNothing) {
  auto cluster = Start(1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    TableSpec spec = SgdTable(Consistency::Ssp(1));
    spec.updater.name = "rmsprop";
    ASSERT_TRUE(worker->CreateTable(spec).ok());
    EXPECT_EQ(worker->ChangeTable("w", Rate(-1)).status().code(),
              absl::StatusCode::kInvalidArgument);
    TableChange unknown;
    unknown.parameters["speed"] = 1;
    EXPECT_EQ(worker->ChangeTable("w", unknown).status().code(),
              absl::StatusCode::kInvalidArgument);
    TableChange state;  // rmsprop keeps a second value for each element where there is momentum
    state.parameters["momentum"] = 0.9;
    const absl::Status shaped = worker->ChangeTable("w", state).status();
    EXPECT_EQ(shaped.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(shaped.message()), HasSubstr("shapes the data"));
    TableSpec summed = SgdTable(Consistency::Ssp(1));
    summed.name = "summed";
    summed.updater.name = "adagrad";
    ASSERT_TRUE(worker->CreateTable(summed).ok());
    TableChange begin;
    begin.parameters["initial_accumulator"] = 2;
    const absl::Status begun = worker->ChangeTable("summed", begin).status();
    EXPECT_EQ(begun.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(begun.message()), HasSubstr("shapes the data"));
    TableChange bsp;
    bsp.consistency = Consistency::Bsp();
    EXPECT_EQ(worker->ChangeTable("w", bsp).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(worker->ChangeTable("none", Rate(1)).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(worker->OpenTable("w")->spec(), spec);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

TEST(TableChangesTest, ATableIsOpenedByWhatItWasAndByWhatItIs) {
  auto cluster = Start(1);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const TableSpec created = SgdTable(Consistency::Asp());
    ASSERT_TRUE(worker->CreateTable(created).ok());
    ASSERT_TRUE(worker->ChangeTable("w", Rate(kAfter)).ok());
    TableSpec changed = created;
    changed.updater.parameters["learning_rate"] = kAfter;
    EXPECT_EQ(worker->OpenTable("w")->spec(), changed);
    EXPECT_EQ(worker->CreateTable(created)->spec(), changed);
    EXPECT_EQ(worker->CreateTable(changed)->spec(), changed);
    TableSpec other = created;
    other.updater.parameters["learning_rate"] = 7;
    const absl::Status differs = worker->CreateTable(other).status();
    EXPECT_EQ(differs.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(differs.message()),
                HasSubstr("updater.learning_rate is 0.125, wanted 7"));
    EXPECT_THAT(std::string(differs.message()), Not(HasSubstr("initializer")));
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

// A table that was trained with one rate and bsp goes on with another rate and ssp, from the first
// clock on.
TEST(TableChangesTest, ATableFromACheckpointBecomesWhatTheFirstWorkerSays) {
  const std::string folder = testing::TempDir() + "/table_changes_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::string saved;
  {
    auto cluster = Start(1);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
      const auto table = worker->CreateTable(SgdTable(Consistency::Bsp()));
      ASSERT_TRUE(table.ok()) << table.status();
      std::vector<float> ones(kElements, 1);
      ASSERT_TRUE(worker->Wait(table->Push(std::span<const float>(ones))).ok());
      ASSERT_TRUE(worker->Clock().ok());
      const auto path = worker->Checkpoint(folder);
      ASSERT_TRUE(path.ok()) << path.status();
      saved = *path;
    });
    ASSERT_TRUE(ran.ok()) << ran;
  }
  LocalCluster::Setup setup;
  setup.workers = 2;
  setup.servers = 2;
  setup.config.block_bytes = 4096;
  setup.config.restore = saved;
  setup.config.request_timeout = absl::Seconds(30);
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  TableSpec other = SgdTable(Consistency::Ssp(3));
  other.updater.parameters["learning_rate"] = kAfter;
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    if (worker->rank() == 0) {
      // No worker uses it yet: this holds from the first clock on as well, and no later than
      // `other`.
      const auto from = worker->ChangeTable("w", Rate(0.25));
      ASSERT_TRUE(from.ok()) << from.status();
      EXPECT_EQ(*from, worker->clock());
    }
    ASSERT_TRUE(worker->Barrier().ok());
    TableSpec shaped = other;
    shaped.shape = {kElements + 1};
    EXPECT_EQ(worker->CreateTable(shaped).status().code(), absl::StatusCode::kAlreadyExists);
    const auto table = worker->CreateTable(other);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->spec(), other);
    std::vector<float> ones(kElements, 1), values(kElements);
    ASSERT_TRUE(worker->Wait(table->Push(std::span<const float>(ones))).ok());
    ASSERT_TRUE(worker->Barrier().ok());
    ASSERT_TRUE(worker->Wait(table->Pull(std::span<float>(values))).ok());
    EXPECT_THAT(values, Each(static_cast<float>(-kBefore - 2 * kAfter)));
    // CreateTable with another description no longer changes it.
    EXPECT_EQ(worker->CreateTable(SgdTable(Consistency::Asp())).status().code(),
              absl::StatusCode::kAlreadyExists);
  });
  EXPECT_TRUE(ran.ok()) << ran;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace leeway::tests
