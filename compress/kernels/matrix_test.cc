#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace matrix_test {
namespace {

MatrixShape MatrixOf(std::size_t elements, std::size_t columns) {
  return {.elements = elements, .columns = columns, .rows = (elements + columns - 1) / columns};
}

const MatrixShape kMatrices[] = {MatrixOf(1, 1),     MatrixOf(35, 5),      MatrixOf(33, 5),
                                 MatrixOf(130, 16),  MatrixOf(1000, 33),   MatrixOf(100, 100),
                                 MatrixOf(101, 100), MatrixOf(9999, 4999), MatrixOf(4097, 3)};

template <class T>
std::vector<T> DrawnMatrix(std::size_t size, std::uint64_t seed) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<T>(runtime::NormalAt(seed, size, i));
  }
  return values;
}

// An element of M, with zeros behind the end of its last row.
double MatrixAt(const std::vector<float>& m, const MatrixShape& shape, std::size_t i,
                std::size_t j) {
  const std::size_t at = i * shape.columns + j;
  return at < m.size() ? static_cast<double>(m[at]) : 0;
}

TEST(MatrixKernels, AllLevelsGiveTheSameBits) {
  for (const MatrixShape& shape : kMatrices) {
    for (const std::size_t rank : {1, 2, 3, 7, 32}) {
      const auto m = DrawnMatrix<float>(shape.elements, 1);
      const auto p = DrawnMatrix<float>(shape.rows * rank, 2);
      const auto q = DrawnMatrix<float>(shape.columns * rank, 3);
      const auto all_of = [&](const MatrixKernels& kernels) {
        std::vector<float> times(p.size()), transposed(q.size()), product(m.size()), sum = m;
        auto columns = DrawnMatrix<double>(p.size(), 4);
        kernels.times(m.data(), shape, q.data(), rank, times.data());
        kernels.transposed_times(m.data(), shape, p.data(), rank, transposed.data());
        kernels.orthonormalise(columns.data(), shape.rows, rank);
        kernels.product(p.data(), q.data(), shape, rank, 0.5f, product.data());
        kernels.add_product(p.data(), q.data(), shape, rank, 0.5f, -1, sum.data());
        for (std::size_t i = 0; i < m.size(); ++i) EXPECT_EQ(sum[i], m[i] - product[i]);
        return std::make_tuple(times, transposed, columns, product, sum);
      };
      const auto expected = all_of(KernelsOf(Level::kScalar).matrix);
      for (const Level level : LevelsHere()) {
        EXPECT_EQ(all_of(KernelsOf(level).matrix), expected)
            << Name(level) << ' ' << shape.elements << ' ' << shape.columns << ' ' << rank;
      }
    }
  }
}

TEST(MatrixKernels, ProductsAgreeWithTheFormulas) {
  const MatrixKernels& kernels = ChosenKernels().matrix;
  constexpr std::size_t kRank = 7;
  for (const MatrixShape& shape : kMatrices) {
    SCOPED_TRACE(shape.columns);
    const auto m = DrawnMatrix<float>(shape.elements, 1);
    const auto p = DrawnMatrix<float>(shape.rows * kRank, 2);
    const auto q = DrawnMatrix<float>(shape.columns * kRank, 3);
    std::vector<float> times(p.size()), transposed(q.size()), product(m.size());
    kernels.times(m.data(), shape, q.data(), kRank, times.data());
    kernels.transposed_times(m.data(), shape, p.data(), kRank, transposed.data());
    kernels.product(p.data(), q.data(), shape, kRank, 2, product.data());
    const double near = 1e-6 * static_cast<double>(10 + shape.rows + shape.columns);
    for (std::size_t k = 0; k < kRank; ++k) {
      const float* const p_k = p.data() + k * shape.rows;
      const float* const q_k = q.data() + k * shape.columns;
      for (std::size_t i = 0; i < shape.rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < shape.columns; ++j) {
          sum += MatrixAt(m, shape, i, j) * static_cast<double>(q_k[j]);
        }
        ASSERT_NEAR(times[k * shape.rows + i], sum, near);
      }
      for (std::size_t j = 0; j < shape.columns; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < shape.rows; ++i) {
          sum += MatrixAt(m, shape, i, j) * static_cast<double>(p_k[i]);
        }
        ASSERT_NEAR(transposed[k * shape.columns + j], sum, near);
      }
    }
    for (std::size_t at = 0; at < m.size(); ++at) {
      double sum = 0;
      for (std::size_t k = 0; k < kRank; ++k) {
        sum += static_cast<double>(p[k * shape.rows + at / shape.columns]) *
               static_cast<double>(q[k * shape.columns + at % shape.columns]);
      }
      ASSERT_NEAR(product[at], 2 * sum, 1e-4);
    }
  }
}

TEST(MatrixKernels, ColumnsBecomeOrthonormalOrZero) {
  constexpr std::size_t kRows = 101, kRank = 5;
  auto p = DrawnMatrix<double>(kRows * kRank, 6);
  // Column 2 depends on the two before it, column 4 is zero.
  for (std::size_t i = 0; i < kRows; ++i) {
    p[2 * kRows + i] = 3 * p[i] - 0.5 * p[kRows + i];
    p[4 * kRows + i] = 0;
  }
  ChosenKernels().matrix.orthonormalise(p.data(), kRows, kRank);
  for (std::size_t a = 0; a < kRank; ++a) {
    for (std::size_t b = 0; b < kRank; ++b) {
      double product = 0;
      for (std::size_t i = 0; i < kRows; ++i) product += p[a * kRows + i] * p[b * kRows + i];
      const bool kept = a == b && a != 2 && a != 4;
      EXPECT_NEAR(product, kept ? 1 : 0, 1e-14) << a << ' ' << b;
      if (a == b && !kept) {
        EXPECT_EQ(product, 0) << a;
      }
    }
  }
}

TEST(MatrixKernels, ProductsAreClampedAndReadAtAnyAddress) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const MatrixShape shape = MatrixOf(38, 19);
  for (const Level level : LevelsHere()) {
    const MatrixKernels& kernels = KernelsOf(level).matrix;
    const std::vector<float> p = {-1, 1}, q(19, 1e20f);
    const std::size_t p_bytes = p.size() * sizeof(float), q_bytes = q.size() * sizeof(float);
    const auto bytes = std::make_unique<std::byte[]>(1 + p_bytes + q_bytes);
    std::memcpy(bytes.get() + 1, p.data(), p_bytes);
    std::memcpy(bytes.get() + 1 + p_bytes, q.data(), q_bytes);
    std::vector<float> values(38), sum(38);
    kernels.product(bytes.get() + 1, bytes.get() + 1 + p_bytes, shape, 1, 0x1p64f, values.data());
    kernels.add_product(bytes.get() + 1, bytes.get() + 1 + p_bytes, shape, 1, 0x1p64f, 1,
                        sum.data());
    for (std::size_t i = 0; i < 38; ++i) {
      EXPECT_EQ(values[i], i < 19 ? -kLargest : kLargest) << Name(level) << ' ' << i;
      EXPECT_EQ(sum[i], values[i]);
    }
  }
}

}  // namespace
}  // namespace matrix_test
}  // namespace leeway::compress
