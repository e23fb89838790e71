#include "ps/replication/chain_place.h"

#include <algorithm>
#include <iterator>

#include "proto/messages/chain.h"

namespace leeway::ps {
namespace {

std::vector<Peer> PeersAt(const proto::ClusterMap& map,
                          const std::vector<proto::ShardOwner>& places) {
  std::vector<Peer> peers;
  for (const proto::ShardOwner& place : places) {
    Peer peer{.place = place};
    for (const proto::ServerEntry& server : map.servers) {
      if (server.rank == place.server_rank) peer.incarnation = server.incarnation;
    }
    peers.push_back(peer);
  }
  return peers;
}

}  // namespace

bool IsAlive(const proto::ClusterMap& map, const Peer& peer) {
  return std::any_of(map.servers.begin(), map.servers.end(), [&](const auto& server) {
    return server.alive && server.rank == peer.place.server_rank &&
           server.incarnation == peer.incarnation;
  });
}

bool ChainPlace::TakeMap(const proto::ClusterMap& map) {
  const proto::Chain chain = proto::ChainOf(map, shard_);
  const std::vector<Peer> members = PeersAt(map, chain.members);
  const std::vector<Peer> joining = PeersAt(map, chain.joining);
  const bool changed = members != members_ || joining != joining_;
  epoch_ = map.epoch;
  members_ = members;
  joining_ = joining;
  role_ = RoleInChain();
  return changed;
}

std::vector<Peer>::const_iterator ChainPlace::Here() const {
  return std::find_if(members_.begin(), members_.end(),
                      [this](const Peer& peer) { return peer.place == *here_; });
}

ChainPlace::Role ChainPlace::RoleInChain() const {
  const auto here = Here();
  if (here != members_.end()) return here == members_.begin() ? Role::kHead : Role::kFollower;
  const bool joining = std::any_of(joining_.begin(), joining_.end(),
                                   [this](const Peer& peer) { return peer.place == *here_; });
  return joining ? Role::kJoining : Role::kNone;
}

std::optional<Peer> ChainPlace::predecessor() const {
  if (role_ == Role::kJoining) {
    return members_.empty() ? std::nullopt : std::optional(members_.back());
  }
  return role_ == Role::kFollower ? std::optional(*std::prev(Here())) : std::nullopt;
}

std::optional<Peer> ChainPlace::successor() const {
  const auto here = Here();
  if (here == members_.end()) return std::nullopt;
  if (std::next(here) != members_.end()) return *std::next(here);
  return joining_.empty() ? std::nullopt : std::optional(joining_.front());
}

}  // namespace leeway::ps
