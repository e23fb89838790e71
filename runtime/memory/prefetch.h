// PrefetchAhead and PrefetchStretch load memory into the processor's cache before a loop needs it.
//
// The hardware prefetches sequential reads, but only up to the end of a page, and each page begins
// with several stalls. That costs most where another core has just written the memory, such as a
// message that a transport received.
#ifndef LEEWAY_RUNTIME_MEMORY_PREFETCH_H_
#define LEEWAY_RUNTIME_MEMORY_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <span>

namespace leeway::runtime {

inline constexpr std::size_t kCacheLine = 64;

// For a loop that processes `stretch` elements at a time and is about to process those from `begin`
// on: prefetches as many elements, kPrefetchAhead bytes further on, within `all`. It must be
// inlined: the compiler removes calls of functions that only prefetch, because it takes them to
// have no effect.
inline constexpr std::size_t kPrefetchAhead = 2048;

template <class T>
[[gnu::always_inline]] inline void PrefetchAhead(std::span<const T> all, std::size_t begin,
                                                 std::size_t stretch) {
  const std::span<const std::byte> bytes = std::as_bytes(all);
  const std::size_t first = begin * sizeof(T) + kPrefetchAhead;
  const std::size_t end = std::min(first + stretch * sizeof(T), bytes.size());
  for (std::size_t at = first; at < end; at += kCacheLine) __builtin_prefetch(bytes.data() + at);
}

// Prefetches those bytes to the second-level cache: for memory that is about to be read or written
// once, in amounts too large for the first level. The addresses need not be mapped.
[[gnu::always_inline]] inline void PrefetchStretch(const void* begin, std::size_t bytes) {
  constexpr int kSecondCache = 2;
  const char* const from = static_cast<const char*>(begin);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(from + at, /*rw=*/0, kSecondCache);
  }
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_PREFETCH_H_
