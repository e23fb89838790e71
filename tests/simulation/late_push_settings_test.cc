// A push that comes late is applied by the settings of its clock, however often its table has been
// changed since (docs/consistency.md, "Changing a table").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "tests/simulation/promise_testing.h"

namespace leeway::simulation::late_push_settings {
namespace {

class LatePush : public PromiseTest {
 protected:
  Table Begin() {
    StartAll(Base(1, 2, 1));
    TableSpec spec = Dense(Consistency::Asp());
    spec.updater = {"sgd", {{"learning_rate", 1}}};
    const Table table = Create(spec);
    Run(absl::Milliseconds(100));
    return table;
  }

  // Worker 0 asks for another rate. True once it is decided, within 400 ms.
  bool Change(int rate, bool clocks) {
    const auto how = std::make_shared<std::optional<absl::Status>>();
    core(0)->ChangeTable("t", {absl::StrCat("updater.learning_rate=", rate)}, absl::Seconds(30),
                         [how](const auto& result) { *how = result.status(); });
    for (int step = 0; step < 40 && !how->has_value(); ++step) {
      Run(absl::Milliseconds(10));
      if (clocks && step % 4 == 3) ClockAll(1);
    }
    EXPECT_EQ(how->value_or(absl::OkStatus()), absl::OkStatus());
    return how->has_value();
  }
  void ClockAll(int times) {
    for (int i = 0; i < times; ++i) {
      for (const std::uint32_t rank : {0u, 1u}) Clock(rank);
    }
  }
  void Heal() {
    cluster_->network().Heal("worker1", ServerHost(0));
    cluster_->network().Heal(ServerHost(0), "worker1");
  }

  // A push of worker 1 in clock 0, where the rate is 1, stalls while there are `changes`.
  void ExpectRateOfItsClock(int changes) {
    const Table table = Begin();
    CutBoth("worker1", ServerHost(0));
    const Op push = Push(1, table, 1);
    for (int i = 1; i <= changes; ++i) {
      ASSERT_TRUE(Change(100 * i, /*clocks=*/true)) << i;
      ClockAll(6);
      Run(absl::Milliseconds(50));
    }
    Heal();
    ASSERT_TRUE(Wait(push).ok()) << push->status();
    EXPECT_EQ(Pull(0, table).values[0], -1);
  }
};

TEST_F(LatePush, HasTheRateOfItsClockAfterSevenChanges) { ExpectRateOfItsClock(7); }
TEST_F(LatePush, HasTheRateOfItsClockAfterTenChanges) { ExpectRateOfItsClock(10); }

// The next change waits for the push: a map does not grow without limit.
TEST_F(LatePush, PutsOffMoreChangesThanAMapTells) {
  const Table table = Begin();
  CutBoth("worker1", ServerHost(0));
  const Op push = Push(1, table, 1);
  for (std::size_t i = 1; i <= proto::kTableSettingsToldMax; ++i) {
    ASSERT_TRUE(Change(static_cast<int>(i) + 1, /*clocks=*/true)) << i;
  }
  EXPECT_FALSE(Change(1000, /*clocks=*/true));
  Heal();
  ASSERT_TRUE(Wait(push).ok()) << push->status();
  EXPECT_EQ(Pull(0, table).values[0], -1);
  // It is decided now, and makes room for the next one.
  for (int step = 0; step < 100; ++step) {
    Run(absl::Milliseconds(10));
    ClockAll(1);
  }
  EXPECT_TRUE(Change(2000, /*clocks=*/true));
}

// A training worker that waits for its changes ends no clock meanwhile.
TEST_F(LatePush, ATableIsChangedTwiceInOneClock) {
  const Table table = Begin();
  EXPECT_TRUE(Change(2, /*clocks=*/false));
  EXPECT_TRUE(Change(3, /*clocks=*/false));
  ClockAll(20);
  ASSERT_TRUE(Wait(Push(1, table, 1)).ok());
  EXPECT_EQ(Pull(1, table).values[0], -3);
}

}  // namespace
}  // namespace leeway::simulation::late_push_settings
