// These functions parse tcp://HOST:PORT addresses, resolve them to bind, to connect and to
// announce, and find the route to a host. All transports over TCP use them. Those that resolve
// names may block.
#ifndef LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
#define LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace leeway::van {

// WithReason attaches a short reason to a status that has a long message, for log lines that repeat
// the reason while a process waits.
inline constexpr char kReasonPayload[] = "leeway/reason";

inline absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!reason.empty()) status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

// The short reason, or the message if there is none.
inline std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason.has_value() ? std::string(*reason) : std::string(status.message());
}

// The reason of a dial that was taken, but to which nothing was said.
inline constexpr absl::string_view kNoAnswer = "it takes connections but does not answer";

// The error for a peer that closed the connection before it sent a valid message.
inline constexpr char kTookAndClosed[] =
    "it took the connection and closed it (do both ends have the same LEEWAY_VAN?)";

struct TcpAddress {
  std::string host;  // empty: all addresses; without the brackets of an IPv6 address
  std::uint16_t port = 0;
};

// Parses an address. INVALID_ARGUMENT: the message says what is wrong with it.
absl::StatusOr<TcpAddress> ParseTcpAddress(absl::string_view address);
// An INVALID_ARGUMENT status for `address`: `why` is the fault, `expected` the form of a valid one.
absl::Status SenselessAddress(absl::string_view address, absl::string_view why,
                              absl::string_view expected);
// OK if a process can connect to it: it has a host and a port. Else INVALID_ARGUMENT.
absl::Status CheckDialable(absl::string_view address, absl::string_view host, std::uint16_t port);

// An address that Listen can bind, at any port, for `host` (empty: all addresses).
std::string AnyTcpAddress(absl::string_view host);

// A host as a numeric address.
struct ResolvedHost {
  std::string number;      // "10.0.0.7", "[fd00::1]"
  std::string advertised;  // the address for others: the same except for "0.0.0.0" and "[::]"
  bool v6 = false;
};
// `host` is empty, "*" or "::" (all), a network card, an address or a name. NOT_FOUND otherwise.
absl::StatusOr<ResolvedHost> ResolveToBind(const std::string& host);
// `host` is an address or a name. NOT_FOUND: the name cannot be resolved.
absl::StatusOr<ResolvedHost> ResolveToConnect(const std::string& host);
// The system's form of a numeric host, which may name a network card after '%'.
absl::StatusOr<sockaddr_storage> SocketAddressOf(const ResolvedHost& host, std::uint16_t port);
// OK if it is an address, or a name that this machine can resolve, so that others can probably
// connect to it.
absl::Status CheckAnnouncedHost(const std::string& host);

// The status for a failed bind or listen with errno `error`: ALREADY_EXISTS if the address is in
// use, and so on, naming what to change; UNAVAILABLE for other errors.
absl::Status CannotListen(absl::string_view address, int error);

// "tcp://10.0.0.7:40123"; "" if it is not an address of TCP.
std::string TcpName(const sockaddr_storage& address);
// The name of a TCP connection's other end; "" if there is none.
std::string TcpPeerName(int fd);

// The address of this machine from which packets to another host leave. At that address the other
// host, and as a rule its neighbours, reach this machine, whatever the number of network cards.
struct Route {
  std::string source;  // "10.0.0.7", "fd00::7"; without brackets
  std::string to;      // the numeric address of the host
  std::string card;    // "eth1"; empty: unknown
  bool v6 = false;
};

// `host` is a name or an address, without brackets. Sends nothing, but blocks while a name is
// resolved. NOT_FOUND: the name cannot be resolved (yet); UNAVAILABLE: no route. Both have a reason
// (ReasonOf).
absl::StatusOr<Route> RouteTo(const std::string& host, std::uint16_t port);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
