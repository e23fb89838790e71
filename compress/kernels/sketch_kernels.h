// The kernels of count sketches: they add values to the places of a table that hashes choose, and
// estimate values from these places.
#ifndef LEEWAY_COMPRESS_KERNELS_SKETCH_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_SKETCH_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

inline constexpr std::size_t kSketchRowsMax = 9;

// A table of rows × width floats, row by row, at any address. The place of element i in row r is
// (h × width) >> 32, and its sign is turned if the lowest bit of h is set, where h is
//
//     h = (i mod 2³²) ^ seed,  h = (h ^ h >> 16) × 0x85ebca6b,  h = (h ^ h >> 13) × 0xc2b2ae35,
//     h = h ^ h >> 16                                                   (MurmurHash3's finaliser)
//
// and the seed is that of the row and of i / 2³² (SketchSeed).
struct SketchTable {
  std::uint64_t seed = 0;
  std::size_t rows = 0;  // odd, at most kSketchRowsMax
  std::uint32_t width = 0;
};

struct SketchKernels {
  // Adds scale × values[i] to each row, element by element in order.
  void (*add)(const float* values, std::size_t size, float scale, const SketchTable& table,
              void* cells);
  // Of elements begin, begin + 1, …, a multiple of kSketchChunk: scale × the median of the rows'
  // cells, clamped to the largest float. The cells are finite.
  void (*estimate)(const void* cells, const SketchTable& table, std::uint64_t begin,
                   std::size_t size, float scale, float* values);
};

// Elements whose places are computed at once.
inline constexpr std::size_t kSketchChunk = 256;

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_SKETCH_KERNELS_H_
