// Sockets of TCP, none of which ever blocks.
#ifndef LEEWAY_VAN_TCP_TCP_SOCKET_H_
#define LEEWAY_VAN_TCP_TCP_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/unique_fd.h"
#include "van/address/tcp_address.h"

namespace leeway::van {

using runtime::UniqueFd;

struct TcpListening {
  UniqueFd fd;
  std::string advertised;  // what others connect to
};
// Errors as CannotListen.
absl::StatusOr<TcpListening> ListenOnTcp(absl::string_view address);

struct TcpAccepted {
  enum class Outcome { kAccepted, kNobody, kOutOfDescriptors };
  Outcome outcome = Outcome::kNobody;
  UniqueFd fd;
  std::string peer;  // who it is, even if it has gone again
};
TcpAccepted AcceptTcp(int listener);

// Begins to connect; writable once it has come to something, see TcpConnected. UNAVAILABLE when it
// comes to nothing at once.
absl::StatusOr<UniqueFd> ConnectTcp(const ResolvedHost& host, std::uint16_t port);
// How that ended; sets the connection up.
absl::Status TcpConnected(int fd);

// Whether both ends of a connection that stands are on this machine.
bool IsWithinMachine(int fd);

// Bytes that have been sent and that the system has not put on the wire.
int TcpUnsentBytes(int fd);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_SOCKET_H_
