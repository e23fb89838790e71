// The load of each server and of each of its threads, as a sum over the chains that it is in. No
// network and no clock.
#ifndef LEEWAY_SCHEDULER_CHAINS_CHAIN_LOADS_H_
#define LEEWAY_SCHEDULER_CHAINS_CHAIN_LOADS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/messages/chain.h"

namespace leeway::scheduler {

// A server that shards can lie on.
struct ChainServer {
  std::uint32_t threads = 0;
  bool draining = false;  // gets no more shards
  friend bool operator==(const ChainServer&, const ChainServer&) = default;
};
using ChainServers = std::map<std::uint32_t, ChainServer>;  // by rank; the living

// The weight of each shard, on every member and on its head. Empty: all weigh the same.
struct ShardWeights {
  std::vector<double> member, head;
  // Differences below this share of the load are left as they are.
  double tolerance = 0;
  // Nothing is moved for less than this.
  double least_gain = 0;

  double Member(std::uint32_t shard) const { return shard < member.size() ? member[shard] : 1; }
  double Head(std::uint32_t shard) const { return shard < head.size() ? head[shard] : 1; }
};

// Loads are per thread, so that a server with twice the threads gets twice the shards.
class ChainLoads {
 public:
  ChainLoads(const ChainServers& servers, const ShardWeights& weights);

  void AddMember(std::uint32_t shard, const proto::ShardOwner& place);
  void RemoveMember(std::uint32_t shard, const proto::ShardOwner& place);
  void AddHead(std::uint32_t shard, std::uint32_t rank);
  void RemoveHead(std::uint32_t shard, std::uint32_t rank);

  double Of(std::uint32_t rank) const { return servers_.at(rank).members / Threads(rank); }
  double With(std::uint32_t shard, std::uint32_t rank, int sign) const;
  double HeadsOf(std::uint32_t rank) const { return servers_.at(rank).heads / Threads(rank); }
  double HeadsWith(std::uint32_t shard, std::uint32_t rank, int sign) const;

  // Servers that may be given shards, the least loaded first.
  std::vector<std::uint32_t> LeastFirst() const;
  // The thread of that server that carries least.
  proto::ShardOwner PlaceOn(std::uint32_t rank) const;

 private:
  struct Server {
    double members = 0, heads = 0;
    std::vector<double> threads;
  };
  double Threads(std::uint32_t rank) const { return servers_.at(rank).threads.size(); }

  const ShardWeights& weights_;
  std::map<std::uint32_t, Server> servers_;
  std::vector<std::uint32_t> usable_;
};

bool IsOn(const std::vector<proto::ShardOwner>& places, std::uint32_t rank);
// Among the members of the chain, or among the replicas that are joining it (state transfer).
bool IsOn(const proto::Chain& chain, std::uint32_t rank);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_CHAIN_LOADS_H_
