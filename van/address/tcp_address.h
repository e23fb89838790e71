// These functions parse tcp://HOST:PORT addresses and resolve them to bind, to connect and to
// announce. All transports over TCP use them. Those that resolve names may block.
#ifndef LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
#define LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::van {

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

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
