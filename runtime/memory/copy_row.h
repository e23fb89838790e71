// CopyRow copies a row inline: most rows are a few cache lines, too few to pay for a call.
#ifndef LEEWAY_RUNTIME_MEMORY_COPY_ROW_H_
#define LEEWAY_RUNTIME_MEMORY_COPY_ROW_H_

#include <cstddef>
#include <cstring>

namespace leeway::runtime {

// Copies `bytes` bytes; the ranges do not overlap.
inline void CopyRow(const void* from, std::size_t bytes, void* to) {
  constexpr std::size_t kStep = 32;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (; bytes >= kStep; bytes -= kStep, source += kStep, target += kStep) {
    std::memcpy(target, source, kStep);
  }
  if (bytes != 0) std::memcpy(target, source, bytes);
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_COPY_ROW_H_
