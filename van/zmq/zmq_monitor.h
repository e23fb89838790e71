// ZmqMonitor reads the events of a ZeroMQ socket's connections. Lives on the transport's loop.
//
// They tell the descriptors that ZeroMQ has opened, which children of this process close
// (runtime::ClosedInChildren). A child that is made while a connection is being made, or within
// the moment until its event is read, keeps that one open.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_
#define LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "runtime/base/fork.h"
#include "van/zmq/zmq_context.h"

namespace leeway::van {

// The error for a peer whose handshake has failed; ZeroMQ does not tell the cause.
inline absl::Status NoZmqHandshake() {
  return absl::FailedPreconditionError(
      "it does not speak ZeroMQ's protocol (both ends must have the same LEEWAY_VAN), or closed "
      "the connection");
}

class ZmqMonitor {
 public:
  enum class Kind {
    kTaken,  // by the other end
    kOpened,
    kAccepted,
    kHandshakeFailed,
    kDisconnected,
    kFailed,
    kStopped,
    kOther
  };
  struct Event {
    Kind kind = Kind::kOther;
    int value = 0;  // of kTaken, kAccepted and kDisconnected: the file descriptor
  };

  // Starts to watch a socket. `watched` outlives the monitor, or Stop is called before.
  absl::Status Start(const std::shared_ptr<ZmqContext>& context, const ZmqSocket& watched);
  void Stop(const ZmqSocket& watched);
  // For a watched socket that has been closed without Stop: waits until it listens no more, so that
  // its address can be bound again.
  void AwaitClosed();

  int fd() const { return fd_; }
  // Takes the next event; false: there is none.
  bool Next(Event* event);

 private:
  void NoteDescriptor(std::uint16_t event, int fd);

  ZmqSocket events_;
  int fd_ = -1;
  std::map<int, runtime::ClosedInChildren> closed_in_children_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_MONITOR_H_
