// The kernels that round values at random to a few levels of a scale, and pack codes of a few bits
// into bytes.
#ifndef LEEWAY_COMPRESS_KERNELS_DITHER_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_DITHER_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

// A code of b bits, 2 to 8, has a level in its lower b − 1 bits, from 0 to s = 2^(b−1) − 1, and the
// sign in its highest, 1 for negative. Level 0 stands for 0, level s for the scale.
struct LevelKernels {
  // codes[i] = the code of values[i], one of the two levels around |values[i]| / scale, so that the
  // mean is that; magnitudes above the scale count as the scale. Level 0 has no sign. The scale and
  // the values are finite; all values are 0 if the scale is. The random number of element i depends
  // on `key` and first + i alone.
  void (*round)(const float* values, std::size_t size, float scale, int bits, std::uint64_t key,
                std::uint32_t first, std::uint8_t* codes);
  // to[i] = the value of codes[i], at most the scale in magnitude.
  void (*restore)(const std::uint8_t* codes, std::size_t size, float scale, int bits, float* to);
  // to[i] += factor × the value of codes[i].
  void (*add)(const std::uint8_t* codes, std::size_t size, float scale, int bits, float factor,
              float* to);
};

struct DitherKernels {
  LevelKernels uniform;  // level k is k / s of the scale
  LevelKernels natural;  // level k is 2^(k − s) of the scale, for k > 0
  // Writes codes one behind the other, the lowest bit of each first, into ⌈size · bits / 8⌉ bytes;
  // the rest of the last byte becomes 0. `codes` has room for a multiple of 8, and the codes beyond
  // `size` are overwritten with 0.
  void (*pack)(std::uint8_t* codes, std::size_t size, int bits, std::uint8_t* packed);
  // The inverse: writes as many codes as there is room for (a multiple of 8), of which `size`
  // count.
  void (*unpack)(const std::uint8_t* packed, std::size_t size, int bits, std::uint8_t* codes);
  // v₀² + v₁² + … in 16 doubles, element i in number i mod 16; no float's square is too large or
  // too small for it.
  double (*sum_squares)(const float* values, std::size_t size);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_DITHER_KERNELS_H_
