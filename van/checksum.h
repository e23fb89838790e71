// Checksum computes the checksum of bytes that cross a network: CRC32C (polynomial 0x1EDC6F41, RFC
// 3720 appendix B.4). The library that computes it (ISA-L) chooses instructions at run time.
//
// A checksum on the wire is never 0: 0 means that the sender has computed none (Config::checksum).
#ifndef LEEWAY_VAN_CHECKSUM_H_
#define LEEWAY_VAN_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

namespace leeway::van {

inline constexpr std::uint32_t kNoChecksum = 0;

// The checksum of bytes that are added piece by piece. One thread.
class Checksum {
 public:
  void Add(const std::byte* bytes, std::size_t size);
  // The checksum of all bytes so far; never kNoChecksum.
  std::uint32_t value() const;

 private:
  std::uint32_t state_ = 0xffffffff;
};

// The checksum of these bytes; never kNoChecksum.
std::uint32_t ChecksumOf(const std::byte* bytes, std::size_t size);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_CHECKSUM_H_
