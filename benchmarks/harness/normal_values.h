// NormalValues returns normally distributed floats, in place of gradients where a codec depends on
// their values.
#ifndef LEEWAY_BENCHMARKS_HARNESS_NORMAL_VALUES_H_
#define LEEWAY_BENCHMARKS_HARNESS_NORMAL_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/random.h"

namespace leeway::bench {

// `size` floats: 200,003 are drawn and then repeated, which is no multiple of a block.
inline std::vector<float> NormalValues(std::size_t size, std::uint64_t seed) {
  constexpr std::size_t kDrawn = 200'003;
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = i < kDrawn ? static_cast<float>(runtime::NormalAt(seed, 0, i)) : values[i - kDrawn];
  }
  return values;
}

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_NORMAL_VALUES_H_
