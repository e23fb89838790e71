#include "ps/replication/server_links.h"

#include <algorithm>

#include "runtime/log/log.h"

namespace leeway::ps {

void Links::TakeMap(std::shared_ptr<const proto::ClusterMap> map) {
  map_ = std::move(map);
  for (auto it = links_.begin(); it != links_.end();) {
    if (EntryOf(it->second.peer) != nullptr) {
      ++it;
      continue;
    }
    van_->Disconnect(it->second.connection, absl::OkStatus());
    it = links_.erase(it);
  }
}

const proto::ServerEntry* Links::EntryOf(const Peer& peer) const {
  for (const proto::ServerEntry& server : map_->servers) {
    if (server.rank != peer.place.server_rank) continue;
    const bool same = server.alive && server.incarnation == peer.incarnation &&
                      peer.place.thread < server.endpoints.size();
    return same ? &server : nullptr;
  }
  return nullptr;
}

std::optional<van::PeerId> Links::To(const Peer& peer) {
  Link& link = links_[{peer.place.server_rank, peer.place.thread}];
  if (link.connection != 0) {
    return link.up && link.peer == peer ? std::optional(link.connection) : std::nullopt;
  }
  const proto::ServerEntry* server = EntryOf(peer);
  if (server == nullptr) return std::nullopt;
  const std::string& endpoint = server->endpoints[peer.place.thread];
  absl::StatusOr<van::PeerId> connection = van_->Connect(endpoint, connect_timeout_);
  if (!connection.ok()) {
    runtime::LogWarning("server ", peer.place.server_rank, " cannot be reached at ", endpoint, ": ",
                        connection.status().message());
    return std::nullopt;
  }
  link = {.peer = peer, .connection = *connection, .up = false};
  return std::nullopt;
}

std::optional<proto::ShardOwner> Links::OnPeerUp(van::PeerId connection,
                                                 const van::Identity& identity) {
  auto it = Find(connection);
  if (it == links_.end()) return std::nullopt;
  Link& link = it->second;
  const std::optional<Peer> server = ServerOf(identity);
  link.up = server.has_value() && server->server() == link.peer.server();
  if (link.up) return link.peer.place;
  van_->Disconnect(connection, absl::OkStatus());  // another process listens there now
  return std::nullopt;
}

bool Links::OnPeerDown(van::PeerId connection) {
  auto it = Find(connection);
  if (it == links_.end()) return false;
  links_.erase(it);
  return true;
}

std::optional<Peer> Links::ServerOf(const van::Identity& identity) const {
  if (identity.role != Role::kServer) return std::nullopt;
  for (const proto::ServerEntry& server : map_->servers) {
    const bool alive = server.alive;
    if (alive && server.node == identity.node && server.incarnation == identity.incarnation) {
      return Peer{.place = {.server_rank = server.rank}, .incarnation = server.incarnation};
    }
  }
  return std::nullopt;
}

std::map<Links::ThreadKey, Links::Link>::iterator Links::Find(van::PeerId connection) {
  return std::find_if(links_.begin(), links_.end(), [connection](const auto& link) {
    return link.second.connection == connection;
  });
}

}  // namespace leeway::ps
