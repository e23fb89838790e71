#include "ps/store/update_run.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "leeway/table_spec.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {
namespace {

struct Decaying {
  std::string updater;
  UpdaterParameters parameters;
};

class UpdateRunTest : public testing::TestWithParam<Decaying> {
 protected:
  void SetUp() override {
    TableSpec spec = TableSpec::Dense("w", {kSize});
    spec.updater = {GetParam().updater, GetParam().parameters};
    auto made = MakeUpdater(spec);
    ASSERT_TRUE(made.ok()) << made.status();
    updater_ = *std::move(made);
    state_.resize(static_cast<std::size_t>(updater_->state_slots()) * kSize);
  }
  // One push of a gradient, then thousands of zeros.
  template <class Update>
  void ExpectStateDecaysToZero(const Update& update) {
    gradient_.assign(kSize, 1e-3f);
    update(1);
    gradient_.assign(kSize, 0);
    for (std::uint64_t step = 2; step < 4000; ++step) {
      update(step);
      for (const float value : state_) ASSERT_NE(std::fpclassify(value), FP_SUBNORMAL) << step;
    }
    EXPECT_EQ(state_[0], 0);
    // Other computations of the thread are as before.
    volatile float smallest = std::numeric_limits<float>::min();
    EXPECT_GT(smallest * 0.5f, 0);
  }

  static constexpr std::size_t kSize = 16;
  std::unique_ptr<Updater> updater_;
  std::vector<float> values_ = std::vector<float>(kSize, 1.0f), gradient_, state_;
};

TEST_P(UpdateRunTest, StatesOfDenseTablesDecayToZero) {
  ExpectStateDecaysToZero([&](std::uint64_t step) {
    const float* const pushed = gradient_.data();
    ApplyToRun<float>(*updater_,
                      {values_.data(), values_.data(), state_.data(), state_.data(), kSize, step},
                      {&pushed, 1}, {.learning_rate = std::numeric_limits<double>::quiet_NaN()});
  });
}

TEST_P(UpdateRunTest, StatesOfRowsDecayToZero) {
  ExpectStateDecaysToZero([&](std::uint64_t step) {
    const RowUpdater<float> rows(*updater_, kSize,
                                 {.learning_rate = std::numeric_limits<double>::quiet_NaN()});
    rows.Update(values_.data(), state_.data(), step, gradient_.data());
  });
}

INSTANTIATE_TEST_SUITE_P(
    Updaters, UpdateRunTest,
    testing::Values(Decaying{"momentum", {{"learning_rate", 0.1}, {"momentum", 0.9}}},
                    Decaying{"nesterov", {{"learning_rate", 0.1}, {"momentum", 0.9}}},
                    Decaying{"adam", {{"learning_rate", 0.1}, {"beta2", 0.9}}},
                    Decaying{"rmsprop", {{"learning_rate", 0.1}, {"alpha", 0.9}}}),
    [](const auto& instance) { return instance.param.updater; });

}  // namespace
}  // namespace leeway::ps
