#include "worker/slicing/group_keys.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "proto/messages/shard_of_keys.h"
#include "runtime/memory/prefetch.h"
#include "worker/slicing/sort_keys.h"

namespace leeway::worker {
namespace {

void MakeRoom(std::size_t unique, std::size_t places, GroupedKeys* grouped) {
  grouped->key_memory = Arena(unique * sizeof(std::uint64_t));
  grouped->order_memory = Arena(places * sizeof(KeyPlace));
  grouped->keys = {reinterpret_cast<std::uint64_t*>(grouped->key_memory.data()), unique};
  grouped->order = {reinterpret_cast<KeyPlace*>(grouped->order_memory.data()), places};
}

// Where the range of each shard begins, from the number of each; and the sum of all.
std::vector<std::size_t> BeginOfEach(const std::vector<std::size_t>& counts, std::size_t* all) {
  std::vector<std::size_t> begin(counts.size());
  *all = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) begin[s] = std::exchange(*all, *all + counts[s]);
  return begin;
}

void SetShards(const std::vector<std::size_t>& begin, const std::vector<std::size_t>& end,
               GroupedKeys* grouped) {
  grouped->shards.resize(begin.size());
  for (std::size_t s = 0; s < begin.size(); ++s) grouped->shards[s] = {begin[s], end[s]};
}

// Writes one element. Keys and places are distributed over one range for each shard, which are more
// streams than the processor prefetches by itself; each write would wait for its cache line. So the
// line after the next is prefetched.
template <class T>
[[gnu::always_inline]] inline void Deal(const T& one, std::size_t to, T* all) {
  constexpr std::size_t kAhead = 2 * runtime::kCacheLine / sizeof(T);
  __builtin_prefetch(all + to + kAhead, /*rw=*/1);
  all[to] = one;
}

// Loops over all keys prefetch so many keys at a time.
constexpr std::size_t kStretch = 32;

// Room for the keys of each shard where a hash spreads the keys: in fewer than one of a million
// such batches a shard has more keys than six standard deviations above the mean.
std::size_t RoomOfEach(std::size_t keys, std::uint32_t num_shards) {
  constexpr std::size_t kLine = runtime::kCacheLine / sizeof(KeyPlace);
  const double mean = static_cast<double>(keys) / num_shards;
  const auto room = static_cast<std::size_t>(mean + 6 * std::sqrt(mean) + 1);
  return (room + kLine - 1) / kLine * kLine;
}

enum class Outcome { kGrouped, kNotAscending, kNoRoom };

// Groups a batch of ascending keys, as most large ones are, in one pass: servers have nothing to do
// before it is over.
Outcome GroupInOnePass(std::span<const std::uint64_t> keys, std::uint32_t num_shards,
                       GroupedKeys* grouped) {
  const proto::ShardOfKeys shard_of_key(num_shards);
  const std::size_t room = RoomOfEach(keys.size(), num_shards);
  MakeRoom(room * num_shards, room * num_shards, grouped);
  std::vector<std::size_t> begin(num_shards);
  for (std::size_t s = 0; s < num_shards; ++s) begin[s] = s * room;
  std::vector<std::size_t> end = begin;
  std::uint64_t* const key_to = grouped->keys.data();
  KeyPlace* const place_to = grouped->order.data();
  for (std::size_t from = 0; from < keys.size(); from += kStretch) {
    runtime::PrefetchAhead(keys, from, kStretch);
    const std::size_t until = std::min(from + kStretch, keys.size());
    for (std::size_t i = from; i < until; ++i) {
      if (i > 0 && keys[i] <= keys[i - 1]) return Outcome::kNotAscending;
      const std::uint32_t shard = shard_of_key(keys[i]);
      const std::size_t to = end[shard]++;
      if (to - begin[shard] == room) [[unlikely]]
        return Outcome::kNoRoom;
      Deal(keys[i], to, key_to);
      Deal(static_cast<KeyPlace>(i), to, place_to);
    }
  }
  SetShards(begin, end, grouped);
  grouped->size = keys.size();
  return Outcome::kGrouped;
}

// The same in two passes, the first of which counts: for a small batch, or one whose keys the hash
// does not spread. Nothing if the keys do not ascend.
std::optional<GroupedKeys> GroupAscending(std::span<const std::uint64_t> keys,
                                          std::uint32_t num_shards) {
  const proto::ShardOfKeys shard_of_key(num_shards);
  const auto shard_of = std::make_unique_for_overwrite<std::uint32_t[]>(keys.size());
  std::vector<std::size_t> counts(num_shards, 0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i] <= keys[i - 1]) return std::nullopt;
    const std::uint32_t shard = shard_of_key(keys[i]);
    shard_of[i] = shard;
    ++counts[shard];
  }
  GroupedKeys grouped;
  const std::vector<std::size_t> begin = BeginOfEach(counts, &grouped.size);
  MakeRoom(keys.size(), keys.size(), &grouped);
  std::vector<std::size_t> end = begin;
  std::uint64_t* const key_to = grouped.keys.data();
  KeyPlace* const place_to = grouped.order.data();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t to = end[shard_of[i]]++;
    Deal(keys[i], to, key_to);
    Deal(static_cast<KeyPlace>(i), to, place_to);
  }
  SetShards(begin, end, &grouped);
  return grouped;
}

// Groups keys that ascend by `key(i)`: `repeats_last(i)` says whether it equals key(i - 1), and
// `place(i)` is its place in the user's batch.
template <class KeyAt, class PlaceAt, class RepeatsLast>
GroupedKeys GroupBy(std::size_t size, std::uint32_t num_shards, const KeyAt& key,
                    const PlaceAt& place, const RepeatsLast& repeats_last) {
  // Counts the unique keys, and the places, of each shard.
  const proto::ShardOfKeys shard_of_key(num_shards);
  const auto shard_of = std::make_unique_for_overwrite<std::uint32_t[]>(size);
  std::vector<std::size_t> keys_in(num_shards, 0), places_in(num_shards, 0);
  for (std::size_t i = 0; i < size; ++i) {
    const bool repeat = repeats_last(i);
    shard_of[i] = repeat ? shard_of[i - 1] : shard_of_key(key(i));
    ++places_in[shard_of[i]];
    if (!repeat) ++keys_in[shard_of[i]];
  }
  GroupedKeys grouped;
  std::size_t places = 0;
  const std::vector<std::size_t> begin = BeginOfEach(keys_in, &grouped.size);
  std::vector<std::size_t> next_place = BeginOfEach(places_in, &places);

  // Keys ascend, so the range of each shard ascends.
  std::vector<std::size_t> end = begin;
  MakeRoom(grouped.size, size, &grouped);
  const bool repeats = grouped.size != size;
  if (repeats) {
    grouped.begin.resize(grouped.size + 1);
    grouped.begin[grouped.size] = size;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t shard = shard_of[i];
    const std::size_t to = next_place[shard]++;
    Deal(place(i), to, grouped.order.data());
    if (repeats_last(i)) continue;
    const std::size_t group = end[shard]++;
    Deal(key(i), group, grouped.keys.data());
    if (repeats) grouped.begin[group] = to;
  }
  SetShards(begin, end, &grouped);
  return grouped;
}

// Finds most batches that do not ascend before memory is taken for those that do.
bool AscendAtFirst(std::span<const std::uint64_t> keys) {
  const auto first = keys.first(std::min(keys.size(), kStretch));
  return std::adjacent_find(first.begin(), first.end(), std::greater_equal<>()) == first.end();
}

std::optional<GroupedKeys> GroupIfAscending(std::span<const std::uint64_t> keys,
                                            std::uint32_t num_shards) {
  constexpr std::size_t kManyOfEach =
      64;  // keys of a shard; with fewer the room would be mostly unused
  if (keys.size() / kManyOfEach >= num_shards) {
    GroupedKeys grouped;
    const Outcome outcome = GroupInOnePass(keys, num_shards, &grouped);
    if (outcome == Outcome::kGrouped) return grouped;
    if (outcome == Outcome::kNotAscending) return std::nullopt;
  }
  return GroupAscending(keys, num_shards);
}

}  // namespace

GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards) {
  if (AscendAtFirst(keys)) {
    if (std::optional<GroupedKeys> grouped = GroupIfAscending(keys, num_shards)) {
      return *std::move(grouped);
    }
  }
  const std::vector<PlacedKey> sorted = SortedByKey(keys);
  return GroupBy(
      sorted.size(), num_shards, [&](std::size_t i) { return sorted[i].key; },
      [&](std::size_t i) { return static_cast<KeyPlace>(sorted[i].place); },
      [&](std::size_t i) { return i > 0 && sorted[i].key == sorted[i - 1].key; });
}

}  // namespace leeway::worker
