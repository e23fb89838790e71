// Norms of values that may be so large or so small that their squares leave what a float holds.
#ifndef LEEWAY_COMPRESS_SPARSE_RMS_H_
#define LEEWAY_COMPRESS_SPARSE_RMS_H_

#include <cstddef>

namespace leeway::compress {

// v₀² + v₁² + …, the same at every instruction level; infinite or NaN only where a value is.
double SumOfSquares(const float* values, std::size_t size);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_RMS_H_
