#include "proto/messages/chain.h"

#include <algorithm>

namespace leeway::proto {
namespace {

struct ByShard {
  bool operator()(const ShardReplica& a, std::uint32_t shard) const { return a.shard < shard; }
  bool operator()(std::uint32_t shard, const ShardReplica& a) const { return shard < a.shard; }
};

}  // namespace

Chain ChainOf(const ClusterMap& map, std::uint32_t shard) {
  Chain chain;
  if (shard >= map.owners.size() || map.owners[shard].server_rank == kNoServer) return chain;
  chain.members.push_back(map.owners[shard]);
  const auto [first, last] =
      std::equal_range(map.replicas.begin(), map.replicas.end(), shard, ByShard());
  for (auto replica = first; replica != last; ++replica) {
    (replica->joining ? chain.joining : chain.members).push_back(replica->place);
  }
  return chain;
}

std::optional<ShardOwner> PredecessorOf(const ClusterMap& map, std::uint32_t shard,
                                        const ShardOwner& place) {
  const Chain chain = ChainOf(map, shard);
  const auto member = std::find(chain.members.begin(), chain.members.end(), place);
  if (member == chain.members.end()) {
    const auto joining = std::find(chain.joining.begin(), chain.joining.end(), place);
    return joining == chain.joining.end() ? std::nullopt : std::optional(chain.members.back());
  }
  return member == chain.members.begin() ? std::nullopt : std::optional(*std::prev(member));
}

std::optional<ShardOwner> SuccessorOf(const ClusterMap& map, std::uint32_t shard,
                                      const ShardOwner& place) {
  const Chain chain = ChainOf(map, shard);
  const auto member = std::find(chain.members.begin(), chain.members.end(), place);
  if (member == chain.members.end() || std::next(member) == chain.members.end()) {
    return std::nullopt;
  }
  return *std::next(member);
}

}  // namespace leeway::proto
