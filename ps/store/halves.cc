#include "ps/store/halves.h"

#include <bit>
#include <cstdint>

namespace leeway::ps {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;

float Widen(Float16 half) {
  const std::uint32_t magnitude = (half.bits & 0x7fffu) << 13;
  // Exponents differ by 112. The multiplication makes subnormal halves normal on the way.
  const std::uint32_t scaled =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  // All ones in the half's exponent: infinite or NaN stays so.
  const std::uint32_t special = magnitude >= 0x0f800000u ? kInfinity : 0;
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  return std::bit_cast<float>(scaled | special | sign);
}

Float16 NarrowToFloat16(float value) {
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

BFloat16 NarrowToBFloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  BFloat16 result;
  result.bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > kInfinity ? nan : rounded);
  return result;
}

}  // namespace

void ToFloat(const Float16* __restrict from, std::size_t size, float* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = Widen(from[i]);
}

void ToFloat(const BFloat16* __restrict from, std::size_t size, float* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<float>(from[i]);
}

void FromFloat(const float* __restrict from, std::size_t size, Float16* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = NarrowToFloat16(from[i]);
}

void FromFloat(const float* __restrict from, std::size_t size, BFloat16* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = NarrowToBFloat16(from[i]);
}

}  // namespace leeway::ps
