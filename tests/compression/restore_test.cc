// A table whose codec was changed before it was saved is restored as it was saved, though the
// restored cluster begins with the codec of its description.
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway/worker.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests::restore {
namespace {

constexpr std::uint64_t kElements = 1000;
constexpr int kSteps = 100;

class RestoreAfterSwitch
    : public testing::TestWithParam<std::tuple<std::string, std::string, bool, bool>> {
 protected:
  static TableSpec Spec() {
    const auto& [before, after, bsp, back] = GetParam();
    TableSpec spec = TableSpec::Dense("w", {kElements});
    spec.updater = {"sgd", {{"learning_rate", 1}}};
    spec.consistency = bsp ? Consistency::Bsp() : Consistency::Asp();
    spec.codec = before;
    spec.codecs = {after};
    return spec;
  }

  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Trains under the second codec, and saves, perhaps when the first one is back. What the worker
  // pulled last is in `saved_`.
  void TrainAndSave(Worker* worker) {
    const auto table = worker->CreateTable(Spec());
    ASSERT_TRUE(table.ok()) << table.status();
    const auto switched = worker->SetCodec("w", std::get<1>(GetParam()));
    ASSERT_TRUE(switched.ok()) << switched.status();
    const std::vector<float> gradient(kElements, -1);
    saved_.resize(kElements);
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(worker->Wait(table->Push(std::span<const float>(gradient))).ok());
      ASSERT_TRUE(worker->Clock().ok());
      ASSERT_TRUE(worker->Wait(table->Pull(std::span(saved_))).ok());
    }
    if (std::get<3>(GetParam())) {
      const auto back = worker->SetCodec("w", std::get<0>(GetParam()));
      ASSERT_TRUE(back.ok()) << back.status();
    }
    const auto written = worker->Checkpoint(folder_);
    ASSERT_TRUE(written.ok()) << written.status();
    path_ = *written;
  }

  void PullRestored(Worker* worker, std::vector<float>* restored) {
    const auto table = worker->CreateTable(Spec());
    ASSERT_TRUE(table.ok()) << table.status();
    restored->resize(kElements);
    const absl::Status pulled = worker->Wait(table->Pull(std::span(*restored)));
    ASSERT_TRUE(pulled.ok()) << pulled;
  }

  const std::string folder_ =
      testing::TempDir() + "restore_after_switch_" + std::to_string(::getpid());
  std::string path_;
  std::vector<float> saved_;
};

TEST_P(RestoreAfterSwitch, PulledIsWhatWasSaved) {
  LocalCluster::Setup setup;
  setup.config.checkpoint_dir = folder_;
  auto cluster = *LocalCluster::Start(setup);
  ASSERT_TRUE(cluster->RunWorkers([this](Worker* worker) { TrainAndSave(worker); }).ok());
  cluster = nullptr;

  LocalCluster::Setup again;
  again.config.restore = path_;
  cluster = *LocalCluster::Start(again);
  std::vector<float> restored;
  ASSERT_TRUE(cluster->RunWorkers([&](Worker* worker) { PullRestored(worker, &restored); }).ok());
  EXPECT_THAT(saved_, testing::Each(kSteps));
  EXPECT_THAT(restored, testing::Each(kSteps));
}

INSTANTIATE_TEST_SUITE_P(Codecs, RestoreAfterSwitch,
                         testing::Combine(testing::Values("topk:0.01", "onebit"),
                                          testing::Values("none"), testing::Bool(),
                                          testing::Bool()));

}  // namespace
}  // namespace leeway::tests::restore
