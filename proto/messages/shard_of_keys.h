// ShardOfKeys computes ShardOfKey (proto/messages/layout.h) in loops over many keys: without a
// call, and without a division if the number of shards is a power of two.
#ifndef LEEWAY_PROTO_MESSAGES_SHARD_OF_KEYS_H_
#define LEEWAY_PROTO_MESSAGES_SHARD_OF_KEYS_H_

#include <bit>
#include <cstdint>

#include "runtime/base/mix.h"

namespace leeway::proto {

class ShardOfKeys {
 public:
  explicit ShardOfKeys(std::uint32_t num_shards)
      : num_shards_(num_shards),
        mask_(num_shards - 1),
        power_of_two_(std::has_single_bit(num_shards)) {}

  std::uint32_t operator()(std::uint64_t key) const {
    const std::uint64_t hash = runtime::MixKey(key);
    return static_cast<std::uint32_t>(power_of_two_ ? hash & mask_ : hash % num_shards_);
  }

 private:
  const std::uint32_t num_shards_;
  const std::uint32_t mask_;  // of a power of two
  const bool power_of_two_;
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_SHARD_OF_KEYS_H_
