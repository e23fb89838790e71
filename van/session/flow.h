// Flow control by cumulative byte offsets.
//
// Every message carries how many bytes its sender has sent so far, itself included; the receiver
// reports the largest such offset it has handed over. The difference is in flight and stays below
// a window. Offsets are absolute, so that nothing leaks when a message or a report is lost: the
// next one says it again, and a sender that has been blocked for long asks for one.
//
// To a peer on the same machine little is sent ahead: what is under way is then still in the caches
// when it is received, and as the peer takes it while it is being sent, more is of no use.
#ifndef LEEWAY_VAN_SESSION_FLOW_H_
#define LEEWAY_VAN_SESSION_FLOW_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/mutants.h"

namespace leeway::van {

class SendFlow {
 public:
  // What may be under way to a same_host peer: of large messages, such as blocks of a tensor, as
  // many as a second cache holds; of smaller ones, such as rows, which take longer than it takes to
  // read them, enough to be busy with while the sender is.
  static constexpr std::uint64_t kLargeBytes = 256 << 10;
  static constexpr std::size_t kSameHostLarge = 4;
  static constexpr std::uint64_t kSameHostBytes = 4 << 20;

  explicit SendFlow(std::uint64_t window) : window_(std::max<std::uint64_t>(window, 1)) {}

  std::uint64_t sent() const { return sent_; }
  std::uint64_t in_flight() const { return sent_ - consumed_; }

  void SetSameHost(bool same_host) { same_host_ = same_host; }
  bool same_host() const { return same_host_; }

  // A message larger than the window goes out alone.
  bool MaySend(std::uint64_t bytes) const {
    if (in_flight() == 0 || runtime::Planted<"window-ignored">()) return true;
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

  // Whether the message that is just being sent should ask for a report: twice a window. A
  // same_host peer, which answers at once, is asked later, and so interrupts its work less often.
  bool TakeAsk() {
    const std::uint64_t half = (window_ + 1) / 2;
    if (sent_ - asked_ < (same_host_ ? std::min(half, kSameHostAskBytes) : half)) return false;
    asked_ = sent_;
    return true;
  }
  // Whether, being blocked, one has to ask in a message of its own because nothing under way does.
  bool TakeAskWhenBlocked() {
    if (asked_ > consumed_ || runtime::Planted<"blocked-and-silent">()) return false;
    asked_ = sent_;
    return true;
  }

  // False for a report of bytes never sent.
  bool OnConsumed(std::uint64_t offset) {
    if (offset > sent_) return runtime::Planted<"more-taken-than-sent">();
    consumed_ = runtime::Planted<"taken-goes-back">() ? offset : std::max(consumed_, offset);
    return true;
  }

 private:
  // Three blocks of the usual size, of the four that may be under way.
  static constexpr std::uint64_t kSameHostAskBytes = 1536 << 10;

  std::uint64_t window_;
  std::uint64_t sent_ = 0;
  std::uint64_t consumed_ = 0;  // as reported
  std::uint64_t asked_ = 0;     // `sent_` when a report was last asked for
  bool same_host_ = false;
  // `sent_` after each of the last large messages, the oldest of which is next to be forgotten.
  std::array<std::uint64_t, kSameHostLarge> large_ends_ = {};
  std::size_t oldest_large_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_FLOW_H_
