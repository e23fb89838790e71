#include "ps/store/halves.h"

#include <bit>
#include <cstdint>

// One source for every instruction set: inlined into a function, it is compiled for that
// function's.
#define LEEWAY_INLINE inline __attribute__((always_inline))

namespace leeway::ps {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;

LEEWAY_INLINE float Widen(Float16 half) {
  const std::uint32_t magnitude = (half.bits & 0x7fffu) << 13;
  // Exponents differ by 112. The multiplication makes subnormal halves normal on the way.
  const std::uint32_t scaled =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  // All ones in the half's exponent: infinite or NaN stays so.
  const std::uint32_t special = magnitude >= 0x0f800000u ? kInfinity : 0;
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  return std::bit_cast<float>(scaled | special | sign);
}

LEEWAY_INLINE float Widen(BFloat16 half) { return static_cast<float>(half); }

LEEWAY_INLINE Float16 Narrow(float value, Float16) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Adding half of the last kept bit, less one where that bit is even, rounds ties to even.
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // A half's subnormals are multiples of 2^-24, and so are floats from 0.5 up to 1: let the
  // addition round.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  std::uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x47800000u ? 0x7c00u : half;  // 65536 and more
  half = magnitude > kInfinity ? nan : half;
  Float16 result;
  result.bits = static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000u));
  return result;
}

LEEWAY_INLINE BFloat16 Narrow(float value, BFloat16) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  BFloat16 result;
  result.bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > kInfinity ? nan : rounded);
  return result;
}

template <class Half>
LEEWAY_INLINE void Widen(const Half* __restrict from, std::size_t size, float* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = Widen(from[i]);
}

template <class Half>
LEEWAY_INLINE void Narrow(const float* __restrict from, std::size_t size, Half* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = Narrow(from[i], Half{});
}

constexpr HalfKernels kPortable = {
    [](const Float16* from, std::size_t size, float* to) { Widen(from, size, to); },
    [](const BFloat16* from, std::size_t size, float* to) { Widen(from, size, to); },
    [](const float* from, std::size_t size, Float16* to) { Narrow(from, size, to); },
    [](const float* from, std::size_t size, BFloat16* to) { Narrow(from, size, to); }};

#if defined(__x86_64__)
#define LEEWAY_AVX2 __attribute__((target("avx2")))

LEEWAY_AVX2 void WidenAvx2(const Float16* from, std::size_t size, float* to) {
  Widen(from, size, to);
}
LEEWAY_AVX2 void WidenAvx2(const BFloat16* from, std::size_t size, float* to) {
  Widen(from, size, to);
}
LEEWAY_AVX2 void NarrowAvx2(const float* from, std::size_t size, Float16* to) {
  Narrow(from, size, to);
}
LEEWAY_AVX2 void NarrowAvx2(const float* from, std::size_t size, BFloat16* to) {
  Narrow(from, size, to);
}

constexpr HalfKernels kAvx2 = {WidenAvx2, WidenAvx2, NarrowAvx2, NarrowAvx2};

const HalfKernels& Fastest() { return __builtin_cpu_supports("avx2") ? kAvx2 : kPortable; }
#else
const HalfKernels& Fastest() { return kPortable; }
#endif

}  // namespace

const HalfKernels& PortableHalfKernels() { return kPortable; }

const HalfKernels& FastestHalfKernels() {
  static const HalfKernels& fastest = Fastest();
  return fastest;
}

}  // namespace leeway::ps
