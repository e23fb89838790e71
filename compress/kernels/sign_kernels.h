// The kernels that pack the sign bits of floats eight to a byte, and make ±scale of them.
#ifndef LEEWAY_COMPRESS_KERNELS_SIGN_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_SIGN_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

// The bit of element i is bit i mod 8 of byte i div 8, 1 for a negative sign. The arrays of bits
// have ⌈size / 8⌉ bytes.
struct SignKernels {
  // bits = the sign bits of values; the unused bits of the last byte become 0.
  void (*take)(const float* values, std::size_t size, std::uint8_t* bits);
  // to[i] = ±scale.
  void (*spread)(const std::uint8_t* bits, std::size_t size, float scale, float* to);
  // to[i] += ±scale.
  void (*add)(const std::uint8_t* bits, std::size_t size, float scale, float* to);
  // to[i] −= ±scale, with the sign of to[i].
  void (*shrink)(float* to, std::size_t size, float scale);
  // to[i] = values[i] + factor × (kept[i] − ±scale), with the sign of kept[i]. `to` overlaps none
  // of the others. Returns ReduceKernels::max_abs of values.
  float (*carry)(const float* values, const float* kept, std::size_t size, float scale,
                 float factor, float* to);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_SIGN_KERNELS_H_
