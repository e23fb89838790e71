// The kernels of sums, extremes and additions over floats, which most codecs use.
#ifndef LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_

#include <cstddef>

namespace leeway::compress {

struct ReduceKernels {
  // |v₀| + |v₁| + …: each stretch of 4096 elements in 32 floats, element i in number i mod 32; the
  // floats of a stretch and the stretches are added in double. NaN and infinite values make it NaN
  // or infinite.
  double (*sum_abs)(const float* values, std::size_t size);
  // v₀² + v₁² + …, in the same order.
  double (*sum_squares)(const float* values, std::size_t size);
  // The largest magnitude, 0 for none; a NaN counts as larger than infinity and gives NaN.
  float (*max_abs)(const float* values, std::size_t size);
  // sum[i] += factor × values[i].
  void (*add)(const float* values, std::size_t size, float factor, float* sum);
  // to[i] = values[i] + factor × kept[i], the carried values of error feedback. `to` may be `kept`.
  // Returns max_abs of `to`: NaN or infinite if a value is, or if a sum overflows.
  float (*carry)(const float* values, const float* kept, std::size_t size, float factor, float* to);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_
