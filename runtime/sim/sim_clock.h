// SimClock is the clock of one simulated machine: it may run faster or slower than the world's
// virtual time.
#ifndef LEEWAY_RUNTIME_SIM_SIM_CLOCK_H_
#define LEEWAY_RUNTIME_SIM_SIM_CLOCK_H_

#include "absl/time/time.h"

namespace leeway::runtime {

class SimClock {
 public:
  explicit SimClock(absl::Time world) : since_(world), then_(world) {}

  // The clock's time at that time of the world. Never goes back.
  absl::Time At(absl::Time world) const {
    return then_ + (rate_ == 1 ? world - since_ : (world - since_) * rate_);
  }
  // The world's time in which at least `here` passes on this clock (rounded up).
  absl::Duration InWorld(absl::Duration here) const {
    return rate_ == 1 || here <= absl::ZeroDuration() ? here : here / rate_ + absl::Nanoseconds(1);
  }
  // From now on, `rate` seconds pass on this clock per second of the world; `rate` > 0.
  void SetRate(double rate, absl::Time world) {
    then_ = At(world);
    since_ = world;
    rate_ = rate;
  }

 private:
  absl::Time since_, then_;
  double rate_ = 1;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_CLOCK_H_
