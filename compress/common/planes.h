// SplitPlanes and JoinPlanes take elements of 1, 2, 4 or 8 bytes apart into planes, the bytes of
// equal significance, from the least significant one, and put them together again.
#ifndef LEEWAY_COMPRESS_COMMON_PLANES_H_
#define LEEWAY_COMPRESS_COMMON_PLANES_H_

#include <cstddef>
#include <cstring>

#include "compress/kernels/kernels.h"

namespace leeway::compress {

inline constexpr std::size_t kPlanesMax = 8;

// Writes the planes of `size` elements to `to`, one behind the other.
inline void SplitPlanes(const std::byte* from, std::size_t size, std::size_t planes,
                        std::byte* to) {
  const ShuffleKernels& kernels = ChosenKernels().shuffle;
  if (planes == 1) {
    if (size > 0) std::memcpy(to, from, size);
    return;
  }
  const auto split = planes == 2 ? kernels.split2 : planes == 4 ? kernels.split4 : kernels.split8;
  split(from, size, to);
}

// `from` has the address of each plane.
inline void JoinPlanes(const std::byte* const* from, std::size_t size, std::size_t planes,
                       std::byte* to) {
  const ShuffleKernels& kernels = ChosenKernels().shuffle;
  if (planes == 1) {
    if (size > 0) std::memcpy(to, *from, size);
    return;
  }
  const auto join = planes == 2 ? kernels.join2 : planes == 4 ? kernels.join4 : kernels.join8;
  join(from, size, to);
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_PLANES_H_
