// These constants and FrameBytesMax limit the frames that a transport receives. A frame somewhat
// above a limit of the van still passes, so that the session layer can name the limit in its error.
#ifndef LEEWAY_VAN_FRAME_LIMITS_H_
#define LEEWAY_VAN_FRAME_LIMITS_H_

#include <algorithm>
#include <cstdint>

#include "proto/messages/limits.h"
#include "van/prefix.h"
#include "van/van.h"

namespace leeway::van {

// The largest first frame of a message: prefix and header.
inline constexpr std::uint64_t kFirstBytesMax = 2 * proto::kHeaderBytesMax;

// The largest frame of a guest.
inline constexpr std::uint64_t kGuestFrameBytesMax = 64 << 10;

// The largest frame of an admitted peer, in bytes.
inline std::uint64_t FrameBytesMax(const Limits& limits) {
  return std::max<std::uint64_t>(limits.message_bytes_max, proto::kHeaderBytesMax) + kPrefixBytes;
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_FRAME_LIMITS_H_
