// Groups a user's keys, given in any order and repeated, into the order in which they are sent: by
// shard, then ascending, each once. Pure functions; any thread.
#ifndef LEEWAY_WORKER_SLICING_GROUP_KEYS_H_
#define LEEWAY_WORKER_SLICING_GROUP_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/memory/buffer.h"
#include "worker/slicing/arena.h"

namespace leeway::worker {

// The place of a key in the user's batch.
using KeyPlace = std::uint32_t;
inline constexpr std::size_t kKeysMax = std::numeric_limits<KeyPlace>::max();  // of a batch

struct GroupedKeys {
  // A range of adjacent keys.
  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    bool operator==(const Range&) const = default;
  };

  std::span<std::uint64_t> keys;  // unique; there may be unused room between two shards
  std::vector<Range> shards;      // by shard: its range of `keys`, ascending
  std::size_t size = 0;           // the number of all keys
  // The places of keys[i] in the user's batch, ascending: order[begin[i]], …,
  // order[begin[i+1] − 1]. Without repeats `begin` is empty and order[i] is the only place.
  std::span<KeyPlace> order;
  std::vector<std::size_t> begin;
  Arena key_memory;  // shared with requests
  Arena order_memory;

  bool repeats() const { return !begin.empty(); }
  std::span<const KeyPlace> places(std::size_t i) const {
    const std::span<const KeyPlace> all(order);
    return repeats() ? all.subspan(begin[i], begin[i + 1] - begin[i]) : all.subspan(i, 1);
  }
  // The keys frame of a request.
  runtime::Buffer Frame(const Range& range) const {
    return key_memory.Part(range.begin * sizeof(std::uint64_t),
                           range.size() * sizeof(std::uint64_t));
  }
};

// At most kKeysMax.
GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_GROUP_KEYS_H_
