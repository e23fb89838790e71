// Blocks for the tests of differences.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_TESTING_H_
#define LEEWAY_COMPRESS_DIFFERENCES_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "compress/differences/difference.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kWidths[] = {1, 2, 4, 8};

inline Bytes RandomBytes(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(runtime::RandomAt(seed, 1, i));
  }
  return bytes;
}

// Adds `step` to an element, modulo 2^bits.
inline void Step(Bytes* block, std::size_t width, std::size_t i, std::uint64_t step) {
  std::uint64_t element = 0;
  std::memcpy(&element, block->data() + i * width, width);
  element += step;
  std::memcpy(block->data() + i * width, &element, width);
}

// Steps some elements, one of `every`; one of eight of them by any number, the others by ±1.
inline Bytes Stepped(Bytes block, std::size_t width, std::uint64_t every, std::uint64_t seed) {
  for (std::size_t i = 0; i < block.size() / width; ++i) {
    const std::uint64_t random = runtime::RandomAt(seed, 2, i);
    if (random % every != 0) continue;
    const std::uint64_t sign = random >> 32 & 1;
    Step(&block, width, i, (random >> 33) % 8 == 0 ? random >> 36 : sign == 0 ? 1 : ~0ull);
  }
  return block;
}

inline Bytes DifferenceOf(const Bytes& before, const Bytes& after, std::size_t width) {
  Bytes message;
  EXPECT_TRUE(EncodeDifference(before, after, width, &message)) << before.size() << " bytes";
  return message;
}

// Expects that the difference makes `after` of `before`, and returns its bytes.
inline std::size_t ExpectRoundTrip(const Bytes& before, const Bytes& after, std::size_t width) {
  const Bytes message = DifferenceOf(before, after, width);
  EXPECT_EQ(CheckDifference(message, width, before.size() / width), absl::OkStatus());
  Bytes values = before;
  EXPECT_EQ(ApplyDifference(message, width, values), absl::OkStatus());
  EXPECT_TRUE(values == after) << width << " bytes an element, " << before.size() << " bytes";
  return message.size();
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_TESTING_H_
