// A copy to memory that nobody has touched lately, such as a large array that a user gave.
#ifndef LEEWAY_RUNTIME_COPY_AHEAD_H_
#define LEEWAY_RUNTIME_COPY_AHEAD_H_

#include <cstddef>
#include <cstring>

#include "runtime/prefetch.h"

namespace leeway::runtime {

// As memcpy does. What memcpy is fastest with, one instruction for the whole, waits anew at each
// page for memory that is in no near cache; so it is asked for a page ahead.
inline void CopyAhead(const void* from, std::size_t size, void* to) {
  constexpr std::size_t kStretch = 1024;
  constexpr std::size_t kAhead = 4096;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  for (; size >= kAhead + kStretch; size -= kStretch) {
    PrefetchStretch(source + kAhead, kStretch);
    PrefetchStretch(target + kAhead, kStretch);
    std::memcpy(target, source, kStretch);
    source += kStretch;
    target += kStretch;
  }
  if (size > 0) std::memcpy(target, source, size);
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_COPY_AHEAD_H_
