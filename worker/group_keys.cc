#include "worker/group_keys.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "proto/shard_of_keys.h"
#include "worker/sort_keys.h"

namespace leeway::worker {
namespace {

// `key(i)` ascends; `repeats_last(i)` tells whether it is key(i - 1), and `place(i)` where it
// stood.
template <class KeyAt, class PlaceAt, class RepeatsLast>
GroupedKeys Group(std::size_t size, std::uint32_t num_shards, const KeyAt& key,
                  const PlaceAt& place, const RepeatsLast& repeats_last) {
  // How many unique keys, and how many places, each shard has.
  const proto::ShardOfKeys shard_of_key(num_shards);
  const auto shard_of = std::make_unique_for_overwrite<std::uint32_t[]>(size);
  std::vector<std::size_t> places_in(num_shards + 1, 0);
  GroupedKeys grouped;
  grouped.shard_begin.assign(num_shards + 1, 0);
  std::size_t unique = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool repeat = repeats_last(i);
    shard_of[i] = repeat ? shard_of[i - 1] : shard_of_key(key(i));
    ++places_in[shard_of[i] + 1];
    if (repeat) continue;
    ++grouped.shard_begin[shard_of[i] + 1];
    ++unique;
  }
  for (std::size_t s = 0; s < num_shards; ++s) {
    grouped.shard_begin[s + 1] += grouped.shard_begin[s];
    places_in[s + 1] += places_in[s];
  }

  // Ascending keys drop into their shards' ranges one after the other, so each range ascends.
  std::vector<std::size_t> next_key(grouped.shard_begin.begin(), grouped.shard_begin.end() - 1);
  std::vector<std::size_t> next_place(places_in.begin(), places_in.end() - 1);
  grouped.keys.resize(unique);
  grouped.order.resize(size);
  const bool repeats = unique != size;
  if (repeats) {
    grouped.begin.resize(unique + 1);
    grouped.begin[unique] = size;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t shard = shard_of[i];
    const std::size_t to = next_place[shard]++;
    grouped.order[to] = place(i);
    if (repeats_last(i)) continue;
    const std::size_t group = next_key[shard]++;
    grouped.keys[group] = key(i);
    if (repeats) grouped.begin[group] = to;
  }
  return grouped;
}

}  // namespace

GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards) {
  if (std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end()) {
    return Group(
        keys.size(), num_shards, [&](std::size_t i) { return keys[i]; },
        [](std::size_t i) { return i; }, [](std::size_t) { return false; });
  }
  const std::vector<PlacedKey> sorted = SortedByKey(keys);
  return Group(
      sorted.size(), num_shards, [&](std::size_t i) { return sorted[i].key; },
      [&](std::size_t i) { return sorted[i].place; },
      [&](std::size_t i) { return i > 0 && sorted[i].key == sorted[i - 1].key; });
}

}  // namespace leeway::worker
