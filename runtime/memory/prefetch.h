// Memory that is on its way into the cache before it is wanted.
//
// The processor does that by itself for memory that is read from one end to the other, but only as
// far as a page goes, and each page begins with several waits. That counts where memory has just
// been written by another core, as what a transport received has.
#ifndef LEEWAY_RUNTIME_MEMORY_PREFETCH_H_
#define LEEWAY_RUNTIME_MEMORY_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <span>

namespace leeway::runtime {

inline constexpr std::size_t kCacheLine = 64;

// For a loop that takes `stretch` elements at a time and is about to take those from `begin` on:
// fetches as many, `kPrefetchAhead` bytes further on, as far as there are any. Has to be inlined:
// the compiler takes calls of what does nothing else for calls without an effect.
inline constexpr std::size_t kPrefetchAhead = 2048;

template <class T>
[[gnu::always_inline]] inline void PrefetchAhead(std::span<const T> all, std::size_t begin,
                                                 std::size_t stretch) {
  const std::span<const std::byte> bytes = std::as_bytes(all);
  const std::size_t first = begin * sizeof(T) + kPrefetchAhead;
  const std::size_t end = std::min(first + stretch * sizeof(T), bytes.size());
  for (std::size_t at = first; at < end; at += kCacheLine) __builtin_prefetch(bytes.data() + at);
}

// Those bytes, to the second cache: for memory that is about to be read or written once, and of
// which so much is asked for at once that the first would not do. They need not be there.
[[gnu::always_inline]] inline void PrefetchStretch(const void* begin, std::size_t bytes) {
  constexpr int kSecondCache = 2;
  const char* const from = static_cast<const char*>(begin);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(from + at, /*rw=*/0, kSecondCache);
  }
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_PREFETCH_H_
