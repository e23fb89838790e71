// SendPacer limits how many bytes a sender hands to a transport before the transport has sent the
// earlier ones. Lives on the sender's loop.
//
// A message that has been handed over can no longer be overtaken. So a sender with priorities keeps
// later messages back, and hands over as many bytes as the transport takes in about 10 ms (kTime)
// at the rate at which it has lately taken them. With fewer bytes the wire would be idle while the
// sender is busy with other work; with more, urgent messages would wait longer. One message may
// always be under way, whatever its size.
//
// A callback for the end of a message costs a wake-up. So the pacer follows only one message in
// every quarter of the limit to its end; that one stands for the messages before it.
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
  // An idle time up to this length is part of a busy period.
  static constexpr absl::Duration kPause = absl::Milliseconds(1);
  // The cost in bytes of a message in addition to its payload.
  static constexpr std::uint64_t kMessageBytes = 128;

  std::uint64_t out() const { return out_; }
  std::uint64_t limit() const { return limit_; }

  // Whether a message with that much payload may be handed over now. If not, ask again after
  // OnDone. `writable`: van::Van::Writable; one message beyond that is allowed, whose end tells
  // when there is room.
  bool MayHandOver(std::uint64_t bytes, bool writable) {
    if (out_ == 0 || (writable && out_ + bytes + kMessageBytes <= limit_)) return true;
    kept_back_ = true;
    return false;
  }
  // To be called before a message is handed over. Returns the number to call OnDone with when the
  // transport has sent it; 0: OnDone is not needed.
  std::uint64_t OnHandOver(std::uint64_t bytes, bool writable, absl::Time now) {
    unfollowed_ += bytes + kMessageBytes;
    if (unfollowed_ < limit_ / 4 && writable) return 0;
    if (out_ == 0 && now - idle_since_ > kPause) Begin(now);
    out_ += unfollowed_;
    return std::exchange(unfollowed_, 0);
  }
  // The transport has sent a followed message and those before it. `bytes` is what OnHandOver
  // returned.
  void OnDone(std::uint64_t bytes, absl::Time now) {
    out_ -= std::min(bytes, out_);
    if (out_ == 0) idle_since_ = now;
    taken_ += bytes;
    if (taken_ >= limit_) Adapt(now);
  }
  // Begins with another connection. The limit stays, as the best estimate.
  void Reset() {
    out_ = unfollowed_ = 0;
    idle_since_ = absl::InfinitePast();
  }

 private:
  // Begins a busy period: a time in which the transport always had bytes to send, apart from the
  // short pauses until the next messages were handed over.
  void Begin(absl::Time now) {
    begun_ = now;
    taken_ = 0;
    kept_back_ = false;
  }
  // Sets the limit by the rate of this busy period, changing it by a factor of two at most, because
  // a transport takes the first bytes at once into its own buffers.
  void Adapt(absl::Time now) {
    const double times = absl::FDivDuration(kTime, std::max(now - begun_, absl::Microseconds(1)));
    const double wanted = static_cast<double>(taken_) * times;
    const double limit = static_cast<double>(limit_);
    // If no message was kept back, the sender was the slow side, so the limit does not grow.
    const double most = kept_back_ ? 2 * limit : limit;
    limit_ = static_cast<std::uint64_t>(std::clamp(wanted, limit / 2, most));
    limit_ = std::clamp(limit_, kBytesMin, kBytesMax);
    Begin(now);
  }

  std::uint64_t limit_ = kBytesMin;
  std::uint64_t out_ = 0;         // bytes of followed messages, and of those that they stand for
  std::uint64_t unfollowed_ = 0;  // bytes handed over since the last followed message
  absl::Time idle_since_ = absl::InfinitePast();
  absl::Time begun_;
  std::uint64_t taken_ = 0;  // bytes sent since begun_
  bool kept_back_ = false;   // a message was refused since begun_
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SEND_PACER_H_
