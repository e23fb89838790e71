#include "compress/differences/places.h"

#include <limits>

#include "compress/common/byte_io.h"

namespace leeway::compress {
namespace {

template <class Unsigned>
std::size_t Write(std::uint8_t first, std::uint64_t gap, std::byte* to) {
  const auto number = static_cast<Unsigned>(gap);
  *to = static_cast<std::byte>(first);
  std::memcpy(to + 1, &number, sizeof(number));
  return 1 + sizeof(number);
}

template <class Unsigned>
bool Take(std::span<const std::byte>* bytes, std::uint64_t* gap) {
  Unsigned number = 0;
  ByteReader reader(*bytes);
  if (!reader.Take(&number)) return false;
  *bytes = bytes->subspan(sizeof(number));
  *gap = number;
  return true;
}

}  // namespace

std::size_t WriteLongGap(std::uint64_t gap, std::byte* to) {
  if (gap <= std::numeric_limits<std::uint16_t>::max()) {
    return Write<std::uint16_t>(kTwoByteGap, gap, to);
  }
  if (gap <= std::numeric_limits<std::uint32_t>::max()) {
    return Write<std::uint32_t>(kFourByteGap, gap, to);
  }
  return Write<std::uint64_t>(kEightByteGap, gap, to);
}

bool TakeLongGap(std::uint8_t first, std::span<const std::byte>* bytes, std::uint64_t* gap) {
  if (first == kTwoByteGap) return Take<std::uint16_t>(bytes, gap);
  if (first == kFourByteGap) return Take<std::uint32_t>(bytes, gap);
  return Take<std::uint64_t>(bytes, gap);
}

}  // namespace leeway::compress
