// PlaceFinder finds the places of the largest magnitudes, exactly: the same places at every
// instruction level.
#ifndef LEEWAY_COMPRESS_SPARSE_LARGEST_H_
#define LEEWAY_COMPRESS_SPARSE_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/codec.h"

namespace leeway::compress {

// Messages of sparse codecs number their elements in 32 bits.
inline constexpr std::uint64_t kMaxSparseElements = 0xffffffffu;

// The bits of an infinity: the magnitude of a number has smaller bits, that of a NaN larger ones.
inline constexpr std::uint32_t kInfiniteMagnitude = 0x7f800000u;

// The number of elements for a ratio in (0, 1]: ceil(ratio × elements), at least 1; 0 if there are
// no elements. A product that exceeds a whole number only by rounding counts as that number (0.07 ×
// 100 is 7).
std::uint64_t CountOfRatio(double ratio, std::uint64_t elements);

// The number if rows are separate: that of each row, added up.
std::uint64_t CountOfRatio(double ratio, const CodecShape& shape);

// The k-th largest of magnitudes, and the number of larger ones; 1 <= k <= size. Takes linear time
// and overwrites the magnitudes.
struct RankedMagnitude {
  std::uint32_t magnitude = 0;
  std::size_t larger = 0;
};
RankedMagnitude KthLargest(std::uint32_t* magnitudes, std::size_t size, std::size_t k);
// Finds places of values by their magnitudes. Reuses its memory from call to call: an object is
// used by one thread at a time. Finds places of values by their magnitudes. Reuses its memory from
// call to call.
class PlaceFinder {
 public:
  // Appends the places of the k largest magnitudes among values[0, size), each plus `first`, in
  // ascending order; of equal ones those at the lower places. 1 <= k <= size. False: there is a NaN
  // or an infinity among all the values.
  [[nodiscard]] bool AppendLargest(const float* values, std::size_t size, std::size_t k,
                                   std::uint32_t first, std::vector<std::uint32_t>* places);

  // Appends the places of all whose magnitude has at least these bits. False as above.
  [[nodiscard]] bool AppendAtLeast(const float* values, std::size_t size, std::uint32_t magnitude,
                                   std::uint32_t first, std::vector<std::uint32_t>* places);

 private:
  bool AppendBySample(const float* values, std::size_t size, std::size_t k, std::uint32_t first,
                      std::vector<std::uint32_t>* places, bool* finite);

  std::vector<std::uint32_t> magnitudes_;
  std::vector<std::uint32_t> candidates_;
};

// For a whole message: the places of the CountOfRatio(ratio, elements) largest magnitudes of all,
// or of each row if rows are separate. False as above.
[[nodiscard]] bool FindLargest(const float* values, const CodecShape& shape, double ratio,
                               std::vector<std::uint32_t>* places);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_LARGEST_H_
