// ZmqSource is a descriptor of ZeroMQ as a source of the loop: a socket, its monitor, or the
// exports.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_
#define LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "runtime/loop/loop.h"

namespace leeway::van {

class ZmqSource : public runtime::Source {
 public:
  ZmqSource(runtime::Loop* loop, int fd, std::function<bool()> poll)
      : loop_(loop), fd_(fd), poll_(std::move(poll)) {
    loop_->AddSource(this);
  }
  ~ZmqSource() override { Stop(); }

  // Poll is not called any more.
  void Stop() {
    if (loop_ != nullptr) std::exchange(loop_, nullptr)->RemoveSource(this);
  }

  int fd() const override { return fd_; }
  bool Poll() override { return poll_(); }

 private:
  runtime::Loop* loop_;
  const int fd_;
  const std::function<bool()> poll_;
};

// A ZmqSocketSource is polled less often when it is idle. Polling a ZeroMQ socket costs system
// calls, and most sockets (above all monitors) have no events for minutes. So a source that has had
// none for kInVainMax rounds of the loop is polled once in kRoundsBetween rounds. Its descriptor
// stays readable until it is polled, so no event is lost: at worst the loop runs a few rounds
// without sleeping before it sees the event.
class ZmqSocketSource final : public ZmqSource {
 public:
  using ZmqSource::ZmqSource;
  ~ZmqSocketSource() override {
    if (gone_ != nullptr) *gone_ = true;
  }

  // To be called when the socket has been used otherwise than by Poll, which may have made its
  // descriptor unreadable, or when Poll has work that the descriptor does not show: it is polled in
  // the next round.
  void Touch() { in_vain_ = 0; }

  bool Poll() override {
    if (in_vain_ >= kInVainMax && ++in_vain_ % kRoundsBetween != 0) return false;
    // This object may be destroyed within the call.
    bool gone = false;
    gone_ = &gone;
    const bool any = ZmqSource::Poll();
    if (gone) return any;
    gone_ = nullptr;
    in_vain_ = any ? 0 : in_vain_ + 1;
    return any;
  }

 private:
  static constexpr std::uint32_t kInVainMax = 32;
  static constexpr std::uint32_t kRoundsBetween = 8;

  std::uint32_t in_vain_ = 0;  // rounds since the last event
  bool* gone_ = nullptr;       // within Poll: set when this is destroyed
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_
