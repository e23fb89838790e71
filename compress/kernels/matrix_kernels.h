// The kernels of products of a matrix with a few vectors, for low-rank codecs.
#ifndef LEEWAY_COMPRESS_KERNELS_MATRIX_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_MATRIX_KERNELS_H_

#include <cstddef>

namespace leeway::compress {

// A matrix M of `columns` columns lies row by row in `elements` floats; its last row may be short,
// and counts as if zeros followed.
struct MatrixShape {
  std::size_t elements = 0;
  std::size_t columns = 0;
  std::size_t rows = 0;  // ⌈elements / columns⌉
};

// P has a row for each row of M, Q one for each column of M; both have `rank` columns, 1 to
// kRankMax, which lie one after the other.
inline constexpr std::size_t kRankMax = 32;

struct MatrixKernels {
  // P = M·Q. Each element of P sums up stretches of 4096 products in 16 floats, product j in
  // number j mod 16; the stretches and these in double.
  void (*times)(const float* m, MatrixShape shape, const float* q, std::size_t rank, float* p);
  // Q = Mᵀ·P, in float, the products of M's rows in order.
  void (*transposed_times)(const float* m, MatrixShape shape, const float* p, std::size_t rank,
                           float* q);
  // Makes the columns of P orthonormal: modified Gram-Schmidt, its inner products in 8 doubles,
  // product i in number i mod 8. A column that keeps less than one part in 2²⁰ of its norm when the
  // columns before it are subtracted depends on them up to rounding; it becomes zero.
  void (*orthonormalise)(double* p, std::size_t rows, std::size_t rank);
  // values = scale × P·Qᵀ, [elements], the products of P's columns in order, clamped to the largest
  // float. P and Q lie at any address.
  void (*product)(const void* p, const void* q, MatrixShape shape, std::size_t rank, float scale,
                  float* values);
  // sum += factor × the same.
  void (*add_product)(const void* p, const void* q, MatrixShape shape, std::size_t rank,
                      float scale, float factor, float* sum);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_MATRIX_KERNELS_H_
