// The first chains: deals the shards to the servers' threads when a cluster begins. A pure
// function.
#ifndef LEEWAY_SCHEDULER_CHAINS_INITIAL_CHAINS_H_
#define LEEWAY_SCHEDULER_CHAINS_INITIAL_CHAINS_H_

#include <cstdint>
#include <vector>

#include "proto/messages/messages.h"

namespace leeway::scheduler {

inline constexpr std::uint32_t kShardsPerThread = 32;

// The heads: deals `num_shards` shards (0: kShardsPerThread a thread) to the servers' threads in
// turn: neighbouring shards lie on different servers. `threads`: how many each server has, by rank.
std::vector<proto::ShardOwner> DealShards(const std::vector<std::uint32_t>& threads,
                                          std::uint32_t num_shards);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_INITIAL_CHAINS_H_
