// GuestMeter limits the time that a van spends on guests: peers that have not joined its cluster
// (Van::Admit).
//
// The time spent on a guest that turns out to be a member is given back, so that many members may
// connect at once. One thread.
#ifndef LEEWAY_VAN_SESSION_GUEST_METER_H_
#define LEEWAY_VAN_SESSION_GUEST_METER_H_

#include "absl/time/time.h"
#include "van/session/share_meter.h"

namespace leeway::van {

class GuestMeter : public ShareMeter {
 public:
  static constexpr double kShare = 0.02;
  static constexpr absl::Duration kSaved = absl::Milliseconds(50);

  GuestMeter() : ShareMeter(kShare, kSaved) {}
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_GUEST_METER_H_
