// Flow control by cumulative byte offsets.
//
// Every message carries how many bytes its sender has sent so far, itself included; the receiver
// reports the largest such offset it has handed over. The difference is in flight and stays below
// a window. Offsets are absolute, so that nothing leaks when a message or a report is lost: the
// next one says it again, and a sender that has been blocked for long asks for one.
#ifndef LEEWAY_VAN_FLOW_H_
#define LEEWAY_VAN_FLOW_H_

#include <algorithm>
#include <cstdint>

namespace leeway::van {

class SendFlow {
 public:
  explicit SendFlow(std::uint64_t window) : window_(std::max<std::uint64_t>(window, 1)) {}

  std::uint64_t sent() const { return sent_; }
  std::uint64_t in_flight() const { return sent_ - consumed_; }

  // A message larger than the window goes out alone.
  bool MaySend(std::uint64_t bytes) const {
    return in_flight() == 0 || (bytes <= window_ && in_flight() <= window_ - bytes);
  }
  void OnSend(std::uint64_t bytes) { sent_ += bytes; }

  // Whether the message that is just being sent should ask for a report: twice a window.
  bool TakeAsk() {
    if (sent_ - asked_ < (window_ + 1) / 2) return false;
    asked_ = sent_;
    return true;
  }
  // Whether, being blocked, one has to ask in a message of its own because nothing under way does.
  bool TakeAskWhenBlocked() {
    if (asked_ > consumed_) return false;
    asked_ = sent_;
    return true;
  }

  // False for a report of bytes never sent.
  bool OnConsumed(std::uint64_t offset) {
    if (offset > sent_) return false;
    consumed_ = std::max(consumed_, offset);
    return true;
  }

 private:
  std::uint64_t window_;
  std::uint64_t sent_ = 0;
  std::uint64_t consumed_ = 0;  // as reported
  std::uint64_t asked_ = 0;     // `sent_` when a report was last asked for
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_FLOW_H_
