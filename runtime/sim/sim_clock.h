// A simulated machine's clock: it may go faster or slower than the world's.
#ifndef LEEWAY_RUNTIME_SIM_SIM_CLOCK_H_
#define LEEWAY_RUNTIME_SIM_SIM_CLOCK_H_

#include "absl/time/time.h"

namespace leeway::runtime {

class SimClock {
 public:
  explicit SimClock(absl::Time world) : since_(world), then_(world) {}

  // What it shows. Never goes back.
  absl::Time At(absl::Time world) const {
    return then_ + (rate_ == 1 ? world - since_ : (world - since_) * rate_);
  }
  // How long it takes in the world until that much has passed here: not less, whatever is rounded.
  absl::Duration InWorld(absl::Duration here) const {
    return rate_ == 1 || here <= absl::ZeroDuration() ? here : here / rate_ + absl::Nanoseconds(1);
  }
  // Seconds that pass here in one of the world, from now on; more than 0.
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
