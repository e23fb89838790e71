// How much a sender hands to a transport before the transport is done with what it has.
//
// What has been handed over can no longer be overtaken. So whoever sends by priority keeps the rest
// back, and hands over as much as the transport takes in a few milliseconds at the rate at which it
// has lately taken it: less would leave the wire idle while the sender is busy with something else,
// more would make what is urgent wait. One message may always be under way, however large.
//
// To hear that a message is done costs a wake-up. So only one is followed to its end in every
// quarter of what may be under way; it speaks for those before it.
#ifndef LEEWAY_VAN_SEND_PACER_H_
#define LEEWAY_VAN_SEND_PACER_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace leeway::van {

class SendPacer {
 public:
  static constexpr absl::Duration kTime = absl::Milliseconds(10);
  static constexpr std::uint64_t kBytesMin = 256 << 10;
  static constexpr std::uint64_t kBytesMax = 128 << 20;
  // One shorter than this is no end of being busy.
  static constexpr absl::Duration kPause = absl::Milliseconds(1);
  // What a message is charged on top of its payload.
  static constexpr std::uint64_t kMessageBytes = 128;

  std::uint64_t out() const { return out_; }
  std::uint64_t limit() const { return limit_; }

  // Whether a message with so much payload may be handed over now. Where not, ask again after
  // OnDone. `writable`: as van::Van::Writable says; one message beyond that tells when there is
  // room.
  bool MayHandOver(std::uint64_t bytes, bool writable) {
    if (out_ == 0 || (writable && out_ + bytes + kMessageBytes <= limit_)) return true;
    kept_back_ = true;
    return false;
  }
  // It is about to be. What to tell OnDone when the transport is done with it; 0: it need not.
  std::uint64_t OnHandOver(std::uint64_t bytes, bool writable, absl::Time now) {
    unfollowed_ += bytes + kMessageBytes;
    if (unfollowed_ < limit_ / 4 && writable) return 0;
    if (out_ == 0 && now - idle_since_ > kPause) Begin(now);
    out_ += unfollowed_;
    return std::exchange(unfollowed_, 0);
  }
  void OnDone(std::uint64_t bytes, absl::Time now) {
    out_ -= std::min(bytes, out_);
    if (out_ == 0) idle_since_ = now;
    taken_ += bytes;
    if (taken_ >= limit_) Adapt(now);
  }
  // Another connection. What the last one took is the best guess for it.
  void Reset() {
    out_ = unfollowed_ = 0;
    idle_since_ = absl::InfinitePast();
  }

 private:
  // A time in which the transport always had something to do, but for the pauses it takes to hand
  // over more once all is done.
  void Begin(absl::Time now) {
    begun_ = now;
    taken_ = 0;
    kept_back_ = false;
  }
  // By a factor of two at most: a transport takes the first of what it gets into its own buffers.
  void Adapt(absl::Time now) {
    const double times = absl::FDivDuration(kTime, std::max(now - begun_, absl::Microseconds(1)));
    const double wanted = static_cast<double>(taken_) * times;
    const double limit = static_cast<double>(limit_);
    // Without anything kept back it was the sender that was slow, or had no more.
    const double most = kept_back_ ? 2 * limit : limit;
    limit_ = static_cast<std::uint64_t>(std::clamp(wanted, limit / 2, most));
    limit_ = std::clamp(limit_, kBytesMin, kBytesMax);
    Begin(now);
  }

  std::uint64_t limit_ = kBytesMin;
  std::uint64_t out_ = 0;         // of those followed
  std::uint64_t unfollowed_ = 0;  // handed over since the last one that is
  absl::Time idle_since_ = absl::InfinitePast();
  absl::Time begun_;
  std::uint64_t taken_ = 0;  // since then
  bool kept_back_ = false;   // since then
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SEND_PACER_H_
