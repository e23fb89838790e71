// SumOfSquares computes norms of values whose squares may be too large or too small for a float.
// Any thread.
#ifndef LEEWAY_COMPRESS_SPARSE_RMS_H_
#define LEEWAY_COMPRESS_SPARSE_RMS_H_

#include <cstddef>

namespace leeway::compress {

// v₀² + v₁² + …, the same at every instruction level; infinite or NaN only if a value is.
double SumOfSquares(const float* values, std::size_t size);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_RMS_H_
