// One file descriptor of a socket, its monitor or the loans, on the loop.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_
#define LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_

#include <functional>
#include <utility>

#include "runtime/loop.h"

namespace leeway::van {

class ZmqSource final : public runtime::Source {
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

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_SOCKET_SOURCE_H_
