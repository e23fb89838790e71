// CopyAhead is a memcpy for large arrays that are not in the processor's cache, such as one that a
// user gave.
#ifndef LEEWAY_RUNTIME_MEMORY_COPY_AHEAD_H_
#define LEEWAY_RUNTIME_MEMORY_COPY_AHEAD_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/memory/prefetch.h"

namespace leeway::runtime {

// Copies as memcpy does; the ranges do not overlap. The fastest form of memcpy, one instruction for
// the whole range, stalls at the start of each page that is not cached, so this prefetches one page
// ahead.
inline void CopyAhead(const void* from, std::size_t size, void* to) {
  constexpr std::size_t kStretch = 1024;
  constexpr std::size_t kAhead = 4096;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  while (size > 0) {
    // A size that the compiler does not know: for a constant size it would emit that instruction.
    const std::size_t part = std::min(kStretch, size);
    if (size >= kAhead + kStretch) {
      PrefetchStretch(source + kAhead, kStretch);
      PrefetchStretch(target + kAhead, kStretch);
    }
    std::memcpy(target, source, part);
    source += part;
    target += part;
    size -= part;
  }
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_COPY_AHEAD_H_
