// A table of a checkpoint gets another consistency from the first worker that creates it. What was
// collected when it was saved counts once.
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/temp_folder.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests::restored_policies_test {
namespace {

using testing::Each;

constexpr std::size_t kElements = 1500;  // several blocks

TableSpec SpecOf(const std::string& consistency) {
  TableSpec spec = TableSpec::Dense("w", {kElements});
  spec.updater = {"add", {}};
  spec.consistency = Consistency::Parse(consistency).value();
  return spec;
}

LocalCluster::Setup NewSetup() {
  LocalCluster::Setup setup;
  setup.config.block_bytes = 4096;
  setup.config.num_shards = 4;
  return setup;
}

void Push(Worker* worker, const Table& table, float value) {
  const std::vector<float> values(kElements, value);
  const absl::Status pushed = worker->Wait(table.Push(std::span<const float>(values)));
  EXPECT_TRUE(pushed.ok()) << pushed;
}

// Of a table with that consistency to which 1 and 2 were pushed.
std::string Save(const std::string& folder, const std::string& consistency) {
  auto cluster = LocalCluster::Start(NewSetup());
  std::string path;
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SpecOf(consistency));
    ASSERT_TRUE(table.ok()) << table.status();
    Push(worker, *table, 1);
    Push(worker, *table, 2);
    const auto saved = worker->Checkpoint(folder);
    ASSERT_TRUE(saved.ok()) << saved.status();
    path = *saved;
  });
  EXPECT_TRUE(ran.ok()) << ran;
  return path;
}

struct Case {
  const char* before;
  const char* after;
  float at_once;  // what is there when it is created again
  float with_4;   // after a push of 4
  float with_24;  // and pushes of 8 and 16, and the end of the clock
};

class RestoredPolicyTest : public testing::TestWithParam<Case> {};

TEST_P(RestoredPolicyTest, CollectedPushesCountOnce) {
  const runtime::TempFolder folder;
  LocalCluster::Setup setup = NewSetup();
  setup.config.restore = Save(folder.path(), GetParam().before);
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    const auto table = worker->CreateTable(SpecOf(GetParam().after));
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->spec(), SpecOf(GetParam().after));
    std::vector<float> values(kElements);
    const auto expect = [&](float value) {
      const absl::Status pulled = worker->Wait(table->Pull(std::span<float>(values)));
      ASSERT_TRUE(pulled.ok()) << pulled;
      EXPECT_THAT(values, Each(value));
    };
    expect(GetParam().at_once);
    Push(worker, *table, 4);
    expect(GetParam().with_4);
    Push(worker, *table, 8);
    Push(worker, *table, 16);
    ASSERT_TRUE(worker->Clock().ok());
    expect(GetParam().with_24);
    // It is in use now.
    EXPECT_EQ(worker->CreateTable(SpecOf(GetParam().before)).status().code(),
              std::string(GetParam().before) == GetParam().after
                  ? absl::StatusCode::kOk
                  : absl::StatusCode::kAlreadyExists);
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

INSTANTIATE_TEST_SUITE_P(
    Changes, RestoredPolicyTest,
    testing::Values(Case{"fedbuff:3", "fedbuff:3", 0, 7, 7},
                    Case{"fedbuff:3", "fedbuff:4", 0, 0, 15},
                    Case{"fedbuff:3", "fedbuff:2", 3, 3, 15}, Case{"fedbuff:3", "asp", 3, 7, 31},
                    Case{"fedbuff:3", "bsp", 3, 3, 31}, Case{"fedbuff:3", "softsync:1", 3, 7, 31},
                    Case{"fedbuff:3", "backup:1/1", 0, 0, 31},
                    Case{"fedbuff:3", "asp,weight=table:0.5", 3, 5, 17},
                    Case{"asp", "fedbuff:3", 3, 3, 31}, Case{"asp", "asp,weight=1/tau", 3, 7, 31},
                    Case{"asp,weight=1/tau", "asp,dc=1", 3, 7, 31 + 16 * 16 * 8},
                    Case{"backup:1/2", "backup:1/1,drop", 0, 0, 31},
                    Case{"bsp", "fedbuff:2", 0, 0, 12}));

TEST(RestoredPolicyTest, SettingsThatDoNotGoTogetherAreRefused) {
  const runtime::TempFolder folder;
  LocalCluster::Setup setup = NewSetup();
  setup.config.restore = Save(folder.path(), "asp");
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([&](Worker* worker) {
    TableSpec mean = SpecOf("fedbuff:2");
    mean.aggregate = Aggregate::kMean;
    EXPECT_EQ(worker->CreateTable(mean).status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_TRUE(worker->CreateTable(SpecOf("fedbuff:2")).ok());
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

}  // namespace
}  // namespace leeway::tests::restored_policies_test
