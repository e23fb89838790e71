// A copy to memory that nobody has touched lately, such as a large array that a user gave.
#ifndef LEEWAY_RUNTIME_MEMORY_COPY_AHEAD_H_
#define LEEWAY_RUNTIME_MEMORY_COPY_AHEAD_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/memory/prefetch.h"

namespace leeway::runtime {

// As memcpy does. What memcpy is fastest with, one instruction for the whole, waits anew at each
// page for memory that is in no near cache; so it is asked for a page ahead.
inline void CopyAhead(const void* from, std::size_t size, void* to) {
  constexpr std::size_t kStretch = 1024;
  constexpr std::size_t kAhead = 4096;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  while (size > 0) {
    // A size that the compiler does not know: it would copy a known one by that very instruction.
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
