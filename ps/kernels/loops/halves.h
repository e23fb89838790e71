// The conversion of 16-bit floating-point numbers to float and back, without branches, so that the
// compiler vectorises it where no instruction does it.
#ifndef LEEWAY_PS_KERNELS_LOOPS_HALVES_H_
#define LEEWAY_PS_KERNELS_LOOPS_HALVES_H_

#include <cstddef>
#include <cstdint>

#include "leeway/dtype.h"
#include "ps/kernels/loops/vectors.h"

namespace leeway::ps {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;

LEEWAY_INLINE float Widen(Float16 half) {
  const std::uint32_t magnitude = (half.bits & 0x7fffu) << 13;
  // Exponents differ by 112. The multiplication makes subnormal halves normal on the way.
  const std::uint32_t scaled =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) * 0x1p112f);
  // All ones in the half's exponent: infinite or NaN stays so, and a NaN becomes quiet.
  const std::uint32_t special = magnitude >= 0x0f800000u ? kInfinity : 0;
  const std::uint32_t quiet = magnitude > 0x0f800000u ? 0x00400000u : 0;
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  return __builtin_bit_cast(float, scaled | special | quiet | sign);
}

LEEWAY_INLINE float Widen(BFloat16 half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half.bits) << 16;
  const std::uint32_t quiet = (bits & 0x7fffffffu) > kInfinity ? 0x00400000u : 0;
  return __builtin_bit_cast(float, bits | quiet);
}

LEEWAY_INLINE void Narrow(float value, Float16* to) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Adding half of the last kept bit, less one where that bit is even, rounds ties to even.
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // A half's subnormals are multiples of 2^-24, and so are floats from 0.5 up to 1: let the
  // addition round.
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  std::uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x47800000u ? 0x7c00u : half;  // 65536 and more
  half = magnitude > kInfinity ? nan : half;
  to->bits = static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000u));
}

LEEWAY_INLINE void Narrow(float value, BFloat16* to) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  to->bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > kInfinity ? nan : rounded);
}

// Returns the number of leading elements that an instruction has converted.
template <class Half>
LEEWAY_INLINE std::size_t WidenVectors(const Half*, std::size_t, float*) {
  return 0;
}
template <class Half>
LEEWAY_INLINE std::size_t NarrowVectors(const float*, std::size_t, Half*) {
  return 0;
}

#if LEEWAY_HAS_FLOAT16_INSTRUCTIONS
template <>
LEEWAY_INLINE std::size_t WidenVectors(const Float16* from, std::size_t size, float* to) {
  std::size_t done = 0;
  for (; done + kLanes<float> <= size; done += kLanes<float>) {
    Write(to + done, WidenVector(from + done));
  }
  return done;
}

template <>
LEEWAY_INLINE std::size_t NarrowVectors(const float* from, std::size_t size, Float16* to) {
  std::size_t done = 0;
  for (; done + kLanes<float> <= size; done += kLanes<float>) {
    NarrowVector(Read(from + done), to + done);
  }
  return done;
}
#endif

template <class Half>
void WidenRun(const Half* __restrict from, std::size_t size, float* __restrict to) {
  for (std::size_t i = WidenVectors(from, size, to); i < size; ++i) to[i] = Widen(from[i]);
}

template <class Half>
void NarrowRun(const float* __restrict from, std::size_t size, Half* __restrict to) {
  for (std::size_t i = NarrowVectors(from, size, to); i < size; ++i) Narrow(from[i], to + i);
}

}  // namespace
}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_LOOPS_HALVES_H_
