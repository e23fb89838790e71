// TcpTransport is the transport over TCP, with Leeway's own framing (van/tcp/tcp_format.h). All its
// work is done on the loop's thread.
//
// All sockets are registered with one epoll descriptor, on which the loop sleeps. Small messages
// leave before the loop sleeps, so that the messages of one round travel together.
#ifndef LEEWAY_VAN_TCP_TCP_TRANSPORT_H_
#define LEEWAY_VAN_TCP_TCP_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "van/tcp/tcp_conn.h"
#include "van/transport.h"

namespace leeway::van {

// Addresses are "tcp://HOST:PORT".
class TcpTransport final : public Transport, private runtime::Source {
 public:
  TcpTransport(runtime::Loop* loop, const Limits& limits);
  ~TcpTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  bool taken(ConnId conn) const override;
  bool same_host(ConnId conn) const override;
  std::uint64_t posted_bytes_min(ConnId /*conn*/) const override {
    return TcpReceiver::kLargeBytes;
  }
  void Admit(ConnId conn) override;
  bool Hold(ConnId conn) override;
  std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId conn) const override;
  void Release(ConnId conn) override;
  bool lossy() const override { return false; }

  // The offers in greetings to connections that are accepted from now on (van/tcp/tcp_format.h).
  void SetOffers(std::uint32_t offers) { shared_.offers = offers; }
  // The offers of the other side of an open, dialled connection.
  std::uint32_t OffersOf(ConnId conn) const;

 private:
  struct Listener {
    std::string address;
    UniqueFd fd;
  };

  int fd() const override { return shared_.epoll.get(); }
  bool Poll() override;
  bool PollSockets();
  bool AcceptFrom(std::size_t listener);
  void PauseAccepting(std::size_t listener, absl::Duration pause);
  bool WatchListener(std::size_t listener);
  bool FlushAll();
  void RemoveFinished();
  TcpConn* Find(ConnId conn) const;
  // Null: the system cannot watch it.
  TcpConn* Add(bool dialled, UniqueFd fd, std::string address);
  bool AllDelivered() const;
  void FlushBriefly();

  TcpShared shared_;
  std::vector<Listener> listeners_;
  std::map<ConnId, std::unique_ptr<TcpConn>> conns_;  // finished ones are removed between polls
  std::vector<std::pair<ConnId, absl::Status>> failed_dials_;
  ConnId next_conn_ = 1;
  int polling_ = 0;
  int polls_to_spare_ = 0;
  bool flush_planned_ = false;
};

// The van over TCP alone. The loops of its vans must be runtime::RealLoop.
std::unique_ptr<Factory> NewTcpFactory();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_TRANSPORT_H_
