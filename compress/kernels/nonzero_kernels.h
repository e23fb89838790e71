// The kernels that mark the elements that are not zero, or not those of another array.
#ifndef LEEWAY_COMPRESS_KERNELS_NONZERO_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_NONZERO_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace leeway::compress {

// Elements of 2, 4 or 8 bytes, at any alignment. Bit i mod 64 of word i / 64 is 1 if element i has
// a bit that is set (so −0 counts as not zero); bits beyond the last element are 0.
struct NonzeroKernels {
  void (*mark2)(const std::byte* from, std::size_t size, std::uint64_t* words);
  void (*mark4)(const std::byte* from, std::size_t size, std::uint64_t* words);
  void (*mark8)(const std::byte* from, std::size_t size, std::uint64_t* words);
  // Elements of 1 byte, too. Bit i mod 64 of word i / 64 is 1 if element i of the one array has
  // another bit than that of the other.
  void (*differ1)(const std::byte* from, const std::byte* others, std::size_t size,
                  std::uint64_t* words);
  void (*differ2)(const std::byte* from, const std::byte* others, std::size_t size,
                  std::uint64_t* words);
  void (*differ4)(const std::byte* from, const std::byte* others, std::size_t size,
                  std::uint64_t* words);
  void (*differ8)(const std::byte* from, const std::byte* others, std::size_t size,
                  std::uint64_t* words);
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_NONZERO_KERNELS_H_
