// What a peer speaks that does not speak ours, told by the first bytes it has sent: for the log of
// a node that a web browser, a health check or another release's tool has connected to.
#ifndef LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_
#define LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"

namespace leeway::van {

// FAILED_PRECONDITION: names HTTP, TLS and ZeroMQ where `first` begins like them, and what to do.
// `first` is what has come so far, one byte at least.
absl::Status ForeignProtocol(std::span<const std::byte> first);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_
