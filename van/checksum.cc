#include "van/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace leeway::van {
namespace {

constexpr std::size_t kBytesAtOnce = 1 << 30;  // the library's sizes are int
// Replaces a CRC that happens to be 0.
constexpr std::uint32_t kZeroChecksum = 0xffffffff;

}  // namespace

void Checksum::Add(const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    const std::size_t part = std::min(size, kBytesAtOnce);
    // The library declares its argument without const, but only reads it.
    auto* const at = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
    state_ = crc32_iscsi(at, static_cast<int>(part), state_);
    bytes += part;
    size -= part;
  }
}

std::uint32_t Checksum::value() const {
  const std::uint32_t crc = ~state_;
  return crc == kNoChecksum ? kZeroChecksum : crc;
}

std::uint32_t ChecksumOf(const std::byte* bytes, std::size_t size) {
  Checksum checksum;
  checksum.Add(bytes, size);
  return checksum.value();
}

}  // namespace leeway::van
