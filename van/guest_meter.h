// What a process spends on guests: peers that have not joined its cluster (Van::Admit).
//
// Their work is paid for out of an allowance that grows with time, kShare of it, up to kSaved. The
// time a piece of work takes is known only afterwards, so the last piece may overdraw: then nothing
// is done for guests until the debt is paid. What was spent on one that turns out to be a member is
// given back, so that many members may come at once. One thread.
#ifndef LEEWAY_VAN_GUEST_METER_H_
#define LEEWAY_VAN_GUEST_METER_H_

#include <algorithm>

#include "absl/time/time.h"

namespace leeway::van {

class GuestMeter {
 public:
  // Of a thread's time, in the long run.
  static constexpr double kShare = 0.02;
  // At once, after a time without guests.
  static constexpr absl::Duration kSaved = absl::Milliseconds(50);
  // Many times what it costs to wake up.
  static constexpr absl::Duration kWorthWhile = absl::Microseconds(500);

  void Charge(absl::Duration work, absl::Time now) {
    Grow(now);
    allowance_ -= std::max(work, absl::ZeroDuration());
  }
  void GiveBack(absl::Duration work) { allowance_ = std::min(allowance_ + work, kSaved); }
  bool MayWork(absl::Time now) {
    Grow(now);
    return allowance_ > absl::ZeroDuration();
  }
  // How long from now until it is worth while to wake up for guests again; 0: it is now.
  absl::Duration Wait(absl::Time now) {
    if (MayWork(now)) return absl::ZeroDuration();
    return (kWorthWhile - allowance_) / kShare;
  }

 private:
  void Grow(absl::Time now) {
    if (last_ == absl::InfinitePast()) last_ = now;
    if (now > last_) allowance_ = std::min(allowance_ + (now - last_) * kShare, kSaved);
    last_ = std::max(last_, now);
  }

  absl::Duration allowance_ = kSaved;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_GUEST_METER_H_
