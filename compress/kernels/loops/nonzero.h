// The loops that mark nonzero elements, one bit for each, 64 at a time.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_NONZERO_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_NONZERO_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compress/kernels/nonzero_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace leeway::compress {
namespace {

constexpr std::size_t kMarkedAtOnce = 64;

// At any address: a vector of elements may begin in the midst of a frame.
template <class Unsigned>
inline Unsigned MarkedElement(const std::byte* from, std::size_t i) {
  Unsigned element;
  std::memcpy(&element, from + i * sizeof(Unsigned), sizeof(Unsigned));
  return element;
}

template <class Unsigned>
inline std::uint64_t MarkSome(const std::byte* from, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    word |= static_cast<std::uint64_t>(MarkedElement<Unsigned>(from, i) != 0) << i;
  }
  return word;
}

// 64 elements. Most often all are zero, so that is checked before any bit is made.
template <class Unsigned>
inline std::uint64_t MarkWord(const std::byte* from) {
  Unsigned any = 0;
  for (std::size_t i = 0; i < kMarkedAtOnce; ++i) {
    any = static_cast<Unsigned>(any | MarkedElement<Unsigned>(from, i));
  }
  return any == 0 ? 0 : MarkSome<Unsigned>(from, kMarkedAtOnce);
}

#if defined(__AVX2__)
inline __m256i MarkVector(const void* from, std::size_t vector) {
  return _mm256_loadu_si256(static_cast<const __m256i_u*>(from) + vector);
}

template <>
inline std::uint64_t MarkWord<std::uint16_t>(const std::byte* from) {
  const __m256i zero = _mm256_setzero_si256();
  std::uint64_t zeros = 0;
  for (std::size_t half = 0; half < 2; ++half) {
    const __m256i low = _mm256_cmpeq_epi16(MarkVector(from, 2 * half), zero);
    const __m256i high = _mm256_cmpeq_epi16(MarkVector(from, 2 * half + 1), zero);
    // Packing leaves quarters in the order low, high, low, high.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
    zeros |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(packed)))
             << (32 * half);
  }
  return ~zeros;
}

template <>
inline std::uint64_t MarkWord<std::uint32_t>(const std::byte* from) {
  const __m256i zero = _mm256_setzero_si256();
  std::uint64_t zeros = 0;
  for (std::size_t v = 0; v < 8; ++v) {
    const __m256i equal = _mm256_cmpeq_epi32(MarkVector(from, v), zero);
    const int mask = _mm256_movemask_ps(_mm256_castsi256_ps(equal));
    zeros |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(mask)) << (8 * v);
  }
  return ~zeros;
}

template <>
inline std::uint64_t MarkWord<std::uint64_t>(const std::byte* from) {
  const __m256i zero = _mm256_setzero_si256();
  std::uint64_t zeros = 0;
  for (std::size_t v = 0; v < 16; ++v) {
    const __m256i equal = _mm256_cmpeq_epi64(MarkVector(from, v), zero);
    const int mask = _mm256_movemask_pd(_mm256_castsi256_pd(equal));
    zeros |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(mask)) << (4 * v);
  }
  return ~zeros;
}
#endif

template <class Unsigned>
void Mark(const std::byte* from, std::size_t size, std::uint64_t* words) {
  std::size_t i = 0;
  for (; i + kMarkedAtOnce <= size; i += kMarkedAtOnce) {
    words[i / kMarkedAtOnce] = MarkWord<Unsigned>(from + i * sizeof(Unsigned));
  }
  if (i < size)
    words[i / kMarkedAtOnce] = MarkSome<Unsigned>(from + i * sizeof(Unsigned), size - i);
}

constexpr NonzeroKernels kNonzeroLoops = {
    .mark2 = Mark<std::uint16_t>, .mark4 = Mark<std::uint32_t>, .mark8 = Mark<std::uint64_t>};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_NONZERO_H_
