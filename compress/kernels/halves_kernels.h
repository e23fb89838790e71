// The kernels that turn floats into 16-bit floating-point numbers, and back.
#ifndef LEEWAY_COMPRESS_KERNELS_HALVES_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_HALVES_KERNELS_H_

#include <cstddef>
#include <type_traits>

#include "leeway/dtype.h"

namespace leeway::compress {

// The kernels of one 16-bit format: 2 bytes for each element, at any alignment.
struct HalfKernels {
  // Rounds to nearest, ties to even, as Float16 and BFloat16 do; NaN becomes a quiet NaN.
  void (*narrow)(const float* values, std::size_t size, std::byte* to);
  // The same, but a finite value that would round to infinity becomes the largest finite number of
  // its sign.
  void (*encode)(const float* values, std::size_t size, std::byte* to);
  void (*decode)(const std::byte* from, std::size_t size, float* values);
  // sum[i] += factor × decoded[i].
  void (*decode_add)(const std::byte* from, std::size_t size, float factor, float* sum);
  // Encodes, and carried[i] −= decoded[i]; NaN and infinity, which are sent whole, leave 0.
  void (*encode_and_subtract)(float* carried, std::size_t size, std::byte* to);
};

struct HalvesKernels {
  HalfKernels fp16;  // IEEE 754 binary16
  HalfKernels bf16;  // the upper half of a binary32

  template <class Half>
  const HalfKernels& Of() const {
    return std::is_same_v<Half, Float16> ? fp16 : bf16;
  }
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_HALVES_KERNELS_H_
