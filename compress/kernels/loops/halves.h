// The loops over 16-bit floating-point numbers, without branches, so that the compiler vectorises
// them; for binary16 by the instructions that convert a vector of them, where the level has them.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "compress/kernels/halves_kernels.h"
#include "compress/kernels/loops/vectors.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace leeway::compress {
namespace {

// A 16-bit number at any address.
using HalfBits [[gnu::aligned(1), gnu::may_alias]] = std::uint16_t;

constexpr std::uint32_t kFloatMagnitude = 0x7fffffffu;  // of a float: all but the sign
constexpr std::uint32_t kFloatInfinity = 0x7f800000u;

// As many 16-bit numbers as there are floats in a vector, each in 32 bits.
LEEWAY_INLINE Vector<std::uint32_t> ReadHalves(const void* from) {
  typedef std::uint16_t Halves
      __attribute__((vector_size(kVectorBytes / 2), aligned(1), may_alias));
  return __builtin_convertvector(*static_cast<const Halves*>(from), Vector<std::uint32_t>);
}

struct Fp16 {
  static constexpr std::uint32_t kInfinity = 0x7c00u;

  // Rounds to nearest, ties to even, as Narrow of Bf16 does.
  static LEEWAY_INLINE std::uint32_t Narrow(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t magnitude = bits & kFloatMagnitude;
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
    half = magnitude >= 0x47800000u ? kInfinity : half;  // 65536 and more
    half = magnitude > kFloatInfinity ? nan : half;
    return half | ((bits >> 16) & 0x8000u);
  }

  static LEEWAY_INLINE float Widen(std::uint16_t half) {
    const std::uint32_t bits = half;
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    // Exponents differ by 112. The multiplication makes subnormal halves normal on the way.
    const std::uint32_t scaled =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) * 0x1p112f);
    // All ones in the half's exponent: infinite or NaN stays so, and a NaN becomes quiet.
    const std::uint32_t special = magnitude >= 0x0f800000u ? kFloatInfinity : 0u;
    const std::uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0u;
    return __builtin_bit_cast(float, scaled | special | quiet | ((bits & 0x8000u) << 16));
  }

#if defined(__F16C__)
  static constexpr bool kHasInstructions = true;
  static LEEWAY_INLINE Vector<float> WidenVector(const void* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i_u*>(from)));
  }
  static LEEWAY_INLINE void NarrowVector(Vector<float> values, void* to) {
    _mm_storeu_si128(static_cast<__m128i_u*>(to),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#else
  static constexpr bool kHasInstructions = false;
  // As Widen, but that a signalling NaN stays one.
  static LEEWAY_INLINE Vector<float> WidenVector(const void* from) {
    using Bits = Vector<std::uint32_t>;
    const Bits bits = ReadHalves(from);
    const Bits magnitude = (bits & 0x7fffu) << 13;
    const Bits scaled =
        reinterpret_cast<Bits>(reinterpret_cast<Vector<float>>(magnitude) * 0x1p112f);
    const Bits special = (magnitude >= 0x0f800000u) & kFloatInfinity;
    return reinterpret_cast<Vector<float>>(scaled | special | ((bits & 0x8000u) << 16));
  }
#endif
};

struct Bf16 {
  static constexpr std::uint32_t kInfinity = 0x7f80u;
  static constexpr bool kHasInstructions = false;

  static LEEWAY_INLINE std::uint32_t Narrow(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40u;
    return (bits & kFloatMagnitude) > kFloatInfinity ? nan : rounded;
  }

  static LEEWAY_INLINE float Widen(std::uint16_t half) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    const std::uint32_t quiet = (bits & kFloatMagnitude) > kFloatInfinity ? 0x00400000u : 0u;
    return __builtin_bit_cast(float, bits | quiet);
  }

  static LEEWAY_INLINE Vector<float> WidenVector(const void* from) {
    return reinterpret_cast<Vector<float>>(ReadHalves(from) << 16);
  }
};

template <class Stored>
using FormatOf = std::conditional_t<std::is_same_v<Stored, Float16>, Fp16, Bf16>;

LEEWAY_INLINE bool IsFinite(float value) {
  return (__builtin_bit_cast(std::uint32_t, value) & kFloatMagnitude) < kFloatInfinity;
}

// What is finite stays finite: at most the largest number.
template <class Half>
LEEWAY_INLINE std::uint32_t NarrowHeld(float value) {
  const std::uint32_t half = Half::Narrow(value);
  return half - ((half & 0x7fffu) == Half::kInfinity && IsFinite(value) ? 1 : 0);
}

// Finite values beyond 65504, the largest one of Fp16, are replaced by it.
LEEWAY_INLINE Vector<float> HeldVector(Vector<float> values) {
  using Bits = Vector<std::int32_t>;
  constexpr std::int32_t kLargest = 0x477fe000, kInfinity = kFloatInfinity;
  const Bits bits = reinterpret_cast<Bits>(values);
  const Bits magnitude = bits & static_cast<std::int32_t>(kFloatMagnitude);
  const Bits beyond = (magnitude > kLargest) & (magnitude < kInfinity);
  const Bits held = (bits ^ magnitude) | kLargest;
  return reinterpret_cast<Vector<float>>((held & beyond) | (bits & ~beyond));
}

// The part of a value that rounding has dropped; 0 for NaN and infinity.
LEEWAY_INLINE float HalfDropped(float value, float decoded) {
  const float dropped = value - decoded;
  return IsFinite(value) ? dropped : 0.0f;
}

LEEWAY_INLINE Vector<float> HalfDroppedVector(Vector<float> values, Vector<float> decoded) {
  using Bits = Vector<std::int32_t>;
  const Bits magnitude =
      reinterpret_cast<Bits>(values) & static_cast<std::int32_t>(kFloatMagnitude);
  const Bits finite = magnitude < static_cast<std::int32_t>(kFloatInfinity);
  return reinterpret_cast<Vector<float>>(reinterpret_cast<Bits>(values - decoded) & finite);
}

template <class Half>
void NarrowHalves(const float* __restrict values, std::size_t size, std::byte* __restrict to) {
  HalfBits* const halves = reinterpret_cast<HalfBits*>(to);
  std::size_t i = 0;
  if constexpr (Half::kHasInstructions) {
    for (; i + kLanes<float> <= size; i += kLanes<float>) {
      Half::NarrowVector(Read(values + i), halves + i);
    }
  }
  for (; i < size; ++i) halves[i] = static_cast<HalfBits>(Half::Narrow(values[i]));
}

template <class Half>
void EncodeHalves(const float* __restrict values, std::size_t size, std::byte* __restrict to) {
  HalfBits* const halves = reinterpret_cast<HalfBits*>(to);
  std::size_t i = 0;
  if constexpr (Half::kHasInstructions) {
    for (; i + kLanes<float> <= size; i += kLanes<float>) {
      Half::NarrowVector(HeldVector(Read(values + i)), halves + i);
    }
  }
  for (; i < size; ++i) halves[i] = static_cast<HalfBits>(NarrowHeld<Half>(values[i]));
}

template <class Half>
void DecodeHalves(const std::byte* __restrict from, std::size_t size, float* __restrict values) {
  const HalfBits* const halves = reinterpret_cast<const HalfBits*>(from);
  std::size_t i = 0;
  if constexpr (Half::kHasInstructions) {
    for (; i + kLanes<float> <= size; i += kLanes<float>) {
      Write(values + i, Half::WidenVector(halves + i));
    }
  }
  for (; i < size; ++i) values[i] = Half::Widen(halves[i]);
}

template <class Half>
void DecodeAddHalves(const std::byte* __restrict from, std::size_t size, float factor,
                     float* __restrict sum) {
  const HalfBits* const halves = reinterpret_cast<const HalfBits*>(from);
  std::size_t i = 0;
  if constexpr (Half::kHasInstructions) {
    for (; i + kLanes<float> <= size; i += kLanes<float>) {
      Write(sum + i, Read(sum + i) + factor * Half::WidenVector(halves + i));
    }
  }
  for (; i < size; ++i) sum[i] += factor * Half::Widen(halves[i]);
}

template <class Half>
void EncodeAndSubtractHalves(float* __restrict carried, std::size_t size,
                             std::byte* __restrict to) {
  HalfBits* const halves = reinterpret_cast<HalfBits*>(to);
  std::size_t i = 0;
  if constexpr (Half::kHasInstructions) {
    for (; i + kLanes<float> <= size; i += kLanes<float>) {
      const Vector<float> values = Read(carried + i);
      Half::NarrowVector(HeldVector(values), halves + i);
      Write(carried + i, HalfDroppedVector(values, Half::WidenVector(halves + i)));
    }
  }
  for (; i < size; ++i) {
    const auto half = static_cast<std::uint16_t>(NarrowHeld<Half>(carried[i]));
    halves[i] = half;
    carried[i] = HalfDropped(carried[i], Half::Widen(half));
  }
}

template <class Half>
constexpr HalfKernels kHalfLoops = {.narrow = NarrowHalves<Half>,
                                    .encode = EncodeHalves<Half>,
                                    .decode = DecodeHalves<Half>,
                                    .decode_add = DecodeAddHalves<Half>,
                                    .encode_and_subtract = EncodeAndSubtractHalves<Half>};

constexpr HalvesKernels kHalvesLoops = {.fp16 = kHalfLoops<Fp16>, .bf16 = kHalfLoops<Bf16>};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_HALVES_H_
