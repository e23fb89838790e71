// Keys as a user gives them, in any order and repeated, put in the order they are sent in:
// by shard, then ascending, each once.
#ifndef LEEWAY_WORKER_GROUP_KEYS_H_
#define LEEWAY_WORKER_GROUP_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "worker/arena.h"

namespace leeway::worker {

struct GroupedKeys {
  std::span<std::uint64_t> keys;         // unique
  std::vector<std::size_t> shard_begin;  // [num_shards + 1], into keys
  // Where keys[i] stood in the user's batch, ascending: order[begin[i]], …, order[begin[i+1] − 1].
  // Without repeats `begin` is empty and order[i] is the one place.
  std::span<std::uint64_t> order;
  std::vector<std::size_t> begin;
  Arena key_memory;  // requests share in it
  Arena order_memory;

  bool repeats() const { return !begin.empty(); }
  std::span<const std::uint64_t> places(std::size_t i) const {
    const std::span<const std::uint64_t> all(order);
    return repeats() ? all.subspan(begin[i], begin[i + 1] - begin[i]) : all.subspan(i, 1);
  }
  // Keys `first` to `first` + `size` as they are sent.
  runtime::Buffer Frame(std::size_t first, std::size_t size) const {
    return key_memory.Part(first * sizeof(std::uint64_t), size * sizeof(std::uint64_t));
  }
};

GroupedKeys GroupKeys(std::span<const std::uint64_t> keys, std::uint32_t num_shards);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_GROUP_KEYS_H_
