#include "examples/fashion_mnist/matrix.h"

#include <algorithm>
#include <vector>

namespace leeway::fashion_mnist {
namespace {

// Columns of c that one pass of the inner loop keeps in registers; how many rows depends on them.
constexpr std::size_t kTileColumns = 16;

// The element (row, k) of a is at a[row * row_step + k * inner_step]: so one kernel serves a matrix
// and its transpose.
struct Left {
  const float* a;
  std::size_t row_step;
  std::size_t inner_step;
};

// One row of a tile. GCC and Clang split it into vectors of the target's width.
using Row [[gnu::vector_size(kTileColumns * sizeof(float)), gnu::aligned(alignof(float)),
            gnu::may_alias]] = float;

// out[kRows] = a[kRows][inner] · b[inner][kTileColumns]
template <std::size_t kRows>
[[gnu::always_inline]] inline void Tile(Left left, const float* b, std::size_t b_step,
                                        std::size_t inner, Row* out) {
  Row sum[kRows] = {};
  for (std::size_t k = 0; k < inner; ++k) {
    const float* a = left.a + k * left.inner_step;
    const Row& b_row = *reinterpret_cast<const Row*>(b + k * b_step);
    for (std::size_t i = 0; i < kRows; ++i) sum[i] += a[i * left.row_step] * b_row;
  }
  for (std::size_t i = 0; i < kRows; ++i) out[i] = sum[i];
}

// A column of tiles: `width` (at most kTileColumns) columns of c; b has kTileColumns of them. Each
// sum has one order, whatever the height of tiles.
template <std::size_t kTileRows>
[[gnu::always_inline]] inline void Panel(Left left, const float* b, std::size_t b_step, float* c,
                                         std::size_t c_step, std::size_t rows, std::size_t inner,
                                         std::size_t width) {
  Row tile[kTileRows];
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t height = std::min(kTileRows, rows - row);
    const Left at{left.a + row * left.row_step, left.row_step, left.inner_step};
    if (height == kTileRows) {
      Tile<kTileRows>(at, b, b_step, inner, tile);
    } else {
      for (std::size_t i = 0; i < height; ++i) {
        const Left one{at.a + i * at.row_step, at.row_step, at.inner_step};
        Tile<1>(one, b, b_step, inner, tile + i);
      }
    }
    for (std::size_t i = 0; i < height; ++i) {
      for (std::size_t j = 0; j < width; ++j) c[(row + i) * c_step + j] += tile[i][j];
    }
  }
}

using PanelFunction = void (*)(Left, const float*, std::size_t, float*, std::size_t, std::size_t,
                               std::size_t, std::size_t);

void PlainPanel(Left left, const float* b, std::size_t b_step, float* c, std::size_t c_step,
                std::size_t rows, std::size_t inner, std::size_t width) {
  Panel<4>(left, b, b_step, c, c_step, rows, inner, width);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void Avx2Panel(Left left, const float* b, std::size_t b_step, float* c,
                                       std::size_t c_step, std::size_t rows, std::size_t inner,
                                       std::size_t width) {
  Panel<4>(left, b, b_step, c, c_step, rows, inner, width);
}

[[gnu::target("avx512f")]] void Avx512Panel(Left left, const float* b, std::size_t b_step, float* c,
                                            std::size_t c_step, std::size_t rows, std::size_t inner,
                                            std::size_t width) {
  Panel<8>(left, b, b_step, c, c_step, rows, inner, width);
}
#endif

// The function for the widest vectors that this machine has.
PanelFunction ChoosePanel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Avx512Panel;
  if (__builtin_cpu_supports("avx2")) return Avx2Panel;
#endif
  return PlainPanel;
}

void Multiply(Left left, const float* b, float* c, std::size_t rows, std::size_t inner,
              std::size_t columns) {
  if (rows == 0 || inner == 0) return;  // an empty matrix may have a null address
  static const PanelFunction panel = ChoosePanel();
  std::size_t column = 0;
  for (; column + kTileColumns <= columns; column += kTileColumns) {
    panel(left, b + column, columns, c + column, columns, rows, inner, kTileColumns);
  }
  if (column == columns) return;
  // The last columns of b, padded with zeros to a whole tile.
  const std::size_t width = columns - column;
  std::vector<float> padded(inner * kTileColumns, 0.0f);
  for (std::size_t k = 0; k < inner; ++k) {
    std::copy_n(b + k * columns + column, width, padded.data() + k * kTileColumns);
  }
  panel(left, padded.data(), kTileColumns, c + column, columns, rows, inner, width);
}

}  // namespace

void AddProduct(const float* a, const float* b, float* c, std::size_t rows, std::size_t inner,
                std::size_t columns) {
  Multiply({a, inner, 1}, b, c, rows, inner, columns);
}

void AddTransposedProduct(const float* a, const float* b, float* c, std::size_t rows,
                          std::size_t inner, std::size_t columns) {
  Multiply({a, 1, rows}, b, c, rows, inner, columns);
}

std::vector<float> Transposed(const std::vector<float>& a, std::size_t rows, std::size_t columns) {
  std::vector<float> result(a.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = a[i * columns + j];
  }
  return result;
}

}  // namespace leeway::fashion_mnist
