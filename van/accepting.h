// How transports over sockets accept and end connections.
#ifndef LEEWAY_VAN_ACCEPTING_H_
#define LEEWAY_VAN_ACCEPTING_H_

#include <cstdint>

#include "absl/time/time.h"

namespace leeway::van {

// What was sent before a close may take this long to leave.
inline constexpr absl::Duration kSocketLinger = absl::Seconds(1);
// Of connections, after one could not be accepted.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
inline constexpr int kAcceptsPerTurn = 16;
// Connections that wait to be accepted.
inline constexpr int kAcceptBacklog = 1024;
// In what epoll says of a listener; the rest is its index.
inline constexpr std::uint64_t kListenerTag = 1ull << 63;

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ACCEPTING_H_
