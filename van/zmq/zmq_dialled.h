// ZmqDialled is one connection to a listener: a DEALER socket that is used for one attempt and
// never reconnects by itself, so that messages queued for one connection cannot reach the next one.
// Lives on the transport's loop.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_DIALLED_H_
#define LEEWAY_VAN_ZMQ_ZMQ_DIALLED_H_

#include <memory>
#include <string>

#include "van/zmq/zmq_link.h"
#include "van/zmq/zmq_monitor.h"
#include "van/zmq/zmq_socket_source.h"

namespace leeway::van {

class ZmqDialled {
 public:
  ZmqDialled(ZmqShared* shared, ConnId conn, std::string address)
      : shared_(shared), conn_(conn), address_(std::move(address)) {}
  ~ZmqDialled() { Shut(); }

  // Starts to connect. `endpoint` in ZeroMQ's notation.
  absl::Status Open(const std::string& endpoint, bool inproc, bool v6);
  ZmqSent Send(const Prefix& prefix, const Message& message, ZmqExports::Ticket* ticket);
  // Closes the socket; what was sent lingers. No event follows.
  void Shut();
  const std::string& address() const { return address_; }
  bool taken() const { return taken_; }  // by the other end, which may not have answered

 private:
  bool PollMonitor();
  bool PollData();
  bool TryOpen();
  bool Writable() const;

  ZmqShared* shared_;
  const ConnId conn_;
  const std::string address_;
  ZmqSocket socket_;
  ZmqMonitor monitor_;
  std::unique_ptr<ZmqSocketSource> monitor_source_, data_source_;
  bool inproc_ = false, over_tcp_ = false;
  bool taken_ = false;
  bool handshaken_ = false;
  bool opened_ = false;
  bool lost_ = false;  // reported when everything received before has been delivered
  bool shut_ = false;
  std::string why_lost_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_DIALLED_H_
