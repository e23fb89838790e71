#include "node/map_follower.h"

#include <utility>

namespace leeway::node {

bool MapFollower::Take(std::shared_ptr<const proto::ClusterMap> map) {
  if (newest_ != nullptr && map->version <= newest_->version) return false;
  newest_ = std::move(map);
  return true;
}

std::vector<proto::NodeDown> MapFollower::Untold() {
  std::vector<proto::NodeDown> untold;
  if (newest_ == nullptr) return untold;
  const auto tell = [&](proto::NodeDown down) {
    down.epoch = newest_->epoch;
    down.reason = "the cluster map says so";
    if (Take(down)) untold.push_back(std::move(down));
  };
  for (const proto::ServerEntry& server : newest_->servers) {
    if (server.alive) continue;
    proto::NodeDown down;
    down.node = server.node;
    down.role = Role::kServer;
    down.rank = server.rank;
    tell(std::move(down));
  }
  for (const proto::WorkerEntry& worker : newest_->workers) {
    if (worker.state == proto::WorkerState::kAlive) continue;
    proto::NodeDown down;
    down.node = worker.node;
    down.role = Role::kWorker;
    down.rank = worker.rank;
    down.incarnation = worker.incarnation;
    down.left = worker.state == proto::WorkerState::kLeft;
    tell(std::move(down));
  }
  return untold;
}

}  // namespace leeway::node
