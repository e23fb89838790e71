// Addresses of the zmq van: those of TCP, and those within a machine or a process.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
#define LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "van/address/tcp_address.h"
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

// OK if nobody listens on the path. A socket file that a process left behind is removed.
absl::Status MakeRoomForIpc(const std::string& address, const std::string& path);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_ADDRESS_H_
