// The loops of products of a matrix with a few vectors, in an order of operations that vectors of
// any width up to 16 floats can keep.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_MATRIX_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_MATRIX_H_

#include <cstddef>

#include "compress/kernels/loops/vectors.h"
#include "compress/kernels/matrix_kernels.h"

namespace leeway::compress {
namespace {

constexpr std::size_t kMatrixLanes = 16;  // partial sums of an inner product
constexpr std::size_t kMatrixVectors = kMatrixLanes / kLanes<float>;
constexpr std::size_t kMatrixStretch = 4096;  // products that are summed up in float
constexpr std::size_t kMatrixDoubles = 8;     // partial sums of an inner product in double
constexpr float kMatrixLargest = __FLT_MAX__;

LEEWAY_INLINE Vector<float> MatrixRead(const void* from) {
  return Read(static_cast<const float*>(from));
}
// The float with that index, at any address.
LEEWAY_INLINE float MatrixReadOne(const void* from, std::size_t number) {
  float value;
  __builtin_memcpy(&value, static_cast<const char*>(from) + number * sizeof(value), sizeof(value));
  return value;
}

// Of one row with `Count` columns of Q, which are `columns` apart; `size` ≤ kMatrixStretch.
template <std::size_t Count>
inline void AddInnerProducts(const float* row, const float* q, std::size_t columns,
                             std::size_t size, double* sums) {
  Vector<float> lanes[Count][kMatrixVectors] = {};
  std::size_t j = 0;
  for (; j + kMatrixLanes <= size; j += kMatrixLanes) {
    for (std::size_t v = 0; v < kMatrixVectors; ++v) {
      const Vector<float> values = MatrixRead(row + j + v * kLanes<float>);
      for (std::size_t k = 0; k < Count; ++k) {
        lanes[k][v] += values * MatrixRead(q + k * columns + j + v * kLanes<float>);
      }
    }
  }
  for (std::size_t k = 0; k < Count; ++k) {
    float parts[kMatrixLanes];
    for (std::size_t v = 0; v < kMatrixVectors; ++v) {
      Write(parts + v * kLanes<float>, lanes[k][v]);
    }
    for (std::size_t rest = j; rest < size; ++rest) {
      parts[rest - j] += row[rest] * q[k * columns + rest];
    }
    for (std::size_t l = 0; l < kMatrixLanes; ++l) sums[k] += static_cast<double>(parts[l]);
  }
}

template <std::size_t Count>
inline void TimesColumns(const float* m, MatrixShape shape, const float* q, float* p) {
  const std::size_t rows = shape.rows;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t begin = i * shape.columns;
    const std::size_t size =
        shape.elements - begin < shape.columns ? shape.elements - begin : shape.columns;
    double sums[Count] = {};
    for (std::size_t j = 0; j < size; j += kMatrixStretch) {
      AddInnerProducts<Count>(m + begin + j, q + j, shape.columns,
                              size - j < kMatrixStretch ? size - j : kMatrixStretch, sums);
    }
    for (std::size_t k = 0; k < Count; ++k) p[k * rows + i] = static_cast<float>(sums[k]);
  }
}

inline void MatrixTimes(const float* m, MatrixShape shape, const float* q, std::size_t rank,
                        float* p) {
  const std::size_t rows = shape.rows;
  std::size_t k = 0;
  for (; k + 4 <= rank; k += 4) TimesColumns<4>(m, shape, q + k * shape.columns, p + k * rows);
  for (; k + 2 <= rank; k += 2) TimesColumns<2>(m, shape, q + k * shape.columns, p + k * rows);
  for (; k < rank; ++k) TimesColumns<1>(m, shape, q + k * shape.columns, p + k * rows);
}

inline void AddRow(const float* __restrict row, std::size_t size, float weight,
                   float* __restrict sum) {
  for (std::size_t j = 0; j < size; ++j) sum[j] += weight * row[j];
}

inline void AddFourRows(const float* __restrict rows, std::size_t columns,
                        const float* __restrict weights, float* __restrict sum) {
  const float w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
  const float* const row1 = rows + columns;
  const float* const row2 = row1 + columns;
  const float* const row3 = row2 + columns;
  for (std::size_t j = 0; j < columns; ++j) {
    sum[j] = sum[j] + w0 * rows[j] + w1 * row1[j] + w2 * row2[j] + w3 * row3[j];
  }
}

inline void MatrixTransposedTimes(const float* m, MatrixShape shape, const float* p,
                                  std::size_t rank, float* q) {
  const std::size_t columns = shape.columns, rows = shape.rows;
  const std::size_t whole = shape.elements / columns;
  for (std::size_t j = 0; j < rank * columns; ++j) q[j] = 0;
  std::size_t i = 0;
  for (; i + 4 <= whole; i += 4) {
    for (std::size_t k = 0; k < rank; ++k) {
      AddFourRows(m + i * columns, columns, p + k * rows + i, q + k * columns);
    }
  }
  for (; i < rows; ++i) {
    const std::size_t size = i < whole ? columns : shape.elements - i * columns;
    for (std::size_t k = 0; k < rank; ++k) {
      AddRow(m + i * columns, size, p[k * rows + i], q + k * columns);
    }
  }
}

inline double InnerProduct(const double* a, const double* b, std::size_t size) {
  double lanes[kMatrixDoubles] = {};
  std::size_t i = 0;
  for (; i + kMatrixDoubles <= size; i += kMatrixDoubles) {
    for (std::size_t l = 0; l < kMatrixDoubles; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (std::size_t l = 0; i + l < size; ++l) lanes[l] += a[i + l] * b[i + l];
  double sum = 0;
  for (std::size_t l = 0; l < kMatrixDoubles; ++l) sum += lanes[l];
  return sum;
}

inline void MatrixOrthonormalise(double* p, std::size_t rows, std::size_t rank) {
  double before[kRankMax];  // squared norms
  for (std::size_t k = 0; k < rank; ++k) before[k] = InnerProduct(p + k * rows, p + k * rows, rows);
  for (std::size_t k = 0; k < rank; ++k) {
    double* const column = p + k * rows;
    const double left = InnerProduct(column, column, rows);
    const double factor = left > 0x1p-40 * before[k] ? 1 / __builtin_sqrt(left) : 0;
    for (std::size_t i = 0; i < rows; ++i) column[i] *= factor;
    for (std::size_t later = k + 1; later < rank; ++later) {
      double* const other = p + later * rows;
      const double along = InnerProduct(column, other, rows);
      for (std::size_t i = 0; i < rows; ++i) other[i] -= along * column[i];
    }
  }
}

LEEWAY_INLINE float MatrixClamped(float value) {
  value = value > kMatrixLargest ? kMatrixLargest : value;
  return value < -kMatrixLargest ? -kMatrixLargest : value;
}
LEEWAY_INLINE Vector<float> MatrixClamped(Vector<float> values) {
  const Vector<float> largest = kMatrixLargest - Vector<float>{};
  values = values > largest ? largest : values;
  return values < -largest ? -largest : values;
}

// Computes one row of scale × P·Qᵀ and passes it to `write`.
template <class Write>
LEEWAY_INLINE void ProductRow(const float* weights, const std::byte* q, std::size_t columns,
                              std::size_t size, std::size_t rank, float scale, Write write) {
  std::size_t j = 0;
  for (; j + kMatrixLanes <= size; j += kMatrixLanes) {
    Vector<float> sums[kMatrixVectors];
    for (std::size_t v = 0; v < kMatrixVectors; ++v) {
      sums[v] = weights[0] * MatrixRead(q + (j + v * kLanes<float>)*sizeof(float));
    }
    for (std::size_t k = 1; k < rank; ++k) {
      for (std::size_t v = 0; v < kMatrixVectors; ++v) {
        sums[v] += weights[k] * MatrixRead(q + (k * columns + j + v * kLanes<float>)*sizeof(float));
      }
    }
    for (std::size_t v = 0; v < kMatrixVectors; ++v) {
      write.WriteVector(j + v * kLanes<float>, MatrixClamped(scale * sums[v]));
    }
  }
  for (; j < size; ++j) {
    float sum = weights[0] * MatrixReadOne(q, j);
    for (std::size_t k = 1; k < rank; ++k) sum += weights[k] * MatrixReadOne(q, k * columns + j);
    write.WriteOne(j, MatrixClamped(scale * sum));
  }
}

struct MatrixStore {
  float* to;
  LEEWAY_INLINE MatrixStore From(std::size_t at) const { return {to + at}; }
  LEEWAY_INLINE void WriteVector(std::size_t at, Vector<float> values) const {
    Write(to + at, values);
  }
  LEEWAY_INLINE void WriteOne(std::size_t at, float value) const { to[at] = value; }
};
struct MatrixAdd {
  float* to;
  float factor;
  LEEWAY_INLINE MatrixAdd From(std::size_t at) const { return {to + at, factor}; }
  LEEWAY_INLINE void WriteVector(std::size_t at, Vector<float> values) const {
    Write(to + at, Read(to + at) + factor * values);
  }
  LEEWAY_INLINE void WriteOne(std::size_t at, float value) const { to[at] += factor * value; }
};

template <class Write>
LEEWAY_INLINE void ProductRows(const void* p, const void* q, MatrixShape shape, std::size_t rank,
                               float scale, Write write) {
  const std::size_t columns = shape.columns, rows = shape.rows;
  for (std::size_t i = 0; i < rows; ++i) {
    float weights[kRankMax];
    for (std::size_t k = 0; k < rank; ++k) weights[k] = MatrixReadOne(p, k * rows + i);
    const std::size_t left = shape.elements - i * columns;
    ProductRow(weights, static_cast<const std::byte*>(q), columns, left < columns ? left : columns,
               rank, scale, write.From(i * columns));
  }
}

inline void MatrixProduct(const void* p, const void* q, MatrixShape shape, std::size_t rank,
                          float scale, float* values) {
  ProductRows(p, q, shape, rank, scale, MatrixStore{values});
}
inline void MatrixAddProduct(const void* p, const void* q, MatrixShape shape, std::size_t rank,
                             float scale, float factor, float* sum) {
  ProductRows(p, q, shape, rank, scale, MatrixAdd{sum, factor});
}

constexpr MatrixKernels kMatrixLoops = {.times = MatrixTimes,
                                        .transposed_times = MatrixTransposedTimes,
                                        .orthonormalise = MatrixOrthonormalise,
                                        .product = MatrixProduct,
                                        .add_product = MatrixAddProduct};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_MATRIX_H_
