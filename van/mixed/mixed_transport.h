// Connections by the best way there is: shared memory between processes of one machine, another
// transport over TCP between others.
//
// An address is a tcp:// one. Who listens on it also takes connections over shared memory, under a
// name that follows from the address; who connects tries that name if the address is one of its own
// machine. The name is seen only within the network namespace that the address belongs to, so it
// stands for the same listener; and opening it is the proof that memory can be shared.
#ifndef LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_
#define LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "van/shm/shm_transport.h"
#include "van/transport.h"

namespace leeway::van {

class MixedTransport final : public Transport {
 public:
  // `shm_only`: connections that would have to go another way fail.
  MixedTransport(runtime::Loop* loop, std::unique_ptr<Transport> remote,
                 std::unique_ptr<ShmTransport> shm, bool shm_only);
  ~MixedTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  bool near(ConnId conn) const override;
  bool lossy() const override { return false; }

 private:
  // A connection's id is twice the id it has below, plus one for shared memory.
  enum Way : ConnId { kRemote = 0, kShm = 1 };
  static ConnId Outer(ConnId inner, Way way) { return 2 * inner + way; }
  Transport& Below(ConnId conn) const;

  // Hands on what one of the two tells.
  class Events final : public TransportEvents {
   public:
    Events(MixedTransport* transport, Way way) : transport_(transport), way_(way) {}
    void OnAccepted(ConnId conn) override;
    void OnOpened(ConnId conn) override;
    void OnArrival(ConnId conn, Arrival arrival) override;
    std::shared_ptr<const Landing> LandingFor(ConnId conn, std::span<const std::byte> head,
                                              std::uint64_t bytes) override;
    void OnClosed(ConnId conn, const absl::Status& why) override;
    void OnHandshakeFailed(const std::string& address) override;

   private:
    MixedTransport* const transport_;
    const Way way_;
  };

  absl::StatusOr<ConnId> DialShm(const std::string& host, std::uint16_t port);
  // A connection over shared memory came to nothing: the next one to that address goes otherwise.
  void Avoid(ConnId conn, const absl::Status& why);

  runtime::Loop* const loop_;
  const bool shm_only_;
  TransportEvents* events_ = nullptr;
  Events remote_events_{this, kRemote}, shm_events_{this, kShm};
  absl::flat_hash_map<ConnId, std::string> opening_;  // over shared memory: the address
  std::map<std::string, absl::Time> avoided_;         // until when; an entry a listener at most
  std::unique_ptr<Transport> remote_;
  std::unique_ptr<ShmTransport> shm_;
};

// What a listener on that host and port is called in shared memory. The host as numbers; all of
// them: "any".
std::string ShmNameFor(const std::string& host, std::uint16_t port);

// Whether the number of a host ("10.0.0.7", "[::1]") is this machine's, as seen from this network
// namespace.
bool IsOwnHost(const std::string& number);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_TRANSPORT_H_
