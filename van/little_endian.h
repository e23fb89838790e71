// Put and Get write and read little-endian integers, and structs of these without padding, as they
// are on the wire, at any address (aligned or not).
#ifndef LEEWAY_VAN_LITTLE_ENDIAN_H_
#define LEEWAY_VAN_LITTLE_ENDIAN_H_

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace leeway::van {

static_assert(std::endian::native == std::endian::little, "numbers cross the wire as they lie");

template <class T>
void Put(const T& value, std::byte* out) {
  static_assert(std::has_unique_object_representations_v<T>);
  std::memcpy(out, &value, sizeof(T));
}

template <class T>
T Get(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_LITTLE_ENDIAN_H_
