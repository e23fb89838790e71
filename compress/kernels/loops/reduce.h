// Reductions in an order that vectors of any width can keep: 32 partial results, element i in
// number i mod 32.
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
inline float MaxAbs(const float* values, std::size_t size) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, values + i, sizeof(bits));
    bits &= 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  float value;
  __builtin_memcpy(&value, &largest, sizeof(value));
  return value;
}

inline void AddScaled(const float* __restrict values, std::size_t size, float factor,
                      float* __restrict sum) {
  for (std::size_t i = 0; i < size; ++i) sum[i] += factor * values[i];
}

inline void Carry(const float* __restrict values, std::size_t size, float factor,
                  float* __restrict to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = values[i] + factor * to[i];
}

constexpr ReduceKernels kReduceLoops = {.sum_abs = SumAbs,
                                        .sum_squares = SumSquares,
                                        .max_abs = MaxAbs,
                                        .add = AddScaled,
                                        .carry = Carry};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_REDUCE_H_
