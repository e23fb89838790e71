#include "tests/simulation/fill_watch.h"

#include <utility>

namespace leeway::simulation {

std::optional<FillWatch::Ended> FillWatch::Look(const proto::ClusterMap& map) {
  std::optional<Ended> ended;
  std::map<std::uint32_t, proto::ShardOwner> filling;
  for (std::uint32_t shard = 0; shard < map.owners.size(); ++shard) {
    const proto::Chain chain = proto::ChainOf(map, shard);
    if (!chain.filling.empty()) filling.emplace(shard, chain.filling.front());
    const auto before = filling_.find(shard);
    if (before == filling_.end() || chain.members.size() < 2) continue;
    if (!(chain.members.back() == before->second)) continue;
    ended = {.filler = chain.members[chain.members.size() - 2].server_rank,
             .filled = before->second.server_rank};
  }
  filling_ = std::move(filling);
  return ended;
}

}  // namespace leeway::simulation
