// Sorts keys and remembers where each of them stood.
#ifndef LEEWAY_WORKER_SLICING_SORT_KEYS_H_
#define LEEWAY_WORKER_SLICING_SORT_KEYS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace leeway::worker {

struct PlacedKey {
  std::uint64_t key;
  std::uint64_t place;  // where it stood

  bool operator==(const PlacedKey&) const = default;
};

// In ascending order of key, then of place. Takes time in proportion to their number.
std::vector<PlacedKey> SortedByKey(std::span<const std::uint64_t> keys);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_SORT_KEYS_H_
