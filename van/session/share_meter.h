// ShareMeter limits a kind of work to a share of a thread's time.
//
// Work is charged to an allowance, which grows by that share of the time that passes, up to a
// maximum. The cost of a piece of work is known only afterwards, so the last piece may overdraw the
// allowance; then no work of this kind is done until the debt is paid. One thread.
#ifndef LEEWAY_VAN_SESSION_SHARE_METER_H_
#define LEEWAY_VAN_SESSION_SHARE_METER_H_

#include <algorithm>

#include "absl/time/time.h"

namespace leeway::van {

class ShareMeter {
 public:
  // The least allowance to wake up for: many times the cost of a wake-up.
  static constexpr absl::Duration kWorthWhile = absl::Microseconds(500);

  // `share`: of the time, in the long run. `saved`: the largest allowance, which can be used at
  // once after a time without work.
  ShareMeter(double share, absl::Duration saved)
      : share_(share), saved_(saved), allowance_(saved) {}

  // Charges work that has been done.
  void Charge(absl::Duration work, absl::Time now) {
    Grow(now);
    allowance_ -= std::max(work, absl::ZeroDuration());
  }
  // Returns an earlier charge.
  void GiveBack(absl::Duration work) { allowance_ = std::min(allowance_ + work, saved_); }
  // Whether work may be done now.
  bool MayWork(absl::Time now) {
    Grow(now);
    return allowance_ > absl::ZeroDuration();
  }
  // The time from now until a wake-up for such work is worth its cost; 0: now.
  absl::Duration Wait(absl::Time now) {
    if (MayWork(now)) return absl::ZeroDuration();
    return (kWorthWhile - allowance_) / share_;
  }

 private:
  void Grow(absl::Time now) {
    if (last_ == absl::InfinitePast()) last_ = now;
    if (now > last_) allowance_ = std::min(allowance_ + (now - last_) * share_, saved_);
    last_ = std::max(last_, now);
  }

  const double share_;
  const absl::Duration saved_;
  absl::Duration allowance_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_SHARE_METER_H_
