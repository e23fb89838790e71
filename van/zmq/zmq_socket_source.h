// What of ZeroMQ is on the loop: a socket, its monitor, or the exports, by a file descriptor.
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

  // From here on Poll is not called.
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

// To ask a socket whether it has anything costs calls to the system, and most of them (monitors
// above all) have nothing to say for minutes. One that has long had nothing is therefore asked only
// every few rounds of the loop. Its descriptor stays readable until it is asked, so nothing is
// lost: at worst the loop goes round a few times without sleeping before it hears the news.
class ZmqSocketSource final : public ZmqSource {
 public:
  using ZmqSource::ZmqSource;
  ~ZmqSocketSource() override {
    if (gone_ != nullptr) *gone_ = true;
  }

  // The socket has been used otherwise than by Poll, which may have made its descriptor unreadable,
  // or Poll has something to do that the descriptor does not know of: asked in the next round.
  void Touch() { in_vain_ = 0; }

  bool Poll() override {
    if (in_vain_ >= kInVainMax && ++in_vain_ % kRoundsBetween != 0) return false;
    // It may be destroyed within the call.
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

  std::uint32_t in_vain_ = 0;  // rounds since there last was anything
  bool* gone_ = nullptr;       // within Poll: where to say that it is destroyed
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_
