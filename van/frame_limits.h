// How long frames may be before a transport takes none of them in. Those somewhat too long are for
// the layer above, which says why.
#ifndef LEEWAY_VAN_FRAME_LIMITS_H_
#define LEEWAY_VAN_FRAME_LIMITS_H_

#include <algorithm>
#include <cstdint>

#include "proto/messages/limits.h"
#include "van/prefix.h"
#include "van/van.h"

namespace leeway::van {

// Prefix and header.
inline constexpr std::uint64_t kFirstBytesMax = 2 * proto::kHeaderBytesMax;

// Of what those who have not joined say.
inline constexpr std::uint64_t kGuestFrameBytesMax = 64 << 10;

inline std::uint64_t FrameBytesMax(const Limits& limits) {
  return std::max<std::uint64_t>(limits.message_bytes_max, proto::kHeaderBytesMax) + kPrefixBytes;
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_FRAME_LIMITS_H_
