// Put and Get write and read little-endian integers, as they are on the wire, at any address
// (aligned or not).
#ifndef LEEWAY_VAN_LITTLE_ENDIAN_H_
#define LEEWAY_VAN_LITTLE_ENDIAN_H_

#include <cstddef>
#include <cstdint>

namespace leeway::van {

template <class T>
void Put(T value, std::byte* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
  }
}

template <class T>
T Get(const std::byte* in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(in[i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_LITTLE_ENDIAN_H_
