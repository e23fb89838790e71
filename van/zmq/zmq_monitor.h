// What ZeroMQ tells about a socket's connections.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_
#define LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "van/zmq/zmq_context.h"

namespace leeway::van {

// Of a peer whose handshake has failed: ZeroMQ does not say what it was.
inline absl::Status NoZmqHandshake() {
  return absl::FailedPreconditionError(
      "it does not speak ZeroMQ's protocol (both ends must have the same LEEWAY_VAN), or broke "
      "off");
}

class ZmqMonitor {
 public:
  enum class What {
    kOpened,
    kAccepted,
    kHandshakeFailed,
    kDisconnected,
    kFailed,
    kStopped,
    kOther
  };
  struct Event {
    What what = What::kOther;
    int value = 0;  // kAccepted, kDisconnected: the file descriptor
  };

  // `watched` outlives the monitor or Stop is called before it goes.
  absl::Status Start(const std::shared_ptr<ZmqContext>& context, const ZmqSocket& watched);
  void Stop(const ZmqSocket& watched);
  // The watched socket has been closed instead: returns when it listens no more, so that its
  // address can be bound again.
  void AwaitClosed();

  int fd() const { return fd_; }
  // Whether there was an event.
  bool Next(Event* event);

 private:
  ZmqSocket events_;
  int fd_ = -1;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_
