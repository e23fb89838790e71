// The loops that mark elements that are not zero, or not those of another array: one bit for each,
// 64 at a time.
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

// What elements are compared with: zeros, or those of another array.
struct Zeros {
  Zeros Behind(std::size_t) const { return {}; }
  template <class Unsigned>
  void Fetch(const std::byte*, std::size_t) const {}
  template <class Unsigned>
  Unsigned Element(std::size_t) const {
    return 0;
  }
#if defined(__AVX2__)
  __m256i Vector(std::size_t) const { return _mm256_setzero_si256(); }
#endif
};

struct Others {
  const std::byte* at;

  Others Behind(std::size_t bytes) const { return {at + bytes}; }
  // Fetches the 64 elements of both arrays that will be compared some time after those at these
  // addresses: a processor's own prefetching stops at the end of a page, and where the caller
  // pauses.
  template <class Unsigned>
  void Fetch(const std::byte* from, std::size_t bytes) const {
    constexpr std::size_t kLineBytes = 64, kAheadBytes = 2048;
    for (std::size_t line = 0; line < kMarkedAtOnce * sizeof(Unsigned); line += kLineBytes) {
      __builtin_prefetch(from + kAheadBytes + line);
      __builtin_prefetch(at + bytes + kAheadBytes + line);
    }
  }
  template <class Unsigned>
  Unsigned Element(std::size_t i) const {
    return MarkedElement<Unsigned>(at, i);
  }
#if defined(__AVX2__)
  __m256i Vector(std::size_t vector) const {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(at) + vector);
  }
#endif
};

template <class Unsigned, class Than>
inline std::uint64_t MarkSome(const std::byte* from, Than than, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool differs = MarkedElement<Unsigned>(from, i) != than.template Element<Unsigned>(i);
    word |= static_cast<std::uint64_t>(differs) << i;
  }
  return word;
}

#if defined(__AVX2__)
// One bit for each element of vector number v, or of that and the next one where elements have 2
// bytes: 1 if it is equal.
template <class Unsigned, class Than>
inline std::uint32_t EqualInVector(const std::byte* from, Than than, std::size_t v) {
  const __m256i left = Others{from}.Vector(v), right = than.Vector(v);
  int mask = 0;
  if constexpr (sizeof(Unsigned) == 1) {
    mask = _mm256_movemask_epi8(_mm256_cmpeq_epi8(left, right));
  } else if constexpr (sizeof(Unsigned) == 2) {
    const __m256i low = _mm256_cmpeq_epi16(left, right);
    const __m256i high = _mm256_cmpeq_epi16(Others{from}.Vector(v + 1), than.Vector(v + 1));
    // Packing leaves quarters in the order low, high, low, high.
    mask = _mm256_movemask_epi8(_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8));
  } else if constexpr (sizeof(Unsigned) == 4) {
    mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(left, right)));
  } else {
    mask = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(left, right)));
  }
  return static_cast<std::uint32_t>(mask);
}
#endif

// 64 elements.
template <class Unsigned, class Than>
inline std::uint64_t MarkWord(const std::byte* from, Than than) {
#if defined(__AVX2__)
  constexpr std::size_t kVectors = sizeof(Unsigned) == 2 ? 2 : 1;
  constexpr std::size_t kBits = kVectors * 32 / sizeof(Unsigned);
  std::uint64_t equal = 0;
  for (std::size_t i = 0; i < kMarkedAtOnce / kBits; ++i) {
    equal |= static_cast<std::uint64_t>(EqualInVector<Unsigned>(from, than, i * kVectors))
             << (i * kBits);
  }
  return ~equal;
#else
  // Most often all are equal, so that is checked before any bit is made.
  Unsigned any = 0;
  for (std::size_t i = 0; i < kMarkedAtOnce; ++i) {
    const auto changed = MarkedElement<Unsigned>(from, i) ^ than.template Element<Unsigned>(i);
    any = static_cast<Unsigned>(any | changed);
  }
  return any == 0 ? 0 : MarkSome<Unsigned>(from, than, kMarkedAtOnce);
#endif
}

template <class Unsigned, class Than>
inline void MarkAll(const std::byte* from, Than than, std::size_t size, std::uint64_t* words) {
  std::size_t i = 0;
  for (; i + kMarkedAtOnce <= size; i += kMarkedAtOnce) {
    const std::size_t at = i * sizeof(Unsigned);
    than.template Fetch<Unsigned>(from + at, at);
    words[i / kMarkedAtOnce] = MarkWord<Unsigned>(from + at, than.Behind(at));
  }
  const std::size_t at = i * sizeof(Unsigned);
  if (i < size) {
    words[i / kMarkedAtOnce] = MarkSome<Unsigned>(from + at, than.Behind(at), size - i);
  }
}

template <class Unsigned>
void Mark(const std::byte* from, std::size_t size, std::uint64_t* words) {
  MarkAll<Unsigned>(from, Zeros(), size, words);
}

template <class Unsigned>
void Differ(const std::byte* from, const std::byte* others, std::size_t size,
            std::uint64_t* words) {
  MarkAll<Unsigned>(from, Others{others}, size, words);
}

constexpr NonzeroKernels kNonzeroLoops = {.mark2 = Mark<std::uint16_t>,
                                          .mark4 = Mark<std::uint32_t>,
                                          .mark8 = Mark<std::uint64_t>,
                                          .differ1 = Differ<std::uint8_t>,
                                          .differ2 = Differ<std::uint16_t>,
                                          .differ4 = Differ<std::uint32_t>,
                                          .differ8 = Differ<std::uint64_t>};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_NONZERO_H_
