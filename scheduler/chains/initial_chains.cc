#include "scheduler/chains/initial_chains.h"

#include <algorithm>
#include <tuple>

#include "proto/messages/limits.h"
#include "scheduler/chains/chain_planner.h"

namespace leeway::scheduler {
namespace {

using proto::Chain;
using proto::ShardOwner;

// The server of a shard's next replica: the least loaded one that is not in its chain. Among
// equals, the one with the fewest replicas of this head's shards, so that all the others get as
// many shards of a head that dies; then the next by rank.
std::uint32_t ChooseReplica(const Chain& chain, const ChainServers& servers,
                            const ChainLoads& loads,
                            const std::map<std::pair<std::uint32_t, std::uint32_t>, int>& pairs) {
  const std::uint32_t head = chain.members.front().server_rank;
  const auto count = static_cast<std::uint32_t>(servers.size());
  using Score = std::tuple<double, int, std::uint32_t>;
  std::pair<Score, std::uint32_t> best;
  bool found = false;
  for (const auto& [rank, server] : servers) {
    if (IsOn(chain, rank)) continue;
    const auto pair = pairs.find({head, rank});
    const Score score(loads.Of(rank), pair == pairs.end() ? 0 : pair->second,
                      (rank + count - head) % count);
    if (!found || score < best.first) best = {score, rank};
    found = true;
  }
  return best.second;
}

}  // namespace

std::vector<ShardOwner> DealShards(const std::vector<std::uint32_t>& threads,
                                   std::uint32_t num_shards) {
  std::vector<ShardOwner> turn;
  const std::uint32_t most =
      threads.empty() ? 0 : *std::max_element(threads.begin(), threads.end());
  for (std::uint32_t thread = 0; thread < most; ++thread) {
    for (std::uint32_t rank = 0; rank < threads.size(); ++rank) {
      if (thread < threads[rank]) turn.push_back({rank, thread});
    }
  }
  if (turn.empty()) return {};
  const std::uint64_t wanted =
      num_shards != 0 ? num_shards : std::uint64_t{kShardsPerThread} * turn.size();
  std::vector<ShardOwner> owners(std::min<std::uint64_t>(wanted, proto::kShardsMax));
  for (std::size_t shard = 0; shard < owners.size(); ++shard) {
    owners[shard] = turn[shard % turn.size()];
  }
  return owners;
}

void ChainPlanner::Deal(const std::vector<std::uint32_t>& threads, std::uint32_t num_shards) {
  state_ = State();
  for (std::uint32_t rank = 0; rank < threads.size(); ++rank) Add(rank, threads[rank]);
  ChainLoads loads(state_.servers, weights_);
  std::vector<Chain>& chains = state_.chains;
  for (const ShardOwner& head : DealShards(threads, num_shards)) {
    loads.AddMember(static_cast<std::uint32_t>(chains.size()), head);
    chains.push_back({.members = {head}, .joining = {}});
  }
  const std::size_t length = std::min<std::size_t>(replication_, threads.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> pairs;  // head, replica → how many
  for (std::size_t place = 1; place < length; ++place) {
    for (std::uint32_t shard = 0; shard < chains.size(); ++shard) {
      const std::uint32_t rank = ChooseReplica(chains[shard], state_.servers, loads, pairs);
      chains[shard].members.push_back(loads.PlaceOn(rank));
      loads.AddMember(shard, chains[shard].members.back());
      ++pairs[{chains[shard].members.front().server_rank, rank}];
    }
  }
}

}  // namespace leeway::scheduler
