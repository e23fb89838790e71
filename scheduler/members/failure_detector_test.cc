#include "scheduler/members/failure_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FailureDetectorTest : public ::testing::Test {
 protected:
  // Asks every second, as promised, up to that many seconds.
  std::vector<std::uint32_t> AskUntil(int seconds) {
    std::vector<std::uint32_t> silent;
    while (second_ < seconds) silent = detector_.Silent(At(++second_));
    return silent;
  }
  static absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

  FailureDetector detector_{absl::Seconds(10), absl::Seconds(1)};
  int second_ = 0;
};

TEST_F(FailureDetectorTest, OnlySilenceLongerThanTheTimeoutCounts) {
  detector_.Heard(2, At(0));
  detector_.Heard(3, At(0.5));
  EXPECT_THAT(AskUntil(10), IsEmpty());
  EXPECT_THAT(AskUntil(11), ElementsAre(2, 3));
}

TEST_F(FailureDetectorTest, BeingHeardPutsOffTheDeadlineOfThatNodeAlone) {
  detector_.Heard(2, At(0));
  detector_.Heard(3, At(0));
  AskUntil(8);
  detector_.Heard(3, At(8));
  EXPECT_THAT(AskUntil(11), ElementsAre(2));
  EXPECT_THAT(AskUntil(19), ElementsAre(2, 3));
  EXPECT_EQ(detector_.SilentFor(3, At(19)), absl::Seconds(11));
}

TEST_F(FailureDetectorTest, AMessageThatWasLateDoesNotTurnBackTheClock) {
  detector_.Heard(2, At(5));
  detector_.Heard(2, At(1));
  EXPECT_EQ(detector_.SilentFor(2, At(6)), absl::Seconds(1));
}

TEST_F(FailureDetectorTest, TheForgottenAreNeverSilent) {
  detector_.Heard(2, At(0));
  detector_.Forget(2);
  EXPECT_THAT(AskUntil(100), IsEmpty());
}

TEST_F(FailureDetectorTest, AStoppedSchedulerDeclaresNoNodeDead) {
  detector_.Heard(2, At(0));
  EXPECT_THAT(AskUntil(3), IsEmpty());
  // Stopped for an hour; what the node sent meanwhile has not been read yet.
  EXPECT_THAT(detector_.Silent(At(3603)), IsEmpty());
  second_ = 3603;
  EXPECT_THAT(AskUntil(3609), IsEmpty());
  EXPECT_THAT(AskUntil(3613), ElementsAre(2));
}

}  // namespace
}  // namespace leeway::scheduler
