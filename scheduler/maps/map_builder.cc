#include "scheduler/maps/map_builder.h"

#include <utility>

namespace leeway::scheduler {
namespace {

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

std::shared_ptr<proto::ClusterMap> MakeMap(const MembershipTable& members,
                                           const std::vector<proto::Chain>& chains) {
  auto map = std::make_shared<proto::ClusterMap>();
  map->servers = ServerEntries(members);
  map->workers = WorkerEntries(members);
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
  return map;
}

}  // namespace

std::shared_ptr<const proto::ClusterMap> MapBuilder::Next(
    const MembershipTable& members, const std::vector<proto::Chain>& chains,
    std::vector<proto::CodecSwitch> codecs, std::vector<proto::TableSettings> table_settings) {
  std::shared_ptr<proto::ClusterMap> map = MakeMap(members, chains);
  map->codecs = std::move(codecs);
  map->table_settings = std::move(table_settings);
  map->version = (newest_->version / kVersionStride + 1) * kVersionStride;
  map->epoch = newest_->epoch;
  const bool moved = map->owners != newest_->owners || map->replicas != newest_->replicas;
  if (!map->owners.empty() && (moved || map->servers != newest_->servers)) ++map->epoch;
  NoteChanges(chains, map->epoch);
  newest_ = std::move(map);
  return newest_;
}

void MapBuilder::Restore(std::uint64_t version, std::uint64_t epoch, const MembershipTable& members,
                         const std::vector<proto::Chain>& chains,
                         std::vector<proto::CodecSwitch> codecs,
                         std::vector<proto::TableSettings> table_settings) {
  std::shared_ptr<proto::ClusterMap> map = MakeMap(members, chains);
  map->codecs = std::move(codecs);
  map->table_settings = std::move(table_settings);
  map->version = version;
  map->epoch = epoch;
  NoteChanges(chains, epoch);
  newest_ = std::move(map);
}

void MapBuilder::NoteChanges(const std::vector<proto::Chain>& chains, std::uint64_t epoch) {
  concerned_.clear();
  since_.resize(chains.size());
  for (std::size_t shard = 0; shard < chains.size(); ++shard) {
    if (shard < chains_.size() && chains_[shard] == chains[shard]) continue;
    since_[shard] = epoch;
    for (const proto::ShardOwner& place : chains[shard].members) {
      concerned_.insert(place.server_rank);
    }
  }
  chains_ = chains;
}

}  // namespace leeway::scheduler
