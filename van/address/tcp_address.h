// Addresses of tcp://HOST:PORT: which make sense, what to bind or connect for one, and what others
// are told to connect to. For every transport that goes over TCP.
#ifndef LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
#define LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::van {

// What is said of one that was connected to and went away before it had said anything sensible.
inline constexpr char kTookAndClosed[] =
    "it took the connection and closed it (do both ends have the same LEEWAY_VAN?)";

struct TcpAddress {
  std::string host;  // empty: all. Without the brackets of an IPv6 address
  std::uint16_t port = 0;
};

// INVALID_ARGUMENT says what is wrong with it.
absl::StatusOr<TcpAddress> ParseTcpAddress(absl::string_view address);
// INVALID_ARGUMENT for `address`, in which `why`; `expected` is one that would make sense.
absl::Status SenselessAddress(absl::string_view address, absl::string_view why,
                              absl::string_view expected);
// Whether one can connect to it: it has a host and a port.
absl::Status CheckDialable(absl::string_view address, absl::string_view host, std::uint16_t port);

// An address that Listen can bind for `host`, which may be empty for all, at any port.
std::string AnyTcpAddress(absl::string_view host);

// A host as numbers.
struct ResolvedHost {
  std::string number;      // "10.0.0.7", "[fd00::1]"
  std::string advertised;  // what others connect to: the same but for "0.0.0.0" and "[::]"
  bool v6 = false;
};
// The host may be empty, "*" or "::" (all), a network card, an address or a name. NOT_FOUND if it
// is none.
absl::StatusOr<ResolvedHost> ResolveToBind(const std::string& host);
// An address or a name.
absl::StatusOr<ResolvedHost> ResolveToConnect(const std::string& host);
// For the system, of a host in numbers, with a network card behind '%' where it has one.
absl::StatusOr<sockaddr_storage> SocketAddressOf(const ResolvedHost& host, std::uint16_t port);
// Whether it is an address or a name that others could connect to, as far as this machine knows.
absl::Status CheckAnnouncedHost(const std::string& host);

// Why `address` cannot be listened on, by what the system said (errno): ALREADY_EXISTS when it is
// in use, and so on, naming what to change. UNAVAILABLE for what has no better answer.
absl::Status CannotListen(absl::string_view address, int error);

// "tcp://10.0.0.7:40123"; "" if it is no address of TCP.
std::string TcpName(const sockaddr_storage& address);
// Of the other end of a TCP connection; "" if it is none.
std::string TcpPeerName(int fd);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_TCP_ADDRESS_H_
