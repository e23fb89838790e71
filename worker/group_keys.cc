#include "worker/group_keys.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "proto/shard_of_keys.h"
#include "runtime/prefetch.h"
#include "worker/sort_keys.h"

namespace leeway::worker {
namespace {

void MakeRoom(std::size_t unique, std::size_t places, GroupedKeys* grouped) {
  grouped->key_memory = Arena(unique * sizeof(std::uint64_t));
  grouped->order_memory = Arena(places * sizeof(std::uint64_t));
  grouped->keys = {reinterpret_cast<std::uint64_t*>(grouped->key_memory.data()), unique};
  grouped->order = {reinterpret_cast<std::uint64_t*>(grouped->order_memory.data()), places};
}

// [num_shards + 1]: how many come before those of each shard, from how many each has, at one place
// further on.
void AddUp(std::vector<std::size_t>* counts) {
  for (std::size_t s = 1; s < counts->size(); ++s) (*counts)[s] += (*counts)[s - 1];
}

// Keys and places are dealt out to as many ranges as there are shards, more than the processor
// follows by itself: each write would wait for its line. So each line is asked for before its turn.
template <class T>
[[gnu::always_inline]] inline void Deal(const T& one, std::size_t to, T* all) {
  constexpr std::size_t kAhead = 2 * runtime::kCacheLine / sizeof(T);
  __builtin_prefetch(all + to + kAhead, /*rw=*/1);
  all[to] = one;
}

// A batch whose keys each ascend above the one before, which is how large ones mostly come: two
// passes over them. Nothing if they do not.
std::optional<GroupedKeys> GroupAscending(std::span<const std::uint64_t> keys,
                                          std::uint32_t num_shards) {
  constexpr std::size_t kStretch = 32;  // keys
  const proto::ShardOfKeys shard_of_key(num_shards);
  const auto shard_of = std::make_unique_for_overwrite<std::uint32_t[]>(keys.size());
  GroupedKeys grouped;
  grouped.shard_begin.assign(num_shards + 1, 0);
  std::size_t* const counts = grouped.shard_begin.data() + 1;
  for (std::size_t begin = 0; begin < keys.size(); begin += kStretch) {
    runtime::PrefetchAhead(keys, begin, kStretch);
    const std::size_t end = std::min(begin + kStretch, keys.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (i > 0 && keys[i] <= keys[i - 1]) return std::nullopt;
      const std::uint32_t shard = shard_of_key(keys[i]);
      shard_of[i] = shard;
      ++counts[shard];
    }
  }
  AddUp(&grouped.shard_begin);
  MakeRoom(keys.size(), keys.size(), &grouped);
  std::vector<std::size_t> next(grouped.shard_begin.begin(), grouped.shard_begin.end() - 1);
  std::uint64_t* const key_to = grouped.keys.data();
  std::uint64_t* const place_to = grouped.order.data();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t to = next[shard_of[i]]++;
    Deal(keys[i], to, key_to);
    Deal(std::uint64_t{i}, to, place_to);
  }
  return grouped;
}

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
  AddUp(&grouped.shard_begin);
  AddUp(&places_in);

  // Ascending keys drop into their shards' ranges one after the other, so each range ascends.
  std::vector<std::size_t> next_key(grouped.shard_begin.begin(), grouped.shard_begin.end() - 1);
  std::vector<std::size_t> next_place(places_in.begin(), places_in.end() - 1);
  MakeRoom(unique, size, &grouped);
  const bool repeats = unique != size;
  if (repeats) {
    grouped.begin.resize(unique + 1);
    grouped.begin[unique] = size;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t shard = shard_of[i];
    const std::size_t to = next_place[shard]++;
    Deal(place(i), to, grouped.order.data());
    if (repeats_last(i)) continue;
    const std::size_t group = next_key[shard]++;
    Deal(key(i), group, grouped.keys.data());
    if (repeats) grouped.begin[group] = to;
  }
  return grouped;
}

}  // namespace

GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards) {
  if (std::optional<GroupedKeys> grouped = GroupAscending(keys, num_shards)) {
    return *std::move(grouped);
  }
  const std::vector<PlacedKey> sorted = SortedByKey(keys);
  return Group(
      sorted.size(), num_shards, [&](std::size_t i) { return sorted[i].key; },
      [&](std::size_t i) { return sorted[i].place; },
      [&](std::size_t i) { return i > 0 && sorted[i].key == sorted[i - 1].key; });
}

}  // namespace leeway::worker
