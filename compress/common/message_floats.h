// ForEachStretch, AllFinite and AddFloats read the floats of a message, which may lie at any
// address. Any thread.
#ifndef LEEWAY_COMPRESS_COMMON_MESSAGE_FLOATS_H_
#define LEEWAY_COMPRESS_COMMON_MESSAGE_FLOATS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "compress/kernels/kernels.h"

namespace leeway::compress {

// Calls `with(floats, begin, count)` for one stretch after the other, copied to aligned memory.
template <class With>
void ForEachStretch(const std::byte* bytes, std::size_t size, With with) {
  std::array<float, 1024> floats;
  for (std::size_t begin = 0; begin < size; begin += floats.size()) {
    const std::size_t count = std::min(floats.size(), size - begin);
    std::memcpy(floats.data(), bytes + begin * sizeof(float), count * sizeof(float));
    with(static_cast<const float*>(floats.data()), begin, count);
  }
}

// True if none is NaN or infinite; then writes the largest magnitude.
inline bool AllFinite(const std::byte* bytes, std::size_t size, float* largest = nullptr) {
  float found = 0;
  bool finite = true;
  ForEachStretch(bytes, size, [&](const float* floats, std::size_t, std::size_t count) {
    const float one = ChosenKernels().reduce.max_abs(floats, count);
    finite = finite && std::isfinite(one);
    found = std::max(found, one);
  });
  if (finite && largest != nullptr) *largest = found;
  return finite;
}

inline void AddFloats(const std::byte* bytes, std::size_t size, float factor, float* sum) {
  ForEachStretch(bytes, size, [&](const float* floats, std::size_t begin, std::size_t count) {
    ChosenKernels().reduce.add(floats, count, factor, sum + begin);
  });
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_MESSAGE_FLOATS_H_
