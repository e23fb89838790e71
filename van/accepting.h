// These constants govern how transports over sockets accept and close connections.
#ifndef LEEWAY_VAN_ACCEPTING_H_
#define LEEWAY_VAN_ACCEPTING_H_

#include <cstdint>

#include "absl/time/time.h"

namespace leeway::van {

// The longest time for which Close tries to send the remaining bytes.
inline constexpr absl::Duration kSocketLinger = absl::Seconds(1);
// The pause in accepting after accept(2) has failed.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
inline constexpr int kAcceptsPerTurn = 16;
// The length of the queue of connections that wait to be accepted (listen(2)).
inline constexpr int kAcceptBacklog = 1024;
// The bit in epoll's user data that marks a listener; the other bits are its index.
inline constexpr std::uint64_t kListenerTag = 1ull << 63;

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ACCEPTING_H_
