// The loops of reductions, in an order that vectors of any width can keep: 32 partial results,
// element i in number i mod 32.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_REDUCE_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/reduce_kernels.h"

namespace leeway::compress {
namespace {

constexpr std::size_t kReduceLanes = 32;
constexpr std::size_t kReduceStretch = 4096;  // elements that are summed up in float

inline float Magnitude(float value) { return __builtin_fabsf(value); }
inline float Square(float value) { return value * value; }

template <float (*Of)(float)>
inline double SumOfStretch(const float* values, std::size_t size) {
  float lanes[kReduceLanes] = {};
  std::size_t i = 0;
  for (; i + kReduceLanes <= size; i += kReduceLanes) {
    for (std::size_t j = 0; j < kReduceLanes; ++j) lanes[j] += Of(values[i + j]);
  }
  const std::size_t rest = size % kReduceLanes;
  for (std::size_t j = 0; j < rest; ++j) lanes[j] += Of(values[i + j]);
  double sum = 0;
  for (std::size_t j = 0; j < kReduceLanes; ++j) sum += static_cast<double>(lanes[j]);
  return sum;
}

template <float (*Of)(float)>
inline double SumOf(const float* values, std::size_t size) {
  double sum = 0;
  std::size_t i = 0;
  for (; i + kReduceStretch <= size; i += kReduceStretch) {
    sum += SumOfStretch<Of>(values + i, kReduceStretch);
  }
  return sum + SumOfStretch<Of>(values + i, size - i);
}

inline double SumAbs(const float* values, std::size_t size) {
  return SumOf<Magnitude>(values, size);
}
inline double SumSquares(const float* values, std::size_t size) {
  return SumOf<Square>(values, size);
}

// Magnitudes compare as their bits do, NaN above infinity.
inline std::uint32_t LargerMagnitude(std::uint32_t largest, float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value) & 0x7fffffffu;
  return bits > largest ? bits : largest;
}

// Reads large arrays at two places at once, since memory answers that faster than one stream; where
// the two are less than some pages apart it answers slower.
inline float MaxAbs(const float* values, std::size_t size) {
  constexpr std::size_t kMany = 1 << 14;
  const std::size_t half = size < kMany ? 0 : size / 2;
  const float* const others = values + half;
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < half; ++i) {
    largest = LargerMagnitude(LargerMagnitude(largest, values[i]), others[i]);
  }
  for (std::size_t i = 2 * half; i < size; ++i) largest = LargerMagnitude(largest, values[i]);
  return __builtin_bit_cast(float, largest);
}

inline void AddScaled(const float* __restrict values, std::size_t size, float factor,
                      float* __restrict sum) {
  for (std::size_t i = 0; i < size; ++i) sum[i] += factor * values[i];
}

inline float Carry(const float* values, const float* kept, std::size_t size, float factor,
                   float* to) {
  std::uint32_t largest = 0;
  // If they are the same memory, each element depends on itself alone.
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < size; ++i) {
    const float sum = values[i] + factor * kept[i];
    largest = LargerMagnitude(largest, sum);
    to[i] = sum;
  }
  return __builtin_bit_cast(float, largest);
}

constexpr ReduceKernels kReduceLoops = {.sum_abs = SumAbs,
                                        .sum_squares = SumSquares,
                                        .max_abs = MaxAbs,
                                        .add = AddScaled,
                                        .carry = Carry};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_REDUCE_H_
