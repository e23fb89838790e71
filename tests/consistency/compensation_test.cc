// Delay compensation on whole clusters: what a worker computes from is what it has decoded.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr std::size_t kElements = 256;

class CompensationTest : public testing::TestWithParam<const char*> {};

TEST_P(CompensationTest, IsOfWhatTheWorkerHas) {
  LocalCluster::Setup setup;
  setup.workers = 2;
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const absl::Status ran = (*cluster)->RunWorkers([](Worker* worker) {
    TableSpec spec = TableSpec::Dense("w", {kElements});
    spec.updater.name = "add";
    spec.consistency = Consistency::Parse("asp,dc=1").value();
    spec.codec = GetParam();
    const bool lossless = spec.codec == "none" || spec.codec == "zstd";
    if (!lossless) spec.error_feedback = ErrorFeedback::kWorker;
    const auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    const auto push = [&](float value) {
      const std::vector<float> values(kElements, value);
      const absl::Status pushed = worker->Wait(table->Push(std::span<const float>(values)));
      EXPECT_TRUE(pushed.ok()) << pushed;
    };
    std::vector<float> pulled(kElements);
    const auto pull = [&] {
      const absl::Status done = worker->Wait(table->Pull(std::span<float>(pulled)));
      EXPECT_TRUE(done.ok()) << done;
    };
    const auto all = [&](const char* name) {
      ASSERT_TRUE(worker->Barrier(Group::kWorkers, name).ok());
    };
    if (worker->rank() == 1) push(1);
    all("pushed");
    if (worker->rank() == 0) pull();
    all("pulled");
    if (worker->rank() == 1) push(1);
    all("moved");
    if (worker->rank() == 0) push(2);
    all("compensated");
    pull();
    EXPECT_THAT(pulled, testing::Each(testing::FloatNear(8, 0.1f)));  // 1 + 1 + 2 + 4 · (2 − 1)
  });
  EXPECT_TRUE(ran.ok()) << ran;
}

INSTANTIATE_TEST_SUITE_P(Codecs, CompensationTest,
                         testing::Values("none", "zstd", "int8", "qsgd:bits=8", "onebit"));

}  // namespace
}  // namespace leeway::tests
