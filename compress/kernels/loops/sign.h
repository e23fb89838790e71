// The loops over sign bits. Where an instruction makes a number of a vector's sign bits, they use
// it.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_SIGN_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_SIGN_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/loops/reduce.h"
#include "compress/kernels/sign_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace leeway::compress {
namespace {

constexpr std::uint32_t kFloatSign = 0x80000000u;
constexpr std::size_t kSignsAtOnce = 32;

inline std::uint32_t FloatSignOf(float value) {
  return __builtin_bit_cast(std::uint32_t, value) & kFloatSign;
}

inline float WithFloatSign(float magnitude, std::uint32_t sign) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, magnitude) ^ sign);
}

inline std::uint32_t SignAt(const std::uint8_t* bits, std::size_t i) {
  return (static_cast<std::uint32_t>(bits[i / 8]) >> (i % 8)) << 31;
}

// Of at most 8 elements.
inline std::uint8_t TakeSignByte(const float* values, std::size_t size) {
  std::uint32_t byte = 0;
  for (std::size_t j = 0; j < size; ++j) byte |= FloatSignOf(values[j]) >> (31 - j);
  return static_cast<std::uint8_t>(byte);
}

inline void TakeSigns(const float* __restrict values, std::size_t size,
                      std::uint8_t* __restrict bits) {
  std::size_t i = 0;
#if defined(__AVX512DQ__)
  for (; i + 64 <= size; i += 64) {
    std::uint64_t word = 0;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 64; j += 16) {
      const __m512i lanes = _mm512_castps_si512(_mm512_loadu_ps(values + i + j));
      word |= static_cast<std::uint64_t>(_mm512_movepi32_mask(lanes)) << j;
    }
    __builtin_memcpy(bits + i / 8, &word, sizeof(word));
  }
#endif
#if defined(__AVX2__)
  for (; i + kSignsAtOnce <= size; i += kSignsAtOnce) {
    std::uint32_t word = 0;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kSignsAtOnce; j += 8) {
      word |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_loadu_ps(values + i + j))) << j;
    }
    __builtin_memcpy(bits + i / 8, &word, sizeof(word));
  }
#endif
  for (; i + 8 <= size; i += 8) bits[i / 8] = TakeSignByte(values + i, 8);
  if (i < size) bits[i / 8] = TakeSignByte(values + i, size - i);
}

// to[i] = Of(to[i], ±scale).
template <float (*Of)(float, float)>
inline void WithSigns(const std::uint8_t* __restrict bits, std::size_t size, float scale,
                      float* __restrict to) {
  std::size_t i = 0;
  for (; i + kSignsAtOnce <= size; i += kSignsAtOnce) {
    std::uint32_t word;
    __builtin_memcpy(&word, bits + i / 8, sizeof(word));
    for (std::size_t j = 0; j < kSignsAtOnce; ++j) {
      const std::uint32_t sign = (word & (std::uint32_t{1} << j)) != 0 ? kFloatSign : 0;
      to[i + j] = Of(to[i + j], WithFloatSign(scale, sign));
    }
  }
  for (; i < size; ++i) to[i] = Of(to[i], WithFloatSign(scale, SignAt(bits, i)));
}

inline float SignsReplace(float, float by) { return by; }
inline float SignsAdd(float to, float value) { return to + value; }

inline void ShrinkBy(float* to, std::size_t size, float scale) {
  for (std::size_t i = 0; i < size; ++i) to[i] -= WithFloatSign(scale, FloatSignOf(to[i]));
}

inline float CarriedShrunk(float value, float kept, float scale, float factor) {
  return value + factor * (kept - WithFloatSign(scale, FloatSignOf(kept)));
}

inline float CarryShrunk(const float* __restrict values, const float* __restrict kept,
                         std::size_t size, float scale, float factor, float* __restrict to) {
  // Both arrays come from memory, which answers faster if more is requested ahead than the
  // processor requests by itself. Requests for lines beyond the end are harmless.
  constexpr std::size_t kStretch = 64, kAheadBytes = 2048, kLineBytes = 64;
  std::uint32_t largest = 0;
  std::size_t i = 0;
  for (; i + kStretch <= size; i += kStretch) {
    const auto values_ahead = reinterpret_cast<std::uintptr_t>(values + i) + kAheadBytes;
    const auto kept_ahead = reinterpret_cast<std::uintptr_t>(kept + i) + kAheadBytes;
#pragma GCC unroll 4
    for (std::size_t at = 0; at < kStretch * sizeof(float); at += kLineBytes) {
      __builtin_prefetch(reinterpret_cast<const void*>(values_ahead + at));
      __builtin_prefetch(reinterpret_cast<const void*>(kept_ahead + at));
    }
    for (std::size_t j = i; j < i + kStretch; ++j) {
      largest = LargerMagnitude(largest, values[j]);
      to[j] = CarriedShrunk(values[j], kept[j], scale, factor);
    }
  }
  for (; i < size; ++i) {
    largest = LargerMagnitude(largest, values[i]);
    to[i] = CarriedShrunk(values[i], kept[i], scale, factor);
  }
  return __builtin_bit_cast(float, largest);
}

constexpr SignKernels kSignLoops = {.take = TakeSigns,
                                    .spread = WithSigns<SignsReplace>,
                                    .add = WithSigns<SignsAdd>,
                                    .shrink = ShrinkBy,
                                    .carry = CarryShrunk};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_SIGN_H_
