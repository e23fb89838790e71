// GuestMeter and AcceptMeter limit the time that a van spends on guests, which are peers that have
// not joined its cluster (Van::Admit): one on their messages, the other on their connections.
//
// The time spent on a guest that turns out to be a member is given back, so that many members may
// connect at once. One thread.
//
// Accepting has an allowance of its own, and a larger one: connections are accepted in the order in
// which they come, so a tool's or a member's waits behind all those of a flood.
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

class AcceptMeter : public ShareMeter {
 public:
  static constexpr double kShare = 0.05;
  static constexpr absl::Duration kSaved = absl::Milliseconds(50);
  // The approximate work for accepting, greeting and closing a connection, most of it in the
  // kernel: 500 of them a second are accepted, and 500 at once.
  static constexpr absl::Duration kWork = absl::Microseconds(100);

  AcceptMeter() : ShareMeter(kShare, kSaved) {}
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_GUEST_METER_H_
