// The loops over 8-bit numbers, without branches, so that the compiler vectorises them.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_EIGHT_BIT_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_EIGHT_BIT_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/eight_bit_kernels.h"

namespace leeway::compress {
namespace {

struct Int8Nearest {
  // To add 1.5 · 2^23 leaves no fraction bits, and the integer in the lowest bits.
  inline std::int32_t operator()(float scaled, std::size_t) const {
    return __builtin_bit_cast(std::int32_t, scaled + 0x1.8p23f) - 0x4b400000;
  }
};

struct Int8Random {
  explicit Int8Random(std::uint64_t key)
      : first(static_cast<std::uint32_t>(key)), second(static_cast<std::uint32_t>(key >> 32)) {}

  // The mixer is MurmurHash3's.
  inline std::int32_t operator()(float scaled, std::size_t i) const {
    std::uint32_t hash = static_cast<std::uint32_t>(i) ^ first;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
    hash = (hash ^ (hash >> 16)) + second;
    const float up = static_cast<float>(static_cast<std::int32_t>(hash >> 16)) * 0x1p-16f;
    const float raised = scaled + up;
    const std::int32_t cut = static_cast<std::int32_t>(raised);  // towards zero
    const std::int32_t down = cut - (static_cast<float>(cut) > raised ? 1 : 0);
    const std::int32_t at_least = down < -127 ? -127 : down;
    return at_least > 127 ? 127 : at_least;
  }

  std::uint32_t first, second;
};

template <class Round>
inline void Int8Loop(const float* __restrict values, std::size_t size, float scale, Round round,
                     std::byte* __restrict to) {
  for (std::size_t i = 0; i < size; ++i)
    to[i] = static_cast<std::byte>(round(values[i] / scale, i));
}

template <class Round>
inline void Int8SubtractLoop(float* __restrict carried, std::size_t size, float scale, Round round,
                             std::byte* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t code = round(carried[i] / scale, i);
    to[i] = static_cast<std::byte>(code);
    carried[i] -= static_cast<float>(code) * scale;
  }
}

inline float Int8Value(std::byte code, float scale) {
  return static_cast<float>(static_cast<std::int8_t>(code)) * scale;
}

void EncodeInt8(const float* values, std::size_t size, float scale, std::byte* to) {
  Int8Loop(values, size, scale, Int8Nearest(), to);
}
void EncodeInt8Random(const float* values, std::size_t size, float scale, std::uint64_t key,
                      std::byte* to) {
  Int8Loop(values, size, scale, Int8Random(key), to);
}
void EncodeInt8AndSubtract(float* carried, std::size_t size, float scale, std::byte* to) {
  Int8SubtractLoop(carried, size, scale, Int8Nearest(), to);
}
void EncodeInt8RandomAndSubtract(float* carried, std::size_t size, float scale, std::uint64_t key,
                                 std::byte* to) {
  Int8SubtractLoop(carried, size, scale, Int8Random(key), to);
}

void DecodeInt8(const std::byte* __restrict from, std::size_t size, float scale,
                float* __restrict values) {
  for (std::size_t i = 0; i < size; ++i) values[i] = Int8Value(from[i], scale);
}
void DecodeAddInt8(const std::byte* __restrict from, std::size_t size, float scale, float factor,
                   float* __restrict sum) {
  for (std::size_t i = 0; i < size; ++i) sum[i] += factor * Int8Value(from[i], scale);
}

// A format with `fraction` bits of fraction.
template <int fraction, int bias, std::uint32_t largest>
struct Fp8 {
  static constexpr int kShift = 23 - fraction;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - bias);
  static constexpr std::uint32_t kLeastNormal = (kRebias + 1) << 23;  // as a float
  // Subnormals are multiples of the last bit of this float.
  static constexpr std::uint32_t kUnit = (kRebias + 1 + kShift) << 23;

  static inline std::uint32_t Code(float scaled) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, scaled);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    // Adding half of the last kept bit, less one where that bit is even, rounds ties to even.
    const std::uint32_t rounded =
        magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1u);
    const std::uint32_t normal = (rounded >> kShift) - (kRebias << fraction);
    const std::uint32_t subnormal =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) +
                                              __builtin_bit_cast(float, kUnit)) -
        kUnit;
    const std::uint32_t code = magnitude < kLeastNormal ? subnormal : normal;
    return (code > largest ? largest : code) | ((bits >> 24) & 0x80u);
  }

  static inline float Value(std::uint32_t code, float scale) {
    const std::uint32_t magnitude = (code & 0x7fu) << kShift;
    const std::uint32_t normal = magnitude + (kRebias << 23);
    // With 1 added to its exponent, a subnormal exceeds the least normal number by its own value.
    const float subnormal = __builtin_bit_cast(float, magnitude + kLeastNormal) -
                            __builtin_bit_cast(float, kLeastNormal);
    const std::uint32_t value =
        magnitude < (1u << 23) ? __builtin_bit_cast(std::uint32_t, subnormal) : normal;
    return __builtin_bit_cast(float, value | ((code & 0x80u) << 24)) * scale;
  }

  static void Encode(const float* __restrict values, std::size_t size, float scale,
                     std::byte* __restrict to) {
    const float inverse = 1 / scale;
    for (std::size_t i = 0; i < size; ++i)
      to[i] = static_cast<std::byte>(Code(values[i] * inverse));
  }
  static void EncodeAndSubtract(float* __restrict carried, std::size_t size, float scale,
                                std::byte* __restrict to) {
    const float inverse = 1 / scale;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t code = Code(carried[i] * inverse);
      to[i] = static_cast<std::byte>(code);
      carried[i] -= Value(code, scale);
    }
  }
  static void Decode(const std::byte* __restrict from, std::size_t size, float scale,
                     float* __restrict values) {
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = Value(static_cast<std::uint32_t>(from[i]), scale);
    }
  }
  static void DecodeAdd(const std::byte* __restrict from, std::size_t size, float scale,
                        float factor, float* __restrict sum) {
    for (std::size_t i = 0; i < size; ++i) {
      sum[i] += factor * Value(static_cast<std::uint32_t>(from[i]), scale);
    }
  }

  static constexpr Fp8Kernels kLoops = {.encode = Encode,
                                        .encode_and_subtract = EncodeAndSubtract,
                                        .decode = Decode,
                                        .decode_add = DecodeAdd};
};

std::uint8_t LargestCode(const std::byte* codes, std::size_t size, std::uint8_t keep,
                         std::uint8_t flip) {
  std::uint8_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto code =
        static_cast<std::uint8_t>((static_cast<std::uint8_t>(codes[i]) & keep) ^ flip);
    largest = code > largest ? code : largest;
  }
  return largest;
}

constexpr EightBitKernels kEightBitLoops = {
    .int8 = {.encode = EncodeInt8,
             .encode_random = EncodeInt8Random,
             .encode_and_subtract = EncodeInt8AndSubtract,
             .encode_random_and_subtract = EncodeInt8RandomAndSubtract,
             .decode = DecodeInt8,
             .decode_add = DecodeAddInt8},
    .e4m3 = Fp8<3, 7, 0x7e>::kLoops,
    .e5m2 = Fp8<2, 15, 0x7b>::kLoops,
    .largest = LargestCode};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_EIGHT_BIT_H_
