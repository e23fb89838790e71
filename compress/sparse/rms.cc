#include "compress/sparse/rms.h"

#include <cmath>

#include "compress/kernels/kernels.h"

namespace leeway::compress {

double SumOfSquares(const float* values, std::size_t size) {
  // In float, squares from 2^128 on are infinite, and those below 2^-126 lose bits, which does not
  // matter beside a mean of 2^-80.
  const double fast = ChosenKernels().reduce.sum_squares(values, size);
  if (fast >= 0x1p-80 * static_cast<double>(size) && std::isfinite(fast)) return fast;
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

}  // namespace leeway::compress
