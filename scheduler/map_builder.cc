#include "scheduler/map_builder.h"

#include <algorithm>

#include "proto/limits.h"

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
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

std::shared_ptr<const proto::ClusterMap> MapBuilder::Next(const MembershipTable& members) {
  auto map = std::make_shared<proto::ClusterMap>();
  map->version = newest_->version + 1;
  map->epoch = newest_->epoch;
  map->owners = newest_->owners;
  map->servers = ServerEntries(members);
  map->workers = WorkerEntries(members);
  if (map->epoch == 0 && members.complete()) {
    map->epoch = 1;
    std::vector<std::uint32_t> threads;
    for (const proto::ServerEntry& server : map->servers) {
      threads.push_back(static_cast<std::uint32_t>(server.endpoints.size()));
    }
    map->owners = DealShards(threads, num_shards_);
  } else if (map->epoch > 0 && map->servers != newest_->servers) {
    ++map->epoch;
  }
  newest_ = map;
  return newest_;
}

}  // namespace leeway::scheduler
