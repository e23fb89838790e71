#include "van/session/guest_meter.h"

#include <gtest/gtest.h>

namespace leeway::van {
namespace {

TEST(GuestMeterTest, InTheLongRunGuestsGetTheirShareAndNoMore) {
  GuestMeter meter;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const absl::Time end = now + absl::Seconds(100);
  absl::Duration worked;
  while (now < end) {
    if (meter.MayWork(now)) {
      const absl::Duration work = absl::Milliseconds(3);
      meter.Charge(work, now += work);
      worked += work;
    } else {
      now += meter.Wait(now);
    }
  }
  const absl::Duration share = absl::Seconds(100) * GuestMeter::kShare;
  EXPECT_GT(worked, share * 0.9);
  EXPECT_LT(worked, share + GuestMeter::kSaved + absl::Milliseconds(10));
}

TEST(GuestMeterTest, NothingIsDoneUntilTheDebtIsPaid) {
  GuestMeter meter;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  EXPECT_TRUE(meter.MayWork(now));
  const absl::Duration debt = absl::Milliseconds(10);
  meter.Charge(GuestMeter::kSaved + debt, now);
  EXPECT_FALSE(meter.MayWork(now));
  EXPECT_EQ(meter.Wait(now), (debt + GuestMeter::kWorthWhile) / GuestMeter::kShare);
  EXPECT_FALSE(meter.MayWork(now + 0.99 * debt / GuestMeter::kShare));
  EXPECT_TRUE(meter.MayWork(now + debt / GuestMeter::kShare + absl::Milliseconds(1)));
}

TEST(GuestMeterTest, TheCostOfMembersIsGivenBack) {
  GuestMeter meter;
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  meter.Charge(2 * GuestMeter::kSaved, now);
  EXPECT_FALSE(meter.MayWork(now));
  meter.GiveBack(1.5 * GuestMeter::kSaved);
  EXPECT_TRUE(meter.MayWork(now));
  meter.GiveBack(absl::Hours(1));
  meter.Charge(GuestMeter::kSaved, now);
  EXPECT_FALSE(meter.MayWork(now));
}

TEST(GuestMeterTest, NoMoreIsSavedThanIsNamed) {
  GuestMeter meter;
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  EXPECT_TRUE(meter.MayWork(now));
  const absl::Time later = now + absl::Hours(1);
  meter.Charge(GuestMeter::kSaved - absl::Nanoseconds(1), later);
  EXPECT_TRUE(meter.MayWork(later));
  meter.Charge(absl::Nanoseconds(1), later);
  EXPECT_FALSE(meter.MayWork(later));
  // A clock that does not advance, or goes back, adds nothing to the allowance.
  EXPECT_FALSE(meter.MayWork(later - absl::Hours(1)));
}

}  // namespace
}  // namespace leeway::van
