#include "worker/group_keys.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "proto/layout.h"

namespace leeway::worker {
namespace {

bool SortedAndUnique(std::span<const std::uint64_t> keys) {
  return std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end();
}

// Places of the keys in ascending order of key, then of place.
std::vector<std::uint64_t> SortedPlaces(std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> places(keys.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  if (SortedAndUnique(keys)) return places;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) sorted[i] = {keys[i], i};
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) places[i] = sorted[i].second;
  return places;
}

}  // namespace

GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards) {
  const std::vector<std::uint64_t> sorted = SortedPlaces(keys);
  const auto repeats_last = [&](std::size_t i) {
    return i > 0 && keys[sorted[i]] == keys[sorted[i - 1]];
  };

  // How many unique keys, and how many places, each shard has.
  std::vector<std::uint32_t> shard_of(sorted.size());
  std::vector<std::size_t> places_in(num_shards + 1, 0);
  GroupedKeys grouped;
  grouped.shard_begin.assign(num_shards + 1, 0);
  std::size_t unique = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool repeat = repeats_last(i);
    shard_of[i] = repeat ? shard_of[i - 1] : proto::ShardOfKey(keys[sorted[i]], num_shards);
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
  grouped.order.resize(sorted.size());
  const bool repeats = unique != sorted.size();
  if (repeats) {
    grouped.begin.resize(unique + 1);
    grouped.begin[unique] = sorted.size();
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::uint32_t shard = shard_of[i];
    const std::size_t place = next_place[shard]++;
    grouped.order[place] = sorted[i];
    if (repeats_last(i)) continue;
    const std::size_t key = next_key[shard]++;
    grouped.keys[key] = keys[sorted[i]];
    if (repeats) grouped.begin[key] = place;
  }
  return grouped;
}

}  // namespace leeway::worker
