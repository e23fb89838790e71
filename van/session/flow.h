// SendFlow is the sender's side of flow control to one peer, by cumulative byte offsets. One
// thread.
//
// Every message carries the number of bytes that its sender has sent so far, itself included. The
// receiver reports the largest such offset whose message it has given to its handler. The
// difference is in flight, and stays below a window. Offsets are absolute, so nothing leaks when a
// message or a report is lost: the next one repeats the information, and a sender that is blocked
// for long asks for a report.
//
// To a peer on the same machine fewer bytes are sent ahead. They are then still in the caches when
// they are received; and because such a peer takes them while they are being sent, more in flight
// would not help.
#ifndef LEEWAY_VAN_SESSION_FLOW_H_
#define LEEWAY_VAN_SESSION_FLOW_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace leeway::van {

class SendFlow {
 public:
  // Limits for a peer on the same host. Large messages, such as blocks of a tensor: as many as a
  // second-level cache holds. Smaller ones, such as rows, take the receiver longer than reading
  // their bytes does; for these, enough that the receiver has work while the sender is busy.
  static constexpr std::uint64_t kLargeBytes = 256 << 10;
  static constexpr std::size_t kSameHostLarge = 4;
  static constexpr std::uint64_t kSameHostBytes = 4 << 20;

  explicit SendFlow(std::uint64_t window) : window_(std::max<std::uint64_t>(window, 1)) {}

  std::uint64_t sent() const { return sent_; }
  std::uint64_t in_flight() const { return sent_ - consumed_; }

  void SetSameHost(bool same_host) { same_host_ = same_host; }
  bool same_host() const { return same_host_; }

  // Whether a message may be sent now. One that is larger than the window is sent when nothing else
  // is in flight.
  bool MaySend(std::uint64_t bytes) const {
    if (in_flight() == 0) return true;
    if (bytes > window_ || in_flight() > window_ - bytes) return false;
    if (!same_host_) return true;
    if (bytes < kLargeBytes) return in_flight() + bytes <= kSameHostBytes;
    return large_ends_[oldest_large_] <= consumed_;
  }
  void OnSend(std::uint64_t bytes) {
    sent_ += bytes;
    if (bytes < kLargeBytes) return;
    large_ends_[oldest_large_] = sent_;
    oldest_large_ = (oldest_large_ + 1) % kSameHostLarge;
  }

  // Whether the message that is being sent has to ask for a report: twice per window. A peer on the
  // same host, which answers at once, is asked less often, to interrupt its work less.
  bool TakeAsk() {
    const std::uint64_t half = (window_ + 1) / 2;
    if (sent_ - asked_ < (same_host_ ? std::min(half, kSameHostAskBytes) : half)) return false;
    asked_ = sent_;
    return true;
  }
  // Whether a blocked sender has to ask in a message of its own, because no message in flight asks.
  bool TakeAskWhenBlocked() {
    if (asked_ > consumed_) return false;
    asked_ = sent_;
    return true;
  }

  // Takes a report. False: it is of bytes that were never sent.
  bool OnConsumed(std::uint64_t offset) {
    if (offset > sent_) return false;
    consumed_ = std::max(consumed_, offset);
    return true;
  }

 private:
  // Three blocks of the usual size, of the kSameHostLarge that may be in flight.
  static constexpr std::uint64_t kSameHostAskBytes = 1536 << 10;

  std::uint64_t window_;
  std::uint64_t sent_ = 0;
  std::uint64_t consumed_ = 0;  // the largest offset reported
  std::uint64_t asked_ = 0;     // `sent_` when a report was last requested
  bool same_host_ = false;
  // A ring of `sent_` after each of the last large messages; oldest_large_ is overwritten next.
  std::array<std::uint64_t, kSameHostLarge> large_ends_ = {};
  std::size_t oldest_large_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_FLOW_H_
