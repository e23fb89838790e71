// ZmqTransport is the transport over ZeroMQ.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_TRANSPORT_H_
#define LEEWAY_VAN_ZMQ_ZMQ_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "van/zmq/zmq_dialled.h"
#include "van/zmq/zmq_link.h"
#include "van/zmq/zmq_listener.h"

namespace leeway::van {

class ZmqTransport final : public Transport {
 public:
  ZmqTransport(std::shared_ptr<ZmqContext> context, runtime::Loop* loop, const Limits& limits);
  ~ZmqTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  bool taken(ConnId conn) const override;
  bool lossy() const override { return false; }

 private:
  bool PollOwed();
  ZmqListener* ListenerOf(ConnId conn) const;

  ZmqShared shared_;
  std::unique_ptr<ZmqSource> owed_source_;
  std::map<ConnId, std::unique_ptr<ZmqDialled>> dialled_;
  std::vector<std::unique_ptr<ZmqListener>> listeners_;
  // Destroyed later, because they may still be on the stack.
  std::vector<std::unique_ptr<ZmqDialled>> shut_;
  std::vector<std::pair<ConnId, absl::Status>> failed_dials_;
};

// The van over ZeroMQ alone: tcp://, ipc:// and inproc://. Its vans share one ZeroMQ context;
// inproc names are visible only within it. `scheme` is only that of AnyAddress: every van
// understands all three. The loops of the vans must be runtime::RealLoop. `io_threads`: ZeroMQ's
// own, at least 1.
std::unique_ptr<Factory> NewZmqFactory(ZmqScheme scheme = ZmqScheme::kTcp, int io_threads = 1);
// The same on a shared context.
std::unique_ptr<Factory> NewZmqFactoryOn(std::shared_ptr<ZmqContext> context, ZmqScheme scheme);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_TRANSPORT_H_
