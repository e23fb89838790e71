// ShmTransport is the transport over memory that is shared with other processes of this machine and
// user.
#ifndef LEEWAY_VAN_SHM_SHM_TRANSPORT_H_
#define LEEWAY_VAN_SHM_SHM_TRANSPORT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "van/shm/shm_conn.h"
#include "van/transport.h"

namespace leeway::van {

// Addresses are "shm://NAME". Names are visible within one network namespace.
class ShmTransport final : public Transport, private runtime::Source {
 public:
  ShmTransport(runtime::Loop* loop, const Limits& limits, const ShmSizes& sizes);
  ~ShmTransport() override;

  void Start(TransportEvents* events) override;
  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<ConnId> Dial(absl::string_view address) override;
  void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) override;
  void Close(ConnId conn) override;
  std::string AddressOf(ConnId conn) const override;
  bool taken(ConnId conn) const override { return Find(conn) != nullptr; }
  bool same_host(ConnId /*conn*/) const override { return true; }
  bool own_user(ConnId /*conn*/) const override { return true; }  // others are refused
  std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId conn) const override;
  bool gains_from_envelopes(ConnId /*conn*/) const override { return false; }
  bool lossy() const override { return false; }

  // Returns a connection that fails with `why`, later.
  ConnId DialInVain(absl::Status why);
  // As Dial, but returns the error at once if there is no listener.
  absl::StatusOr<ConnId> TryDial(const std::string& name);
  static absl::StatusOr<std::string> NameIn(absl::string_view address);

 private:
  struct Listener {
    std::string address;
    UniqueFd fd;
  };

  int fd() const override { return shared_.epoll.get(); }  // all sockets are registered with it
  bool Poll() override;
  std::shared_ptr<runtime::BusyPollSource> busy_poll() override { return shared_.busy_poll; }
  bool PollSockets();
  bool PollConns();
  void RemoveFinished();
  void AcceptFrom(std::size_t listener);
  void PauseAccepting(std::size_t listener);
  bool Watch(int fd, std::uint64_t tag);
  ShmConn* Find(ConnId conn) const;
  ShmConn* Add(bool dialled, std::shared_ptr<ShmSocket> socket, std::string address);
  bool FlushClosed();
  void FlushBriefly();
  void HearOfFreedMemory();

  ShmShared shared_;
  std::vector<Listener> listeners_;
  std::vector<std::unique_ptr<ShmConn>> conns_;  // finished ones are removed between polls
  absl::flat_hash_map<ConnId, ShmConn*> by_id_;
  std::vector<std::pair<ConnId, absl::Status>> failed_dials_;
  ConnId next_conn_ = 1;
  std::uint64_t freed_listener_ = 0;
  int polling_ = 0;
  unsigned polls_ = 0;
};

// The van over shared memory alone. The loops of its vans must be runtime::RealLoop. `arena_bytes`:
// how many bytes each side of a connection can have under way in shared memory; a larger frame, or
// further ones, are sent in pieces.
std::unique_ptr<Factory> NewShmFactory(std::uint64_t arena_bytes = 64 << 20);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_TRANSPORT_H_
