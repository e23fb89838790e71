// The loops of stochastic rounding, without branches, so that the compiler vectorises them, and of
// packing by 64-bit words.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_DITHER_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_DITHER_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/dither_kernels.h"
#include "compress/kernels/loops/sign.h"

namespace leeway::compress {
namespace {

constexpr std::uint32_t kDitherBias = 127;
constexpr int kDitherMantissaBits = 23;
constexpr int kDitherDrawnBits = 24;  // bits used of each random number

// 32 bits for each number: the finaliser of MurmurHash3 (public domain) over the number and both
// halves of the key. With one half alone all keys would give one sequence, each from another place.
inline std::uint32_t DitherDraw(std::uint32_t number, std::uint32_t key_low,
                                std::uint32_t key_high) {
  std::uint32_t x = number * 0x9e3779b9u + key_low;
  x = (x ^ (x >> 15)) + key_high;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

struct UniformLevels {
  explicit UniformLevels(int bits)
      : levels(static_cast<float>((1 << (bits - 1)) - 1)),
        fixed(levels * (1 << kDitherDrawnBits)),
        step(1 / levels) {}

  // Adds a random number below 1 in fixed point, and drops the fraction.
  std::uint32_t Round(float part, std::uint32_t drawn) const {
    const std::uint32_t exact = static_cast<std::uint32_t>(static_cast<std::int32_t>(part * fixed));
    return (exact + (drawn >> (32 - kDitherDrawnBits))) >> kDitherDrawnBits;
  }
  // The highest level gives exactly 1: for these numbers of levels, levels × (1 / levels) is 1.
  float Part(std::uint32_t level) const {
    return static_cast<float>(static_cast<std::int32_t>(level)) * step;
  }

  float levels;
  float fixed;  // levels, in fixed point; below 2^31
  float step;
};

struct NaturalLevels {
  explicit NaturalLevels(int bits)
      : levels((1u << (bits - 1)) - 1),
        lowest(__builtin_bit_cast(float, (kDitherBias + 1 - levels) << kDitherMantissaBits)),
        per_lowest(__builtin_bit_cast(float, (kDitherBias - 1 + levels) << kDitherMantissaBits)) {}

  // Adds the random number to the mantissa, which carries into the exponent. Below the lowest power
  // the two levels are 0 and that power.
  std::uint32_t Round(float part, std::uint32_t drawn) const {
    const std::uint32_t exponent =
        (__builtin_bit_cast(std::uint32_t, part) + (drawn >> (32 - kDitherMantissaBits))) >>
        kDitherMantissaBits;
    const float random =
        static_cast<float>(static_cast<std::int32_t>(drawn >> (32 - kDitherDrawnBits))) * 0x1p-24f;
    const std::uint32_t small = random < part * per_lowest ? 1 : 0;
    return part < lowest ? small : exponent + levels - kDitherBias;
  }
  float Part(std::uint32_t level) const {
    const std::uint32_t bits = (level + kDitherBias - levels) << kDitherMantissaBits;
    return __builtin_bit_cast(float, level == 0 ? 0 : bits);
  }

  std::uint32_t levels;
  float lowest;      // 2^(1 − levels)
  float per_lowest;  // its reciprocal
};

template <class Levels>
inline void DitherRun(const float* __restrict values, std::size_t size, float scale, int bits,
                      std::uint64_t key, std::uint32_t first, std::uint8_t* __restrict codes) {
  const Levels levels(bits);
  const float divisor = scale > 0 ? scale : 1;
  const std::uint32_t low = static_cast<std::uint32_t>(key);
  const std::uint32_t high = static_cast<std::uint32_t>(key >> 32);
  const int sign_shift = 32 - bits;
  for (std::size_t i = 0; i < size; ++i) {
    const float part = __builtin_fabsf(values[i]) / divisor;
    const std::uint32_t level = levels.Round(
        part < 1 ? part : 1, DitherDraw(first + static_cast<std::uint32_t>(i), low, high));
    const std::uint32_t sign = level == 0 ? 0 : FloatSignOf(values[i]) >> sign_shift;
    codes[i] = static_cast<std::uint8_t>(level | sign);
  }
}

template <class Levels>
inline float DitheredValue(const Levels& levels, std::uint32_t code, float scale, int bits) {
  const std::uint32_t sign_bit = 1u << (bits - 1);
  const float magnitude = scale * levels.Part(code & (sign_bit - 1));
  return WithFloatSign(magnitude, (code & sign_bit) << (32 - bits));
}

template <class Levels>
inline void RestoreDithered(const std::uint8_t* __restrict codes, std::size_t size, float scale,
                            int bits, float* __restrict to) {
  const Levels levels(bits);
  for (std::size_t i = 0; i < size; ++i) to[i] = DitheredValue(levels, codes[i], scale, bits);
}

template <class Levels>
inline void AddDithered(const std::uint8_t* __restrict codes, std::size_t size, float scale,
                        int bits, float factor, float* __restrict to) {
  const Levels levels(bits);
  for (std::size_t i = 0; i < size; ++i)
    to[i] += factor * DitheredValue(levels, codes[i], scale, bits);
}

// Eight codes, each in a byte of its own or all together in the lower 8·bits bits: neighbours move
// together (or apart) by pairs, then the pairs, then the fours.
inline std::uint64_t CodesTogether(std::uint64_t codes, int bits) {
  const int gap = 8 - bits;
  codes = (codes & 0x00ff00ff00ff00ffu) | ((codes & 0xff00ff00ff00ff00u) >> gap);
  codes = (codes & 0x0000ffff0000ffffu) | ((codes & 0xffff0000ffff0000u) >> (2 * gap));
  return (codes & 0x00000000ffffffffu) | ((codes & 0xffffffff00000000u) >> (4 * gap));
}

inline std::uint64_t CodesApart(std::uint64_t packed, int bits) {
  const std::uint64_t code = (std::uint64_t{1} << bits) - 1;
  const std::uint64_t two = code | code << bits, four = two | two << (2 * bits);
  std::uint64_t x = (packed & four) | ((packed >> (4 * bits)) & four) << 32;
  const std::uint64_t low_twos = two | two << 32;
  x = (x & low_twos) | ((x >> (2 * bits)) & low_twos) << 16;
  const std::uint64_t low_ones = (code | code << 16) | (code | code << 16) << 32;
  return (x & low_ones) | ((x >> bits) & low_ones) << 8;
}

// Words are written and read whole as long as there are 8 bytes, and overlap.
inline void PackCodes(std::uint8_t* __restrict codes, std::size_t size, int bits,
                      std::uint8_t* __restrict packed) {
  const std::size_t step = static_cast<std::size_t>(bits);
  const std::size_t bytes = (size * step + 7) / 8;
  for (std::size_t i = size; i % 8 != 0; ++i) codes[i] = 0;
  std::size_t at = 0, i = 0;
  for (; at + 8 <= bytes; at += step, i += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, codes + i, sizeof(word));
    word = CodesTogether(word, bits);
    __builtin_memcpy(packed + at, &word, sizeof(word));
  }
  for (; i < size; at += step, i += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, codes + i, sizeof(word));
    word = CodesTogether(word, bits);
    for (std::size_t j = 0; j < step && at + j < bytes; ++j) {
      packed[at + j] = static_cast<std::uint8_t>(word >> (8 * j));
    }
  }
}

inline void UnpackCodes(const std::uint8_t* __restrict packed, std::size_t size, int bits,
                        std::uint8_t* __restrict codes) {
  const std::size_t step = static_cast<std::size_t>(bits);
  const std::size_t bytes = (size * step + 7) / 8;
  std::size_t at = 0, i = 0;
  for (; at + 8 <= bytes; at += step, i += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, packed + at, sizeof(word));
    word = CodesApart(word, bits);
    __builtin_memcpy(codes + i, &word, sizeof(word));
  }
  for (; i < size; at += step, i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < step && at + j < bytes; ++j) {
      word |= static_cast<std::uint64_t>(packed[at + j]) << (8 * j);
    }
    word = CodesApart(word, bits);
    __builtin_memcpy(codes + i, &word, sizeof(word));
  }
}

inline double SumSquaresAsDoubles(const float* values, std::size_t size) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      const double value = static_cast<double>(values[i + j]);
      lanes[j] += value * value;
    }
  }
  for (std::size_t j = 0; i + j < size; ++j) {
    const double value = static_cast<double>(values[i + j]);
    lanes[j] += value * value;
  }
  double sum = 0;
  for (std::size_t j = 0; j < kLanes; ++j) sum += lanes[j];
  return sum;
}

template <class Levels>
constexpr LevelKernels kDitherLevelLoops = {
    .round = DitherRun<Levels>, .restore = RestoreDithered<Levels>, .add = AddDithered<Levels>};

constexpr DitherKernels kDitherLoops = {.uniform = kDitherLevelLoops<UniformLevels>,
                                        .natural = kDitherLevelLoops<NaturalLevels>,
                                        .pack = PackCodes,
                                        .unpack = UnpackCodes,
                                        .sum_squares = SumSquaresAsDoubles};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_DITHER_H_
