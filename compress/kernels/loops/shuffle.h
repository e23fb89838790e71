// The loops that gather bytes of equal significance, and the inverse: shifts of whole elements,
// which the compiler vectorises.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_SHUFFLE_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_SHUFFLE_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/shuffle_kernels.h"

namespace leeway::compress {
namespace {

template <class Unsigned>
struct Shuffled {
  // At any address.
  using Anywhere [[gnu::aligned(1), gnu::may_alias]] = Unsigned;
  static constexpr std::size_t kPlanes = sizeof(Unsigned);

  static void Split(const std::byte* __restrict from, std::size_t size, std::byte* __restrict to) {
    const Anywhere* const elements = reinterpret_cast<const Anywhere*>(from);
    for (std::size_t p = 0; p < kPlanes; ++p) {
      std::byte* __restrict const plane = to + p * size;
      for (std::size_t i = 0; i < size; ++i)
        plane[i] = static_cast<std::byte>(elements[i] >> (8 * p));
    }
  }

  static inline Unsigned Joined(const std::byte* const* planes, std::size_t i) {
    Unsigned element = 0;
#pragma GCC unroll 8
    for (std::size_t p = 0; p < kPlanes; ++p) {
      element = static_cast<Unsigned>(element | static_cast<Unsigned>(planes[p][i]) << (8 * p));
    }
    return element;
  }

  static void Join(const std::byte* const* planes, std::size_t size, std::byte* __restrict to) {
    const std::byte* own[kPlanes];
    for (std::size_t p = 0; p < kPlanes; ++p) own[p] = planes[p];
    Anywhere* const elements = reinterpret_cast<Anywhere*>(to);
    for (std::size_t i = 0; i < size; ++i) elements[i] = Joined(own, i);
  }
};

void JoinAdd(const std::byte* const* planes, std::size_t size, float factor,
             float* __restrict sum) {
  const std::byte* own[4];
  for (std::size_t p = 0; p < 4; ++p) own[p] = planes[p];
  for (std::size_t i = 0; i < size; ++i) {
    sum[i] += factor * __builtin_bit_cast(float, Shuffled<std::uint32_t>::Joined(own, i));
  }
}

constexpr ShuffleKernels kShuffleLoops = {.split2 = Shuffled<std::uint16_t>::Split,
                                          .split4 = Shuffled<std::uint32_t>::Split,
                                          .split8 = Shuffled<std::uint64_t>::Split,
                                          .join2 = Shuffled<std::uint16_t>::Join,
                                          .join4 = Shuffled<std::uint32_t>::Join,
                                          .join8 = Shuffled<std::uint64_t>::Join,
                                          .join_add = JoinAdd};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_SHUFFLE_H_
