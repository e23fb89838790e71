// The kernels that turn floats into 8-bit numbers of a scale, and back.
#ifndef LEEWAY_COMPRESS_KERNELS_EIGHT_BIT_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_EIGHT_BIT_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

// Integers from −127 to 127, each times a scale, a normal float. The encoded values are finite, and
// none is larger than 127 scales (except by rounding).
struct Int8Kernels {
  // values[i] / scale, rounded to nearest, ties to even.
  void (*encode)(const float* values, std::size_t size, float scale, std::byte* to);
  // Rounded down or up at random: ⌊values[i] / scale + u⌋ with u = (h >> 16) · 2^-16 and h a hash
  // of the key and i, so that the mean over all keys is values[i] / scale.
  void (*encode_random)(const float* values, std::size_t size, float scale, std::uint64_t key,
                        std::byte* to);
  // The same, and carried[i] −= decoded[i].
  void (*encode_and_subtract)(float* carried, std::size_t size, float scale, std::byte* to);
  void (*encode_random_and_subtract)(float* carried, std::size_t size, float scale,
                                     std::uint64_t key, std::byte* to);
  // from[i] × scale.
  void (*decode)(const std::byte* from, std::size_t size, float scale, float* values);
  // sum[i] += factor × decoded[i].
  void (*decode_add)(const std::byte* from, std::size_t size, float scale, float factor,
                     float* sum);
};

// One of the formats of OCP FP8 (arXiv 2209.05433, table 1), each number times a scale, which is a
// power of two from 2^-126 up. The format's NaN and infinity are neither written nor understood.
struct Fp8Kernels {
  // values[i] / scale, rounded to nearest, ties to even; at most the largest finite number.
  void (*encode)(const float* values, std::size_t size, float scale, std::byte* to);
  // The same, and carried[i] −= decoded[i].
  void (*encode_and_subtract)(float* carried, std::size_t size, float scale, std::byte* to);
  void (*decode)(const std::byte* from, std::size_t size, float scale, float* values);
  // sum[i] += factor × decoded[i].
  void (*decode_add)(const std::byte* from, std::size_t size, float scale, float factor,
                     float* sum);
};

struct EightBitKernels {
  Int8Kernels int8;
  Fp8Kernels e4m3;
  Fp8Kernels e5m2;
  // The largest of (codes[i] & keep) ^ flip, 0 if there are none: finds bytes that no encoder
  // writes.
  std::uint8_t (*largest)(const std::byte* codes, std::size_t size, std::uint8_t keep,
                          std::uint8_t flip);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_EIGHT_BIT_KERNELS_H_
