// Addresses of the zmq van: which make sense, what to bind or connect for one, and what others are
// told to connect to.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
#define LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "van/zmq/zmq_van.h"

namespace leeway::van {

struct ZmqAddress {
  ZmqScheme scheme = ZmqScheme::kTcp;
  std::string host;  // tcp; empty: all. Without the brackets of an IPv6 address
  std::uint16_t port = 0;
  std::string name;  // ipc: the path; inproc: the name
};

// INVALID_ARGUMENT says what is wrong with it.
absl::StatusOr<ZmqAddress> ParseZmqAddress(absl::string_view address);

// A host as numbers, ready for ZeroMQ.
struct ResolvedHost {
  std::string number;      // "10.0.0.7", "[fd00::1]"
  std::string advertised;  // what others connect to: the same but for "0.0.0.0" and "[::]"
  bool v6 = false;
};
// The host may be empty, "*" or "::" (all), a network card, an address or a name. NOT_FOUND if it is
// none.
absl::StatusOr<ResolvedHost> ResolveToBind(const std::string& host);
// An address or a name.
absl::StatusOr<ResolvedHost> ResolveToConnect(const std::string& host);
// Whether it is an address or a name that others could connect to, as far as this machine knows.
absl::Status CheckAnnouncedHost(const std::string& host);

// "tcp://10.0.0.7:40123" of the other end of a TCP connection; "" if it is none.
std::string TcpPeerName(int fd);

// OK if nobody listens on the path. A socket file that a process left behind is removed.
absl::Status MakeRoomForIpc(const std::string& address, const std::string& path);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
