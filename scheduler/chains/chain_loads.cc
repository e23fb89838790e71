#include "scheduler/chains/chain_loads.h"

#include <algorithm>

namespace leeway::scheduler {

ChainLoads::ChainLoads(const ChainServers& servers, const ShardWeights& weights)
    : weights_(weights) {
  for (const auto& [rank, server] : servers) {
    servers_[rank].threads.resize(std::max<std::uint32_t>(1, server.threads));
    if (!server.draining) usable_.push_back(rank);
  }
}

void ChainLoads::AddMember(std::uint32_t shard, const proto::ShardOwner& place) {
  Server& server = servers_.at(place.server_rank);
  server.members += weights_.Member(shard);
  server.threads[place.thread] += weights_.Member(shard);
}

void ChainLoads::RemoveMember(std::uint32_t shard, const proto::ShardOwner& place) {
  Server& server = servers_.at(place.server_rank);
  server.members -= weights_.Member(shard);
  server.threads[place.thread] -= weights_.Member(shard);
}

void ChainLoads::AddHead(std::uint32_t shard, std::uint32_t rank) {
  servers_.at(rank).heads += weights_.Head(shard);
}

void ChainLoads::RemoveHead(std::uint32_t shard, std::uint32_t rank) {
  servers_.at(rank).heads -= weights_.Head(shard);
}

double ChainLoads::With(std::uint32_t shard, std::uint32_t rank, int sign) const {
  return (servers_.at(rank).members + sign * weights_.Member(shard)) / Threads(rank);
}

double ChainLoads::HeadsWith(std::uint32_t shard, std::uint32_t rank, int sign) const {
  return (servers_.at(rank).heads + sign * weights_.Head(shard)) / Threads(rank);
}

std::vector<std::uint32_t> ChainLoads::LeastFirst() const {
  std::vector<std::uint32_t> ranks = usable_;
  std::stable_sort(ranks.begin(), ranks.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return Of(a) < Of(b); });
  return ranks;
}

proto::ShardOwner ChainLoads::PlaceOn(std::uint32_t rank) const {
  const std::vector<double>& threads = servers_.at(rank).threads;
  const auto least = std::min_element(threads.begin(), threads.end());
  return {rank, static_cast<std::uint32_t>(least - threads.begin())};
}

bool IsOn(const std::vector<proto::ShardOwner>& places, std::uint32_t rank) {
  return std::any_of(places.begin(), places.end(),
                     [rank](const proto::ShardOwner& place) { return place.server_rank == rank; });
}

bool IsOn(const proto::Chain& chain, std::uint32_t rank) {
  return IsOn(chain.members, rank) || IsOn(chain.joining, rank);
}

}  // namespace leeway::scheduler
