// The loops over 16-bit floating-point numbers, without branches, so that the compiler vectorises
// them; for binary16 by the instructions that convert eight at a time, where the level has them.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/halves_kernels.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace leeway::compress {
namespace {

// A number in a message, at any address.
using HalfBits [[gnu::aligned(1), gnu::may_alias]] = std::uint16_t;

constexpr std::uint32_t kHalfMagnitude = 0x7fffffffu;  // of a float: all but the sign
constexpr std::uint32_t kHalfInfinity = 0x7f800000u;

struct Fp16 {
  static constexpr std::uint32_t kLargest = 0x477fe000u;  // 65504, as a float

  static inline std::uint16_t Narrow(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t given = bits & kHalfMagnitude;
    const bool finite = given < kHalfInfinity;
    const std::uint32_t magnitude = finite && given > kLargest ? kLargest : given;
    // Adding half of the last kept bit, less one where that bit is even, rounds ties to even.
    const std::uint32_t normal =
        (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // Subnormals are multiples of 2^-24, and so are floats from 0.5 up to 1: let the addition
    // round.
    const std::uint32_t subnormal =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) -
        0x3f000000u;
    const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    std::uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude == kHalfInfinity ? 0x7c00u : half;
    half = magnitude > kHalfInfinity ? nan : half;
    return static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000u));
  }

  static inline float Widen(std::uint16_t half) {
    const std::uint32_t bits = half;
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    const std::uint32_t normal = magnitude + 0x38000000u;  // exponents differ by 112
    // With 1 added to its exponent, a subnormal exceeds 2^-14 by its own value.
    const std::uint32_t subnormal = __builtin_bit_cast(
        std::uint32_t, __builtin_bit_cast(float, magnitude + 0x38800000u) - 0x1p-14f);
    const std::uint32_t special =
        magnitude + 0x70000000u + (magnitude > 0x0f800000u ? 0x00400000u & ~magnitude : 0u);
    std::uint32_t wide = magnitude < 0x00800000u ? subnormal : normal;
    wide = magnitude >= 0x0f800000u ? special : wide;
    return __builtin_bit_cast(float, wide | ((bits & 0x8000u) << 16));
  }
};

struct Bf16 {
  static inline std::uint16_t Narrow(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t magnitude = bits & kHalfMagnitude;
    std::uint32_t half = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
    half = half > 0x7f7fu ? 0x7f7fu : half;
    half = magnitude == kHalfInfinity ? 0x7f80u : half;
    half = magnitude > kHalfInfinity ? (magnitude >> 16) | 0x40u : half;
    return static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000u));
  }

  static inline float Widen(std::uint16_t half) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    const std::uint32_t quiet = (bits & kHalfMagnitude) > kHalfInfinity ? 0x00400000u : 0u;
    return __builtin_bit_cast(float, bits | quiet);
  }
};

// The part of a value that rounding has dropped; 0 for NaN and infinity.
inline float HalfDropped(float value, float decoded) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const float dropped = value - decoded;
  return (bits & kHalfMagnitude) < kHalfInfinity ? dropped : 0.0f;
}

// Converts elements by instructions for eight at a time, and returns how many it has converted.
template <class Half>
inline std::size_t EncodeHalvesAtOnce(const float*, std::size_t, std::byte*) {
  return 0;
}
template <class Half>
inline std::size_t DecodeHalvesAtOnce(const std::byte*, std::size_t, float*) {
  return 0;
}
template <class Half>
inline std::size_t DecodeAddHalvesAtOnce(const std::byte*, std::size_t, float, float*) {
  return 0;
}
template <class Half>
inline std::size_t EncodeAndSubtractHalvesAtOnce(float*, std::size_t, std::byte*) {
  return 0;
}

#if defined(__F16C__)
constexpr std::size_t kHalvesAtOnce = 8;

inline __m256 Fp16Read(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from)));
}

// Finite values beyond the largest one are replaced by it before they are rounded.
inline __m128i Fp16Of(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i magnitude =
      _mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(kHalfMagnitude)));
  const __m256i largest = _mm256_set1_epi32(static_cast<int>(Fp16::kLargest));
  const __m256i infinity = _mm256_set1_epi32(static_cast<int>(kHalfInfinity));
  const __m256i beyond = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, largest),
                                          _mm256_cmpgt_epi32(infinity, magnitude));
  const __m256i sign = _mm256_andnot_si256(magnitude, bits);
  const __m256i held = _mm256_blendv_epi8(bits, _mm256_or_si256(largest, sign), beyond);
  return _mm256_cvtps_ph(_mm256_castsi256_ps(held), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

template <>
inline std::size_t EncodeHalvesAtOnce<Fp16>(const float* values, std::size_t size, std::byte* to) {
  std::size_t i = 0;
  for (; i + kHalvesAtOnce <= size; i += kHalvesAtOnce) {
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + 2 * i), Fp16Of(_mm256_loadu_ps(values + i)));
  }
  return i;
}

template <>
inline std::size_t DecodeHalvesAtOnce<Fp16>(const std::byte* from, std::size_t size,
                                            float* values) {
  std::size_t i = 0;
  for (; i + kHalvesAtOnce <= size; i += kHalvesAtOnce) {
    _mm256_storeu_ps(values + i, Fp16Read(from + 2 * i));
  }
  return i;
}

template <>
inline std::size_t DecodeAddHalvesAtOnce<Fp16>(const std::byte* from, std::size_t size,
                                               float factor, float* sum) {
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + kHalvesAtOnce <= size; i += kHalvesAtOnce) {
    const __m256 more = _mm256_mul_ps(factors, Fp16Read(from + 2 * i));
    _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), more));
  }
  return i;
}

template <>
inline std::size_t EncodeAndSubtractHalvesAtOnce<Fp16>(float* carried, std::size_t size,
                                                       std::byte* to) {
  const __m256i magnitude = _mm256_set1_epi32(static_cast<int>(kHalfMagnitude));
  const __m256i infinity = _mm256_set1_epi32(static_cast<int>(kHalfInfinity));
  std::size_t i = 0;
  for (; i + kHalvesAtOnce <= size; i += kHalvesAtOnce) {
    const __m256 values = _mm256_loadu_ps(carried + i);
    const __m128i halves = Fp16Of(values);
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + 2 * i), halves);
    const __m256i finite =
        _mm256_cmpgt_epi32(infinity, _mm256_and_si256(_mm256_castps_si256(values), magnitude));
    const __m256 dropped = _mm256_sub_ps(values, _mm256_cvtph_ps(halves));
    _mm256_storeu_ps(carried + i, _mm256_and_ps(dropped, _mm256_castsi256_ps(finite)));
  }
  return i;
}
#endif

template <class Half>
void EncodeHalves(const float* __restrict values, std::size_t size, std::byte* __restrict to) {
  HalfBits* const halves = reinterpret_cast<HalfBits*>(to);
  for (std::size_t i = EncodeHalvesAtOnce<Half>(values, size, to); i < size; ++i) {
    halves[i] = Half::Narrow(values[i]);
  }
}

template <class Half>
void DecodeHalves(const std::byte* __restrict from, std::size_t size, float* __restrict values) {
  const HalfBits* const halves = reinterpret_cast<const HalfBits*>(from);
  for (std::size_t i = DecodeHalvesAtOnce<Half>(from, size, values); i < size; ++i) {
    values[i] = Half::Widen(halves[i]);
  }
}

template <class Half>
void DecodeAddHalves(const std::byte* __restrict from, std::size_t size, float factor,
                     float* __restrict sum) {
  const HalfBits* const halves = reinterpret_cast<const HalfBits*>(from);
  for (std::size_t i = DecodeAddHalvesAtOnce<Half>(from, size, factor, sum); i < size; ++i) {
    sum[i] += factor * Half::Widen(halves[i]);
  }
}

template <class Half>
void EncodeAndSubtractHalves(float* __restrict carried, std::size_t size,
                             std::byte* __restrict to) {
  HalfBits* const halves = reinterpret_cast<HalfBits*>(to);
  for (std::size_t i = EncodeAndSubtractHalvesAtOnce<Half>(carried, size, to); i < size; ++i) {
    const std::uint16_t half = Half::Narrow(carried[i]);
    halves[i] = half;
    carried[i] = HalfDropped(carried[i], Half::Widen(half));
  }
}

template <class Half>
constexpr HalfKernels kHalfLoops = {.encode = EncodeHalves<Half>,
                                    .decode = DecodeHalves<Half>,
                                    .decode_add = DecodeAddHalves<Half>,
                                    .encode_and_subtract = EncodeAndSubtractHalves<Half>};

constexpr HalvesKernels kHalvesLoops = {.fp16 = kHalfLoops<Fp16>, .bf16 = kHalfLoops<Bf16>};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_
