// Prefix is the 32 bytes in front of every message of the van, little-endian (docs/wire-format.md):
//
//   0   4  magic "LWY1"
//   4   1  kind
//   5   1  flags
//   6   2  frames of this message, this one included
//   8   8  sent: bytes the sender has sent under flow control so far, this message included
//   16  8  consumed: the largest `sent` of the other side whose message has been handed over
//   24  8  token of the posted receive that the payload frame may go to (posted_receive.h); 0: none
#ifndef LEEWAY_VAN_PREFIX_H_
#define LEEWAY_VAN_PREFIX_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace leeway::van {

inline constexpr std::size_t kPrefixBytes = 32;
inline constexpr std::uint32_t kPrefixMagic = 0x3159574c;

enum class Kind : std::uint8_t {
  kData = 1,      // a header and payload frames for the handler
  kSession = 2,   // Hello, Reject or Goodbye
  kCredit = 3,    // the prefix alone
  kEnvelope = 4,  // several messages for the handler (van/session/envelope.h)
};

enum PrefixFlags : std::uint8_t {
  kNoFlags = 0,
  kCreditWanted = 1,  // the receiver answers with a kCredit if no other message reports `consumed`
};

struct Prefix {
  Kind kind = Kind::kData;
  std::uint8_t flags = kNoFlags;
  std::uint16_t frames = 1;
  std::uint64_t sent = 0;
  std::uint64_t consumed = 0;
  std::uint64_t receive_token = 0;
};

// Writes kPrefixBytes at `out`.
void PutPrefix(const Prefix& prefix, std::byte* out);

// Reads a prefix. INVALID_ARGUMENT for bytes that PutPrefix would not have written.
absl::StatusOr<Prefix> GetPrefix(std::span<const std::byte> frame);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_PREFIX_H_
