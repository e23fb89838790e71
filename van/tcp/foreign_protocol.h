// ForeignProtocol recognises by its first bytes what protocol a peer speaks that does not speak
// Leeway's, such as a web browser, a health check or a tool of another release, so that the log can
// name it.
#ifndef LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_
#define LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"

namespace leeway::van {

// Returns a FAILED_PRECONDITION status. It names HTTP, TLS or ZeroMQ if `first` begins like them,
// and what to do. `first` has the bytes received so far, at least one.
absl::Status ForeignProtocol(std::span<const std::byte> first);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_FOREIGN_PROTOCOL_H_
