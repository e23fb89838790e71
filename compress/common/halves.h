// Widen and Narrow convert 16-bit floating-point values to float and back, for codecs that carry
// float32. Any thread.
#ifndef LEEWAY_COMPRESS_COMMON_HALVES_H_
#define LEEWAY_COMPRESS_COMMON_HALVES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "leeway/dtype.h"

namespace leeway::compress {

namespace halves {

template <class Half>
void Widen(const std::byte* from, std::span<float> to) {
  for (float& value : to) {
    Half half;
    std::memcpy(&half, from, sizeof(Half));
    value = static_cast<float>(half);
    from += sizeof(Half);
  }
}

template <class Half>
inline constexpr float kLargest = 0;
template <>
inline constexpr float kLargest<Float16> = 65504;
template <>
inline constexpr float kLargest<BFloat16> = 0x1.fep127f;

template <class Half>
void Narrow(std::span<const float> from, std::byte* to) {
  const float largest = kLargest<Half>;
  for (const float value : from) {
    const Half half(std::isfinite(value) ? std::clamp(value, -largest, largest) : value);
    std::memcpy(to, &half, sizeof(Half));
    to += sizeof(Half);
  }
}

}  // namespace halves

// The largest finite value of float16 or bfloat16.
inline float Largest(DType dtype) {
  return dtype == DType::kFloat16 ? halves::kLargest<Float16> : halves::kLargest<BFloat16>;
}

// `dtype` is float16 or bfloat16. Rounds to nearest, ties to even; a finite value beyond the range
// of the type becomes the largest finite one. Memory need not be aligned.
inline void Widen(DType dtype, const std::byte* from, std::span<float> to) {
  dtype == DType::kFloat16 ? halves::Widen<Float16>(from, to) : halves::Widen<BFloat16>(from, to);
}
inline void Narrow(DType dtype, std::span<const float> from, std::byte* to) {
  dtype == DType::kFloat16 ? halves::Narrow<Float16>(from, to) : halves::Narrow<BFloat16>(from, to);
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_HALVES_H_
