// The kernels of codecs that send a few of the elements: they find these, and accumulate for DGC.
#ifndef LEEWAY_COMPRESS_KERNELS_SPARSE_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_SPARSE_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

// A Bloom filter: a place is in it if all of its `hashes` bits are set. The bits of a place p,
// in arithmetic modulo 2^32: h is MurmurHash3's 32-bit finaliser of p (Appleby 2008), under which
// no two places collide, and g = ((h × 0x9e3779b9) ^ (h >> 15)) | 1. Bit number j is
// h + j g + j (j − 1) / 2 × 0x7feb352d, scaled to [0, bits): its product with `bits`, over 2^32
// (double hashing, Kirsch and Mitzenmacher 2006; the last term keeps a place's bits apart where g
// is close to a simple fraction of 2^32). Bit b lies in words[b / 32], at b mod 32.
struct BloomFilter {
  const std::uint32_t* words = nullptr;
  std::uint32_t bits = 0;    // at least 1
  std::uint32_t hashes = 0;  // at least 1
};

struct SparseKernels {
  // Writes first + i, in order, for each element i whose magnitude has at least these bits (an
  // IEEE 754 number without its sign), and returns their number. Infinity and NaN are larger than
  // every number. `places` has room for `size` of them.
  std::size_t (*select)(const float* values, std::size_t size, std::uint32_t magnitude,
                        std::uint32_t first, std::uint32_t* places);
  // Sets the bits of these places in words.
  void (*add_to_filter)(const std::uint32_t* places, std::size_t size, std::uint32_t bits,
                        std::uint32_t hashes, std::uint32_t* words);
  // Writes those of first, first + 1, … that are in the filter, in order, and returns their number.
  // `places` has room for `size` of them.
  std::size_t (*select_in_filter)(const BloomFilter& filter, std::uint32_t first, std::size_t size,
                                  std::uint32_t* places);
  // Adds factor × the next of the values to sum[i] for each i whose bit is set, bit i mod 8 of
  // bitmap[i / 8], and returns the bits of the values' largest magnitude. The values are floats of
  // any alignment, as many as bits are set; `size` is a multiple of 8.
  std::uint32_t (*add_where_set)(const std::byte* bitmap, std::size_t size, const std::byte* values,
                                 std::size_t num_values, float factor, float* sum);
  // velocity[i] = momentum × velocity[i] + factor × gradient[i], and sum[i] += velocity[i], both
  // clamped to the largest finite number.
  void (*accumulate)(const float* gradient, std::size_t size, float factor, float momentum,
                     float* velocity, float* sum);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_SPARSE_KERNELS_H_
