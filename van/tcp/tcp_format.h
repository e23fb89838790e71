// These constants define the bytes on a TCP connection, little-endian (docs/wire-format.md).
//
// Each side begins with a greeting:
//   0   8  magic "LWYtcp", 13, 10
//   8   4  version of this framing
//   12  4  what else this side offers: 1, the same address over rdma; only of a listener's
//   16  4  checksum of the 16 bytes before
// and then sends messages, one after the other:
//   0   4  bytes of the first frame (prefix and header)
//   4   4  number of payload frames
//   8   4  checksum of the 8 bytes before; kNoChecksum: this message has none, the other checksums
//          are not verified
//   12     the first frame
//       4  checksum of the first frame
//   then, for each payload frame,
//       8  its bytes
//       4  checksum of the 8 bytes before
//          the frame
//       4  checksum of the frame
// A length has a checksum of its own, because the receiver acts on it before the frame has come. A
// frame's checksum follows the frame, so that both sides compute it piece by piece while the frame
// is sent and received (van/checksum.h).
#ifndef LEEWAY_VAN_TCP_TCP_FORMAT_H_
#define LEEWAY_VAN_TCP_TCP_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "van/checksum.h"
#include "van/little_endian.h"

namespace leeway::van {

inline constexpr std::size_t kTcpGreetingBytes = 20;
inline constexpr std::size_t kTcpVersionAt = 8;
inline constexpr char kTcpMagic[] = "LWYtcp\r\n";
inline constexpr std::size_t kTcpOffersAt = 12;
inline constexpr std::size_t kTcpGreetingChecksumAt = 16;
inline constexpr std::uint32_t kTcpVersion = 3;
inline constexpr std::uint32_t kTcpOffersRdma = 1;

inline std::array<std::byte, kTcpGreetingBytes> TcpGreeting(std::uint32_t offers = 0) {
  std::array<std::byte, kTcpGreetingBytes> greeting{};
  std::memcpy(greeting.data(), kTcpMagic, kTcpVersionAt);
  Put(kTcpVersion, greeting.data() + kTcpVersionAt);
  Put(offers, greeting.data() + kTcpOffersAt);
  Put(ChecksumOf(greeting.data(), kTcpGreetingChecksumAt),
      greeting.data() + kTcpGreetingChecksumAt);
  return greeting;
}

inline constexpr std::size_t kTcpChecksumBytes = 4;
inline constexpr std::size_t kTcpRecordBytes = 8 + kTcpChecksumBytes;  // before a message
inline constexpr std::size_t kTcpLengthBytes = 8 + kTcpChecksumBytes;  // before a payload frame
// The largest number that a prefix can announce.
inline constexpr std::uint32_t kTcpPayloadFramesMax = 65535;

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_FORMAT_H_
