// The loops of count sketches: places and medians are computed a chunk at a time, in loops that the
// compiler vectorises.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_SKETCH_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_SKETCH_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/sketch_kernels.h"

namespace leeway::compress {
namespace {

// As runtime::Mix.
inline std::uint64_t SketchMixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Mixes the upper half of an index into the seed; it is the same for a whole chunk.
inline std::uint32_t SketchRowSeed(std::uint64_t seed, std::size_t row, std::uint64_t begin) {
  return static_cast<std::uint32_t>(SketchMixed(seed + row + (begin >> 32 << 8)));
}

// The places of elements begin, begin + 1, …, at most a chunk, and the bit that turns their sign.
inline void SketchPlaces(const SketchTable& table, std::size_t row, std::uint64_t begin,
                         std::size_t size, std::uint32_t* __restrict places,
                         std::uint32_t* __restrict signs) {
  const std::uint32_t seed = SketchRowSeed(table.seed, row, begin);
  const auto first = static_cast<std::uint32_t>(begin);
  const std::uint64_t width = table.width;
  for (std::size_t i = 0; i < size; ++i) {
    std::uint32_t hash = (first + static_cast<std::uint32_t>(i)) ^ seed;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
    hash ^= hash >> 16;
    places[i] = static_cast<std::uint32_t>((hash * width) >> 32);
    signs[i] = hash << 31;
  }
}

inline float WithSignTurned(float value, std::uint32_t sign) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, value) ^ sign);
}

// The cell with that index; cells lie at any address.
inline float SketchCell(const char* cells, std::size_t number) {
  float cell;
  __builtin_memcpy(&cell, cells + number * sizeof(cell), sizeof(cell));
  return cell;
}

inline void SketchAdd(const float* values, std::size_t size, float scale, const SketchTable& table,
                      void* cells) {
  std::uint32_t places[kSketchChunk], signs[kSketchChunk];
  for (std::size_t begin = 0; begin < size; begin += kSketchChunk) {
    const std::size_t some = size - begin < kSketchChunk ? size - begin : kSketchChunk;
    for (std::size_t row = 0; row < table.rows; ++row) {
      SketchPlaces(table, row, begin, some, places, signs);
      char* const of_row = static_cast<char*>(cells) + row * table.width * sizeof(float);
      for (std::size_t i = 0; i < some; ++i) {
        const float cell =
            SketchCell(of_row, places[i]) + WithSignTurned(scale * values[begin + i], signs[i]);
        __builtin_memcpy(of_row + places[i] * sizeof(cell), &cell, sizeof(cell));
      }
    }
  }
}

inline void SketchInOrder(float* __restrict low, float* __restrict high, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const float a = low[i], b = high[i];
    low[i] = b < a ? b : a;
    high[i] = b < a ? a : b;
  }
}

inline void SketchEstimate(const void* cells, const SketchTable& table, std::uint64_t begin,
                           std::size_t size, float scale, float* values) {
  std::uint32_t places[kSketchChunk], signs[kSketchChunk];
  float estimates[kSketchRowsMax][kSketchChunk];
  for (std::size_t at = 0; at < size; at += kSketchChunk) {
    const std::size_t some = size - at < kSketchChunk ? size - at : kSketchChunk;
    for (std::size_t row = 0; row < table.rows; ++row) {
      SketchPlaces(table, row, begin + at, some, places, signs);
      const char* const of_row =
          static_cast<const char*>(cells) + row * table.width * sizeof(float);
      for (std::size_t i = 0; i < some; ++i) {
        estimates[row][i] = WithSignTurned(SketchCell(of_row, places[i]), signs[i]);
      }
    }
    // Odd-even transposition sorts all elements' estimates side by side.
    for (std::size_t round = 0; round < table.rows; ++round) {
      for (std::size_t row = round % 2; row + 1 < table.rows; row += 2) {
        SketchInOrder(estimates[row], estimates[row + 1], some);
      }
    }
    const float* const medians = estimates[table.rows / 2];
    for (std::size_t i = 0; i < some; ++i) {
      const float value = scale * medians[i];
      const float capped = value > __FLT_MAX__ ? __FLT_MAX__ : value;
      values[at + i] = capped < -__FLT_MAX__ ? -__FLT_MAX__ : capped;
    }
  }
}

constexpr SketchKernels kSketchLoops = {.add = SketchAdd, .estimate = SketchEstimate};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_SKETCH_H_
