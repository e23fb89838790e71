// The loads of shards, as servers report them, and of servers, as sums over the chains that they
// are in; and the weights of shards by which servers are to carry alike. No network and no clock.
#ifndef LEEWAY_SCHEDULER_CHAINS_LOADS_H_
#define LEEWAY_SCHEDULER_CHAINS_LOADS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/messages/chain.h"
#include "proto/messages/messages.h"

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

// The load of each server and of each of its threads. Loads are per thread, so that a server with
// twice the threads gets twice the shards.
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

// The measure by which servers are to carry alike.
enum class BalanceBy { kCount, kBytes, kRequests };
// "count", "bytes" or "requests".
absl::StatusOr<BalanceBy> ParseBalanceBy(absl::string_view text);

// The newest reports of servers.
class ShardLoads {
 public:
  void Take(std::uint32_t rank, const proto::LoadReport& report, std::uint32_t num_shards);
  void Forget(std::uint32_t rank) { reports_.erase(rank); }

  // First the weight of each of `num_shards` shards; then weights that count the nearly empty
  // shards, so that these are spread evenly before they grow. All weigh the same until servers have
  // reported.
  std::vector<ShardWeights> Weights(BalanceBy by, std::uint32_t num_shards,
                                    std::uint32_t replication) const;
  // The bytes of all shards of the server.
  std::uint64_t BytesOn(std::uint32_t rank) const;

 private:
  std::map<std::uint32_t, std::map<std::uint32_t, proto::ShardLoad>> reports_;  // by rank, shard
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_LOADS_H_
