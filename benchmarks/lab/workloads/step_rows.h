// The rows of sparse tables that a step uses: their keys, and where each key's row is.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_STEP_ROWS_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_STEP_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace leeway::lab {

// Sorts the keys, and keeps each once: as Step::keys has them.
inline void KeepEachOnce(std::vector<std::uint64_t>* keys) {
  std::ranges::sort(*keys);
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
}

// The index of a key that is there.
inline std::size_t RowOf(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
  return static_cast<std::size_t>(std::ranges::lower_bound(keys, key) - keys.begin());
}

// The keys 0 to count - 1.
inline std::vector<std::uint64_t> FirstKeys(std::size_t count) {
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), 0u);
  return keys;
}

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_STEP_ROWS_H_
