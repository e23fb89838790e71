// Values at which arithmetic goes wrong, for tests, and a comparison under which NaNs are equal.
#ifndef LEEWAY_COMPRESS_KERNELS_TESTING_HARD_VALUES_H_
#define LEEWAY_COMPRESS_KERNELS_TESTING_HARD_VALUES_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "leeway/dtype.h"
#include "runtime/base/random.h"

namespace leeway::compress {

// Runs of elements that kernels are tried on.
inline constexpr std::size_t kSizeMax = 200;
inline constexpr std::size_t kStartMax = 3;  // elements
inline constexpr std::size_t kGuard = 16;    // elements behind a run that nobody may touch

template <class T>
T FromRandomBits(runtime::Random& random) {
  const std::uint64_t bits = random.Next();
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

// Some of any bits, NaNs among them; infinities, zeros and denormals; mostly ordinary ones.
template <class T>
T HardValue(runtime::Random& random) {
  if (random.Below(4) == 0) return FromRandomBits<T>(random);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random.Below(1000));
  } else {
    using Limits = std::numeric_limits<ComputeOf<T>>;
    const ComputeOf<T> extremes[] = {0,
                                     -ComputeOf<T>{0},
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN(),
                                     Limits::denorm_min(),
                                     -Limits::min() / 2,
                                     Limits::max(),
                                     6e-8f,
                                     65504};
    if (random.Below(4) == 0) return static_cast<T>(extremes[random.Below(std::size(extremes))]);
    return static_cast<T>(static_cast<ComputeOf<T>>(random.Below(1 << 20)) / (1 << 18) - 2);
  }
}

template <class T>
std::vector<T> HardValues(std::size_t size, runtime::Random& random) {
  std::vector<T> values(size);
  for (T& value : values) value = HardValue<T>(random);
  return values;
}

// Whether both have the same bits, or both are NaN.
template <class T>
bool Same(T a, T b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<ComputeOf<T>>(a)) && std::isnan(static_cast<ComputeOf<T>>(b));
  }
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_TESTING_HARD_VALUES_H_
