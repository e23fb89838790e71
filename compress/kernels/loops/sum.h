// The sum of several arrays in one pass: a few vectors of the sum at a time stay in registers while
// all arrays are added to them.
//
// Each array is prefetched some way ahead. The processor finds as many streams as there are arrays
// by itself, but keeps too few lines of each under way where memory answers late (as on a machine
// whose last cache is shared with others), and begins anew on each page. Where memory answers at
// once the prefetches cost nothing.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_SUM_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_SUM_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/loops/halves.h"
#include "compress/kernels/loops/vectors.h"
#include "compress/kernels/update_kernels.h"

namespace leeway::compress {
namespace {

template <class Stored>
using SummedAs = typename AddedAs<ComputeOf<Stored>>::Type;

template <class Stored>
LEEWAY_INLINE SummedAs<Stored> One(const Stored* from) {
  if constexpr (kIsHalf<Stored>) {
    return FormatOf<Stored>::Widen(from->bits);
  } else {
    return static_cast<SummedAs<Stored>>(*from);
  }
}

template <class Stored>
LEEWAY_INLINE void SumOne(const Stored* const* from, std::size_t count, std::size_t at,
                          ComputeOf<Stored> scale, ComputeOf<Stored>* to) {
  SummedAs<Stored> sum = One(from[0] + at);
  for (std::size_t k = 1; k < count; ++k) sum += One(from[k] + at);
  if constexpr (!std::is_integral_v<Stored>) sum *= scale;
  *to = static_cast<ComputeOf<Stored>>(sum);
}

#if LEEWAY_ONE_AT_A_TIME

template <class Stored>
void Sum(const Stored* const* from, std::size_t count, std::size_t first, std::size_t size,
         ComputeOf<Stored> scale, ComputeOf<Stored>* to) {
  for (std::size_t i = 0; i < size; ++i) SumOne(from, count, first + i, scale, to + i);
}

#else

template <class Stored>
LEEWAY_INLINE Vector<SummedAs<Stored>> OneVector(const Stored* from) {
  if constexpr (kIsHalf<Stored>) {
    return FormatOf<Stored>::WidenVector(from);
  } else {
    return Read(reinterpret_cast<const SummedAs<Stored>*>(from));
  }
}

// Lines beyond an array's end are fetched in vain: few enough, even for small arrays.
constexpr std::size_t kSumAhead = 1024;  // bytes

// All lines of so many vectors. By number: beyond an end no pointer may point.
template <int vectors, class Stored>
LEEWAY_INLINE void FetchAhead(const Stored* from) {
  constexpr std::size_t kLine = 64;
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(from) + kSumAhead;
#pragma GCC unroll 8
  for (std::size_t at = 0; at < vectors * kLanes<SummedAs<Stored>> * sizeof(Stored); at += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + at));
  }
}

template <int vectors, class Stored>
LEEWAY_INLINE void SumVectors(const Stored* const* from, std::size_t count, std::size_t at,
                              ComputeOf<Stored> scale, ComputeOf<Stored>* to) {
  constexpr std::size_t lanes = kLanes<SummedAs<Stored>>;
  Vector<SummedAs<Stored>> sum[vectors];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) sum[v] = OneVector(from[0] + at + v * lanes);
  FetchAhead<vectors>(from[0] + at);
  for (std::size_t k = 1; k < count; ++k) {
    const Stored* const more = from[k] + at;
    FetchAhead<vectors>(more);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[v] += OneVector(more + v * lanes);
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    if constexpr (!std::is_integral_v<Stored>) sum[v] *= scale;
    Write(reinterpret_cast<SummedAs<Stored>*>(to) + v * lanes, sum[v]);
  }
}

template <class Stored>
void Sum(const Stored* const* from, std::size_t count, std::size_t first, std::size_t size,
         ComputeOf<Stored> scale, ComputeOf<Stored>* to) {
  constexpr std::size_t lanes = kLanes<SummedAs<Stored>>;
  std::size_t i = 0;
  for (; i + kVectorsAtOnce * lanes <= size; i += kVectorsAtOnce * lanes) {
    SumVectors<kVectorsAtOnce>(from, count, first + i, scale, to + i);
  }
  for (; i + lanes <= size; i += lanes) SumVectors<1>(from, count, first + i, scale, to + i);
  for (; i < size; ++i) SumOne(from, count, first + i, scale, to + i);
}

#endif

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_SUM_H_
