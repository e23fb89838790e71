// A Chain is the list of servers that keep a shard: the head, which orders and answers, and the
// replicas that follow it.
#ifndef LEEWAY_PROTO_MESSAGES_CHAIN_H_
#define LEEWAY_PROTO_MESSAGES_CHAIN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/messages/messages.h"

namespace leeway::proto {

struct Chain {
  std::vector<ShardOwner> members = {};  // head first; empty: the shard is lost
  std::vector<ShardOwner> joining = {};  // joining replicas, fed by the last member
  friend bool operator==(const Chain&, const Chain&) = default;
};

// Empty if the map has no such shard.
Chain ChainOf(const ClusterMap& map, std::uint32_t shard);

// The replica that sends to `place`: the member before it; the last member, if `place` is a joining
// replica. None for the head and for a place that does not keep the shard.
std::optional<ShardOwner> PredecessorOf(const ClusterMap& map, std::uint32_t shard,
                                        const ShardOwner& place);

// The member after `place`. None for the last one (ChainOf().joining has the joining replicas that
// it sends to), for a joining replica, and for a place that does not keep the shard.
std::optional<ShardOwner> SuccessorOf(const ClusterMap& map, std::uint32_t shard,
                                      const ShardOwner& place);

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_CHAIN_H_
