// These functions make and set up TCP sockets, none of which ever blocks.
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
  std::string advertised;  // the address that others connect to
};
// Listens on a tcp:// address. Errors as CannotListen.
absl::StatusOr<TcpListening> ListenOnTcp(absl::string_view address);

struct TcpAccepted {
  enum class Outcome { kAccepted, kNobody, kOutOfDescriptors };
  Outcome outcome = Outcome::kNobody;
  UniqueFd fd;
  std::string peer;  // its address, even if it has closed the connection
};
// Accepts one connection, if one waits.
TcpAccepted AcceptTcp(int listener);

// Starts to connect. The socket becomes writable when the attempt has ended; TcpConnected then
// tells how. UNAVAILABLE: it failed at once.
absl::StatusOr<UniqueFd> ConnectTcp(const ResolvedHost& host, std::uint16_t port);
// How the attempt ended. Sets up the connection if it succeeded.
absl::Status TcpConnected(int fd);

// True if both ends of an established connection are on this machine.
bool IsWithinMachine(int fd);

// The number of bytes that were sent and that the system has not put on the wire yet.
int TcpUnsentBytes(int fd);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_SOCKET_H_
