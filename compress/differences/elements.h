// Elements of 1, 2, 4 or 8 bytes at any alignment, as unsigned integers.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_ELEMENTS_H_
#define LEEWAY_COMPRESS_DIFFERENCES_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace leeway::compress {

// Calls use(an unsigned integer of that many bytes).
template <class Use>
decltype(auto) WithElement(std::size_t bytes, Use use) {
  if (bytes == 1) return use(std::uint8_t{});
  if (bytes == 2) return use(std::uint16_t{});
  if (bytes == 4) return use(std::uint32_t{});
  return use(std::uint64_t{});
}

template <class Unsigned>
Unsigned ElementAt(const std::byte* values, std::uint64_t i) {
  Unsigned element;
  std::memcpy(&element, values + i * sizeof(element), sizeof(element));
  return element;
}
template <class Unsigned>
void SetElement(std::byte* values, std::uint64_t i, Unsigned element) {
  std::memcpy(values + i * sizeof(element), &element, sizeof(element));
}

// A difference as an integer that is small whatever its sign: 0, −1, 1, −2, … become 0, 1, 2, 3, …
template <class Unsigned>
Unsigned ZigZag(Unsigned difference) {
  const auto sign = static_cast<std::make_signed_t<Unsigned>>(difference) < 0 ? ~0ull : 0;
  return static_cast<Unsigned>(static_cast<std::uint64_t>(difference) << 1 ^ sign);
}
template <class Unsigned>
Unsigned UnZigZag(Unsigned code) {
  return static_cast<Unsigned>(code >> 1 ^ (~(code & 1u) + 1u));
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_ELEMENTS_H_
