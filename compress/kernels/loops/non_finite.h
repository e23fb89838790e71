// The search for a NaN or an infinity among numbers.
//
// A number is not finite when its exponent is all ones: then, and only then, adding one to the
// exponent carries into the sign bit. Integer operations alone, so that it vectorises.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_NON_FINITE_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_NON_FINITE_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/loops/vectors.h"
#include "leeway/dtype.h"

namespace leeway::compress {
namespace {

template <class T>
struct ExponentOf;
template <>
struct ExponentOf<float> {
  using Bits = std::uint32_t;
  static constexpr Bits all = 0x7f800000u, one = 0x00800000u;
};
template <>
struct ExponentOf<double> {
  using Bits = std::uint64_t;
  static constexpr Bits all = 0x7ff0000000000000u, one = 0x0010000000000000u;
};
template <>
struct ExponentOf<Float16> {
  using Bits = std::uint16_t;
  static constexpr Bits all = 0x7c00u, one = 0x0400u;
};
template <>
struct ExponentOf<BFloat16> {
  using Bits = std::uint16_t;
  static constexpr Bits all = 0x7f80u, one = 0x0080u;
};

// The carry of the addition, in the sign bit.
template <class T>
LEEWAY_INLINE typename ExponentOf<T>::Bits Carried(const T* from, std::size_t size) {
  using Exponent = ExponentOf<T>;
  typename Exponent::Bits carried = 0;
  for (std::size_t i = 0; i < size; ++i) {
    typename Exponent::Bits bits;
    __builtin_memcpy(&bits, from + i, sizeof(bits));
    carried = static_cast<decltype(bits)>(carried | ((bits & Exponent::all) + Exponent::one));
  }
  return carried;
}

// Values that have just been received were written by another core, and to wait for each page takes
// longer than to look at it: hence the prefetching, as far as what is looked at goes.
template <class T>
bool AnyNonFinite(const T* from, std::size_t size) {
  constexpr std::size_t kStretchBytes = 256;  // between two looks at the result
  constexpr std::size_t kAheadBytes = 2048;
  constexpr std::size_t kLineBytes = 64;
  constexpr std::size_t kStretch = kStretchBytes / sizeof(T);
  constexpr std::size_t kAhead = kAheadBytes / sizeof(T);
  constexpr int kSign = sizeof(T) * 8 - 1;
  std::size_t i = 0;
  for (; i + kStretch + kAhead <= size; i += kStretch) {
    for (std::size_t at = 0; at < kStretch; at += kLineBytes / sizeof(T)) {
      __builtin_prefetch(from + i + kAhead + at);
    }
    if (Carried(from + i, kStretch) >> kSign != 0) return true;
  }
  for (; i + kStretch <= size; i += kStretch) {
    if (Carried(from + i, kStretch) >> kSign != 0) return true;
  }
  return Carried(from + i, size - i) >> kSign != 0;
}

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_NON_FINITE_H_
