// StallWatch detects that the transfer in one direction of one connection makes no progress. One
// thread.
#ifndef LEEWAY_VAN_SESSION_STALL_WATCH_H_
#define LEEWAY_VAN_SESSION_STALL_WATCH_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace leeway::van {

class StallWatch {
 public:
  enum class News { kNone, kStalled, kRecovered };

  // To be called at intervals. `busy`: a transfer is under way; `progress` changes whenever some of
  // its bytes have arrived. kStalled: it has been busy without progress for `stall_time`. Each
  // stall, and each recovery, is reported once.
  News Look(bool busy, std::uint64_t progress, absl::Time now, absl::Duration stall_time) {
    if (!busy || !busy_ || progress != progress_) {
      busy_ = busy;
      progress_ = progress;
      stuck_for_ = now - since_;
      since_ = now;
      return std::exchange(stalled_, false) ? News::kRecovered : News::kNone;
    }
    if (stalled_ || now - since_ < stall_time) return News::kNone;
    stalled_ = true;
    return News::kStalled;
  }
  // Excludes a time without calls of Look, in which this process itself was stopped.
  void PutOff(absl::Duration pause) {
    if (busy_) since_ += pause;
  }

  bool stalled() const { return stalled_; }
  // While busy: the time of the last progress.
  absl::Time since() const { return since_; }
  absl::Duration StuckFor(absl::Time now) const {
    return busy_ ? now - since_ : absl::ZeroDuration();
  }
  // After a recovery: how long the stall lasted.
  absl::Duration stuck_for() const { return stuck_for_; }

 private:
  bool busy_ = false, stalled_ = false;
  std::uint64_t progress_ = 0;
  absl::Time since_ = absl::UnixEpoch();
  absl::Duration stuck_for_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_STALL_WATCH_H_
