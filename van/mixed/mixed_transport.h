// MixedTransport is the transport that chooses the fastest way for each connection: shared memory
// between processes of one machine, rdma between machines that both have a device, TCP otherwise.
//
// Addresses are tcp:// ones. A listener also accepts connections over shared memory, under a name
// that follows from the address; a dialler tries that name if the address is one of its own
// machine. The name is visible only within the network namespace that the address belongs to, so it
// stands for the same listener; and opening it proves that memory can be shared.
//
// A listener with a device also listens over rdma on the same host and port, and offers that in its
// TCP greeting. A dialler with a device that gets the offer connects over rdma, keeps the TCP
// connection until the rdma connection is established, and then closes it. If the rdma connection
// fails, the TCP connection is used, the log gives the reason, and rdma to that address is avoided
// for a while.
#ifndef LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_
#define LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "van/shm/shm_transport.h"
#include "van/tcp/tcp_transport.h"
#include "van/transport.h"

namespace leeway::van {

class MixedTransport final : public Transport {
 public:
  // kShm, kRdma: connections that would have to use another way fail.
  enum class Only { kAny, kShm, kRdma };
  // `shm` may be null unless `only` is kShm; `rdma` may be null.
  MixedTransport(runtime::Loop* loop, std::unique_ptr<TcpTransport> tcp,
                 std::unique_ptr<ShmTransport> shm, std::unique_ptr<Transport> rdma, Only only);
  ~MixedTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  bool taken(ConnId conn) const override;
  bool same_host(ConnId conn) const override;
  bool gains_from_envelopes(ConnId conn) const override;
  std::uint64_t posted_bytes_min(ConnId conn) const override;
  void PostReceive(ConnId conn, std::uint64_t token, std::span<std::byte> into) override;
  void EndReceive(ConnId conn, std::uint64_t token) override;
  void Admit(ConnId conn) override;
  bool own_user(ConnId conn) const override;
  bool Hold(ConnId conn) override;
  std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId conn) const override;
  void Release(ConnId conn) override;
  bool lossy() const override { return false; }

 private:
  // A connection's id is four times the id in its transport, plus its way. A connection over rdma
  // that has replaced one over TCP keeps the id of the TCP connection.
  enum Way : ConnId { kTcp = 0, kShm = 1, kRdma = 2 };
  static ConnId Outer(ConnId inner, Way way) { return 4 * inner + way; }
  struct Route {
    Transport* transport;
    ConnId conn;
  };
  Route Below(ConnId conn) const;
  Transport* Of(ConnId way) const;

  // Passes on the events of one transport.
  class Events final : public TransportEvents {
   public:
    Events(MixedTransport* transport, Way way) : transport_(transport), way_(way) {}
    void OnAccepted(ConnId conn) override;
    bool MayAccept(absl::Duration* pause) override;
    void OnOpened(ConnId conn) override;
    void OnArrival(ConnId conn, Arrival arrival) override;
    std::shared_ptr<const PostedReceive> PostedFor(ConnId conn, std::span<const std::byte> head,
                                                   std::uint64_t bytes) override;
    void OnClosed(ConnId conn, const absl::Status& why) override;
    void OnHandshakeFailed(const std::string& address, const absl::Status& why) override;

   private:
    MixedTransport* const transport_;
    const Way way_;
  };

  // A TCP connection whose other end offers rdma, while that is tried and afterwards.
  struct Upgrade {
    ConnId rdma = 0;  // 0: not dialled yet
    bool stands = false;
    std::string address;
  };
  using Avoided = std::map<std::string, absl::Time>;  // until when; at most one entry per listener

  absl::StatusOr<ConnId> DialShm(const std::string& host, std::uint16_t port);
  absl::StatusOr<ConnId> DialTcp(absl::string_view address);
  void ListenOverRdma(const std::string& advertised, const std::string& host);
  // A connection over shared memory failed: the next one to that address uses another way.
  void AvoidShm(ConnId conn, const absl::Status& why);
  bool IsAvoided(const Avoided& avoided, absl::string_view address) const;
  // Handle events of the transports below. False: the owner is not to be told.
  bool BeginUpgrade(ConnId tcp);
  bool OnOpenedOver(Way way, ConnId conn, ConnId* outer);
  bool OnClosedOver(Way way, ConnId conn, const absl::Status& why, ConnId* outer);
  ConnId OuterOf(Way way, ConnId conn) const;
  void EndUpgrade(ConnId outer);

  runtime::Loop* const loop_;
  const Only only_;
  TransportEvents* events_ = nullptr;
  Events tcp_events_{this, kTcp}, shm_events_{this, kShm}, rdma_events_{this, kRdma};
  absl::flat_hash_map<ConnId, std::string> opening_;  // address, of connections over shared memory
  std::map<ConnId, Upgrade> upgrades_;                // by the id of the connection
  // Id of the connection, by that of the rdma connection.
  absl::flat_hash_map<ConnId, ConnId> upgraded_;
  Avoided shm_avoided_, rdma_avoided_;
  std::unique_ptr<TcpTransport> tcp_;
  std::unique_ptr<ShmTransport> shm_;
  std::unique_ptr<Transport> rdma_;
};

// The name in shared memory of a listener on that host and port. `host` is numeric; all addresses:
// "any".
std::string ShmNameFor(const std::string& host, std::uint16_t port);

// True if the numeric address ("10.0.0.7", "[::1]") belongs to this machine, as seen from this
// network namespace.
bool IsOwnHost(const std::string& number);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_
