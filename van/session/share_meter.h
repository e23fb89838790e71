// A share of a thread's time: what some kind of work may take of it.
//
// The work is paid for out of an allowance that grows with time, a share of it, up to what may be
// saved. The time a piece of work takes is known only afterwards, so the last piece may overdraw:
// then nothing of the kind is done until the debt is paid. One thread.
#ifndef LEEWAY_VAN_SESSION_SHARE_METER_H_
#define LEEWAY_VAN_SESSION_SHARE_METER_H_

#include <algorithm>

#include "absl/time/time.h"

namespace leeway::van {

class ShareMeter {
 public:
  // Many times what it costs to wake up.
  static constexpr absl::Duration kWorthWhile = absl::Microseconds(500);

  // `share`: in the long run. `saved`: at once, after a time without such work.
  ShareMeter(double share, absl::Duration saved)
      : share_(share), saved_(saved), allowance_(saved) {}

  void Charge(absl::Duration work, absl::Time now) {
    Grow(now);
    allowance_ -= std::max(work, absl::ZeroDuration());
  }
  void GiveBack(absl::Duration work) { allowance_ = std::min(allowance_ + work, saved_); }
  bool MayWork(absl::Time now) {
    Grow(now);
    return allowance_ > absl::ZeroDuration();
  }
  // How long from now until it is worth while to wake up for it again; 0: it is now.
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
