#include "scheduler/maps/cluster_maps.h"

#include <algorithm>
#include <utility>

namespace leeway::scheduler {
namespace {

// The scheduler sends at most a thousand maps a second that can wait, however many nodes there are.
constexpr absl::Duration kMapRestPerNode = absl::Milliseconds(1);

proto::WorkerState StateOf(const Node& worker) {
  switch (worker.state) {
    case Node::State::kAlive:
      return proto::WorkerState::kAlive;
    case Node::State::kLeft:
      return proto::WorkerState::kLeft;
    case Node::State::kDead:
      return proto::WorkerState::kDead;
  }
  return proto::WorkerState::kDead;
}

std::vector<proto::ServerEntry> ServerEntries(const MembershipTable& members) {
  std::vector<proto::ServerEntry> entries;
  for (const Node* server : members.servers()) {
    if (server == nullptr) continue;
    proto::ServerEntry entry;
    entry.node = server->id;
    entry.rank = server->rank;
    entry.alive = server->alive();
    entry.endpoints = server->endpoints;
    entry.incarnation = server->incarnation;
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<proto::WorkerEntry> WorkerEntries(const MembershipTable& members) {
  std::vector<proto::WorkerEntry> entries;
  for (const Node* worker : members.workers()) {
    if (worker == nullptr) continue;
    proto::WorkerEntry entry;
    entry.node = worker->id;
    entry.rank = worker->rank;
    entry.incarnation = worker->incarnation;
    entry.state = StateOf(*worker);
    entry.late = worker->late;
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

ClusterMaps::ClusterMaps(runtime::Loop* loop, MembershipTable* members, Source* source,
                         absl::Duration resend_interval, MapPublisher::Send send)
    : loop_(loop),
      members_(members),
      source_(source),
      publisher_(members, resend_interval, std::move(send)),
      publish_timer_(loop,
                     [this] {
                       if (source_->running()) PublishNow();
                     }),
      urgent_timer_(loop, [this] { publisher_.Advance(Now()); }) {}

std::shared_ptr<proto::ClusterMap> ClusterMaps::MakeMap() const {
  auto map = std::make_shared<proto::ClusterMap>();
  map->servers = ServerEntries(*members_);
  map->workers = WorkerEntries(*members_);
  const std::vector<proto::Chain>& chains = source_->Chains();
  for (std::uint32_t shard = 0; shard < chains.size(); ++shard) {
    const proto::Chain& chain = chains[shard];
    const bool lost = chain.members.empty();
    map->owners.push_back(lost ? proto::ShardOwner{proto::kNoServer, 0} : chain.members.front());
    for (std::size_t place = 1; place < chain.members.size(); ++place) {
      map->replicas.push_back({shard, chain.members[place], false});
    }
    for (const proto::ShardOwner& place : chain.joining) {
      map->replicas.push_back({shard, place, true});
    }
  }
  map->codecs = source_->Codecs();
  map->table_settings = source_->Settings();
  return map;
}

void ClusterMaps::Change() {
  std::shared_ptr<proto::ClusterMap> map = MakeMap();
  map->version = (newest_->version / kVersionStride + 1) * kVersionStride;
  map->epoch = newest_->epoch;
  const bool moved = map->owners != newest_->owners || map->replicas != newest_->replicas;
  if (!map->owners.empty() && (moved || map->servers != newest_->servers)) ++map->epoch;
  Take(std::move(map));
  source_->OnNewVersion(newest_->version);
}

void ClusterMaps::Restore(std::uint64_t version, std::uint64_t epoch) {
  std::shared_ptr<proto::ClusterMap> map = MakeMap();
  map->version = version;
  map->epoch = epoch;
  Take(std::move(map));
}

void ClusterMaps::Take(std::shared_ptr<const proto::ClusterMap> map) {
  const std::vector<proto::Chain>& chains = source_->Chains();
  concerned_.clear();
  since_.resize(chains.size());
  for (std::size_t shard = 0; shard < chains.size(); ++shard) {
    if (shard < chains_.size() && chains_[shard] == chains[shard]) continue;
    since_[shard] = map->epoch;
    for (const proto::ShardOwner& place : chains[shard].members) {
      concerned_.insert(place.server_rank);
    }
  }
  chains_ = chains;
  newest_ = std::move(map);
}

void ClusterMaps::PublishSoon() {
  if (!members_->complete()) return;
  const bool can_wait = newest()->epoch == published_epoch_;
  publish_timer_.SetBy(can_wait ? std::max(Now(), rest_until_) : Now());
}

void ClusterMaps::PublishNow() {
  published_epoch_ = newest()->epoch;
  rest_until_ = Now() + kMapRestPerNode * members_->Alive().size();
  publisher_.Publish(newest(), Now());
}

void ClusterMaps::Hurry() {
  publisher_.Hurry(concerned_, Now());
  urgent_timer_.Clear();
  urgent_timer_.SetBy(Now() + kUrgentPatience);
}

}  // namespace leeway::scheduler
