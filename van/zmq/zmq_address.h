// ParseZmqAddress parses the addresses of the zmq van: those of TCP, and those within a machine or
// a process.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
#define LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "van/address/tcp_address.h"

namespace leeway::van {

enum class ZmqScheme { kTcp, kIpc, kInproc };

struct ZmqAddress {
  ZmqScheme scheme = ZmqScheme::kTcp;
  std::string host;  // tcp; empty: all; without the brackets of an IPv6 address
  std::uint16_t port = 0;
  std::string name;  // ipc: the path; inproc: the name
};

// INVALID_ARGUMENT: the message says what is wrong with the address.
absl::StatusOr<ZmqAddress> ParseZmqAddress(absl::string_view address);

// OK if no process listens on the path. Removes a socket file that a process left behind.
// ALREADY_EXISTS: the path is in use, or is not a socket.
absl::Status MakeRoomForIpc(const std::string& address, const std::string& path);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
