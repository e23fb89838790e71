// Sums, extremes and additions over floats, which most codecs need.
#ifndef LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_

#include <cstddef>

namespace leeway::compress {

struct ReduceKernels {
  // |v₀| + |v₁| + …: each stretch of 4096 elements in 32 floats, element i in number i mod 32; the
  // stretches and these in double. NaN and infinite values make it NaN or infinite.
  double (*sum_abs)(const float* values, std::size_t size);
  // v₀² + v₁² + …, in the same order.
  double (*sum_squares)(const float* values, std::size_t size);
  // The largest magnitude, 0 for none; a NaN counts as larger than infinity and gives NaN.
  float (*max_abs)(const float* values, std::size_t size);
  // sum[i] += factor × values[i].
  void (*add)(const float* values, std::size_t size, float factor, float* sum);
  // to[i] = values[i] + factor × kept[i]: what error feedback carries. `to` may be `kept`. Returns
  // max_abs of `to`: NaN or infinite where values are, or where a sum overflows.
  float (*carry)(const float* values, const float* kept, std::size_t size, float factor, float* to);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_REDUCE_KERNELS_H_
