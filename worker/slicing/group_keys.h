// Keys as a user gives them, in any order and repeated, put in the order they are sent in:
// by shard, then ascending, each once.
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

// Where a key stood in the user's batch.
using KeyPlace = std::uint32_t;
inline constexpr std::size_t kKeysMax = std::numeric_limits<KeyPlace>::max();  // of a batch

struct GroupedKeys {
  // Of keys that lie side by side.
  struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    bool operator==(const Range&) const = default;
  };

  std::span<std::uint64_t> keys;  // unique; between those of two shards there may be unused room
  std::vector<Range> shards;      // by shard, ascending: those of `keys`
  std::size_t size = 0;           // of them all
  // Where keys[i] stood in the user's batch, ascending: order[begin[i]], …, order[begin[i+1] − 1].
  // Without repeats `begin` is empty and order[i] is the one place.
  std::span<KeyPlace> order;
  std::vector<std::size_t> begin;
  Arena key_memory;  // requests share in it
  Arena order_memory;

  bool repeats() const { return !begin.empty(); }
  std::span<const KeyPlace> places(std::size_t i) const {
    const std::span<const KeyPlace> all(order);
    return repeats() ? all.subspan(begin[i], begin[i + 1] - begin[i]) : all.subspan(i, 1);
  }
  // Some keys as they are sent.
  runtime::Buffer Frame(const Range& range) const {
    return key_memory.Part(range.begin * sizeof(std::uint64_t),
                           range.size() * sizeof(std::uint64_t));
  }
};

// At most kKeysMax.
GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_GROUP_KEYS_H_
