#include "tests/simulation/transfer_watch.h"

#include <utility>

namespace leeway::simulation {

std::optional<TransferWatch::Ended> TransferWatch::Look(const proto::ClusterMap& map) {
  std::optional<Ended> ended;
  std::map<std::uint32_t, proto::ShardOwner> joining;
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    const proto::Chain chain = proto::ChainOf(map, shard);
    if (!chain.joining.empty()) joining.emplace(shard, chain.joining.front());
    const auto before = joining_.find(shard);
    if (before == joining_.end() || chain.members.size() < 2) continue;
    if (!(chain.members.back() == before->second)) continue;
    ended = {.source = chain.members[chain.members.size() - 2].server_rank,
             .target = before->second.server_rank};
  }
  joining_ = std::move(joining);
  return ended;
}

}  // namespace leeway::simulation
