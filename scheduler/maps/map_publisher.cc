#include "scheduler/maps/map_publisher.h"

#include <algorithm>
#include <utility>

namespace leeway::scheduler {
namespace {

// By node id.
std::set<std::uint32_t> KeepersOf(const proto::ClusterMap& map) {
  std::vector<bool> keeps(map.servers.size());  // by rank
  const auto note = [&](const proto::ShardOwner& place) {
    if (place.server_rank < keeps.size()) keeps[place.server_rank] = true;
  };
  for (const proto::ShardOwner& head : map.owners) note(head);
  for (const proto::ShardReplica& replica : map.replicas) note(replica.place);
  std::set<std::uint32_t> nodes;
  for (std::size_t rank = 0; rank < keeps.size(); ++rank) {
    if (keeps[rank]) nodes.insert(map.servers[rank].node);
  }
  return nodes;
}

}  // namespace

MapPublisher::MapPublisher(MembershipTable* members, absl::Duration resend_interval, Send send)
    : members_(members), resend_interval_(resend_interval), send_(std::move(send)) {}

std::vector<Node*> MapPublisher::Audience() const {
  std::vector<Node*> all = members_->Alive();
  const std::vector<Node*> readers = members_->readers().All();
  all.insert(all.end(), readers.begin(), readers.end());
  return all;
}

std::uint64_t MapPublisher::VersionFor(const Node& node) const {
  return node.role == Role::kReader ? epoch_version_ : map_->version;
}

void MapPublisher::Publish(std::shared_ptr<const proto::ClusterMap> map, absl::Time now) {
  if (map_ == nullptr || map_->epoch != map->epoch) epoch_version_ = map->version;
  const bool same_table_settings =
      map_ == nullptr ? map->table_settings.empty() : map_->table_settings == map->table_settings;
  if (!same_table_settings) table_settings_version_ = map->version;
  map_ = std::move(map);
  NoteWhoKeepsShards();
  Advance(now);
}

// The servers with shards by the newest map or the one before, as handovers wait for the latter.
// All servers, while workers are held as a checkpoint is loaded.
void MapPublisher::NoteWhoKeepsShards() {
  const std::set<std::uint32_t> before = std::exchange(keepers_, KeepersOf(*map_));
  for (const Node* server : members_->Alive(Role::kServer)) {
    if (workers_held_ || keepers_.contains(server->id) || before.contains(server->id)) {
      progress_[server->id].needed = map_->version;
    }
  }
}

void MapPublisher::HoldWorkers(bool hold, absl::Time now) {
  workers_held_ = hold;
  Advance(now);
}

void MapPublisher::Hurry(const std::set<std::uint32_t>& concerned, absl::Time now) {
  concerned_.insert(concerned.begin(), concerned.end());
  if (urgent_until_ == absl::InfiniteFuture()) urgent_until_ = now + kUrgentPatience;
}

void MapPublisher::OnAck(const Node& node, std::uint64_t version, absl::Time now) {
  if (map_ == nullptr || version > map_->version) return;  // of a map that never was
  Progress& progress = progress_[node.id];
  if (version <= progress.acknowledged) return;
  progress.acknowledged = version;
  if (node.role == Role::kServer) Advance(now);
}

void MapPublisher::OnRejoin(const Node& node, absl::Time now) {
  if (Due(node, now)) SendTo(node, now);
}

void MapPublisher::Resend(absl::Time now) {
  for (const Node* node : Audience()) {
    Progress& progress = progress_[node->id];
    if (now < progress.resend_at || !Due(*node, now)) continue;
    const absl::Duration next = std::min(progress.interval * 2, resend_interval_ * 16);
    SendTo(*node, now);
    progress.interval = next;
    progress.resend_at = now + next;
  }
}

bool MapPublisher::Due(const Node& node, absl::Time now) {
  if (map_ == nullptr || progress_[node.id].acknowledged >= VersionFor(node)) return false;
  return node.role == Role::kServer || WorkersMayHaveIt(now);
}

bool MapPublisher::WorkersMayHaveIt(absl::Time now) {
  if (workers_held_) return false;
  if (ServersHaveIt()) return true;
  // Otherwise a server would answer by the old settings of a table that workers know to be changed.
  if (!ServersHave(table_settings_version_)) return false;
  if (urgent_until_ == absl::InfiniteFuture()) return false;
  if (now >= urgent_until_) return true;
  const std::vector<Node*> servers = members_->Alive(Role::kServer);
  return std::all_of(servers.begin(), servers.end(), [this](const Node* server) {
    return !concerned_.contains(server->rank) ||
           progress_[server->id].acknowledged >= map_->version;
  });
}

void MapPublisher::SendTo(const Node& node, absl::Time now) {
  Progress& progress = progress_[node.id];
  progress.sent = map_->version;
  progress.interval = resend_interval_;
  progress.resend_at = now + resend_interval_;
  send_(node, *map_);
}

bool MapPublisher::ServersHaveIt() { return map_ != nullptr && ServersHave(map_->version); }

bool MapPublisher::ServersHave(std::uint64_t version) {
  const std::vector<Node*> servers = members_->Alive(Role::kServer);
  return std::all_of(servers.begin(), servers.end(), [&](const Node* server) {
    const Progress& progress = progress_[server->id];
    return progress.acknowledged >= std::min(version, progress.needed);
  });
}

std::uint64_t MapPublisher::VersionOfAllServers() const {
  std::uint64_t version = map_ == nullptr ? 0 : map_->version;
  for (const Node* server : members_->Alive(Role::kServer)) {
    const auto progress = progress_.find(server->id);
    version = std::min(version, progress == progress_.end() ? 0 : progress->second.acknowledged);
  }
  return version;
}

void MapPublisher::Advance(absl::Time now) {
  if (map_ == nullptr) return;
  const auto send_to = [&](const std::vector<Node*>& nodes) {
    for (const Node* node : nodes) {
      if (progress_[node->id].sent < VersionFor(*node)) SendTo(*node, now);
    }
  };
  send_to(members_->Alive(Role::kServer));
  if (WorkersMayHaveIt(now)) {
    send_to(members_->Alive(Role::kWorker));
    send_to(members_->readers().All());
  }
  if (!ServersHaveIt()) return;
  concerned_.clear();
  urgent_until_ = absl::InfiniteFuture();
}

}  // namespace leeway::scheduler
