// SimTransport is the transport over a simulated network. Lives on its simulated loop.
#ifndef LEEWAY_VAN_SIM_SIM_TRANSPORT_H_
#define LEEWAY_VAN_SIM_SIM_TRANSPORT_H_

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "runtime/loop/lifetime.h"
#include "van/sim/sim_network.h"
#include "van/transport.h"

namespace leeway::van {

class SimTransport final : public Transport {
 public:
  SimTransport(std::shared_ptr<SimNetworkState> network, std::string host, runtime::Loop* loop);
  ~SimTransport() override;

  void Start(TransportEvents* events) override { events_ = events; }
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  std::uint64_t posted_bytes_min(ConnId /*conn*/) const override { return 0; }
  bool lossy() const override { return true; }

  // The host has died: connections break, nothing is flushed, and nothing is received any more.
  void Die();
  const std::string& host() const { return host_; }
  // Breaks a connection, and reports that to both ends.
  static void Break(SimNetworkState& network, ConnId conn);

 private:
  struct Packet;
  struct Landed;
  using Frames = decltype(Arrival::payload);

  // The arrivals at the other side of the network; `conn` is the end that they arrive at.
  static void ArriveDial(SimNetworkState& network, ConnId conn, const std::string& address);
  static void ArrivePacket(SimNetworkState& network, ConnId conn,
                           const std::shared_ptr<const Packet>& packet);
  void Deliver(ConnId conn, const std::shared_ptr<const Packet>& packet);
  void HandOver(ConnId conn, const Packet& packet, Frames payload);
  static void ArriveClose(SimNetworkState& network, ConnId conn, const std::string& why);
  // Tells the other end, behind what was sent before, that this one has closed.
  static void SendClose(SimNetworkState& network, ConnId other, const std::string& why);

  void DropEnd(ConnId conn);
  // Runs `what` on this transport's loop, if that end still exists then.
  void OnLoop(ConnId conn, std::function<void(SimTransport&)> what);
  void Owe(SendDone done, absl::Status status);

  std::shared_ptr<SimNetworkState> network_;
  std::uint64_t id_;
  std::string host_;
  runtime::Loop* loop_;
  TransportEvents* events_ = nullptr;
  std::set<std::string> listening_;
  std::set<ConnId> conns_;
  DoneList owed_;
  bool owed_posted_ = false;
  bool dead_ = false;
  runtime::Lifetime lifetime_;
};

std::unique_ptr<Transport> NewSimTransport(std::shared_ptr<SimNetworkState> network,
                                           std::string host, runtime::Loop* loop);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_TRANSPORT_H_
