#include <span>

#include "proto/encoding/decode_parts.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

// Entries are ordered by rank. Until the cluster is complete some may be missing; afterwards rank r
// is entry r, so that other code may use a rank as an index.
absl::Status CheckRank(absl::string_view field, std::uint32_t rank, std::size_t index,
                       std::int64_t rank_before, std::uint32_t ranks, bool complete) {
  if (complete) return CheckRange(field, rank, index, index);
  return CheckRange(field, rank, static_cast<std::uint64_t>(rank_before + 1), ranks - 1);
}

absl::Status ReadServers(const wire::ClusterMap& from, Input& in, ClusterMap* to) {
  const std::size_t size = SizeOrZero(from.servers());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of servers", size, 0, kServersMax));
  to->servers.resize(size);
  std::int64_t rank_before = -1;
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ServerEntry& entry = *from.servers()->Get(static_cast<std::uint32_t>(i));
    ServerEntry& server = to->servers[i];
    server.node = entry.node();
    server.rank = entry.rank();
    LEEWAY_RETURN_IF_ERROR(
        CheckRank("server's rank", server.rank, i, rank_before, kServersMax, to->epoch > 0));
    rank_before = server.rank;
    server.alive = entry.alive();
    server.incarnation = entry.incarnation();
    LEEWAY_RETURN_IF_ERROR(
        ReadEndpoints(entry.endpoints(), 1, kServerThreadsMax, in, &server.endpoints));
  }
  return absl::OkStatus();
}

absl::Status ReadWorkers(const wire::ClusterMap& from, ClusterMap* to) {
  const std::size_t size = SizeOrZero(from.workers());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of workers", size, 0, kWorkersMax));
  to->workers.resize(size);
  std::int64_t rank_before = -1;
  for (std::size_t i = 0; i < size; ++i) {
    const wire::WorkerEntry& entry = *from.workers()->Get(static_cast<std::uint32_t>(i));
    WorkerEntry& worker = to->workers[i];
    worker.node = entry.node();
    worker.rank = entry.rank();
    LEEWAY_RETURN_IF_ERROR(
        CheckRank("worker's rank", worker.rank, i, rank_before, kWorkersMax, to->epoch > 0));
    rank_before = worker.rank;
    worker.incarnation = entry.incarnation();
    LEEWAY_RETURN_IF_ERROR(ReadEnum("worker's state", entry.state(), WorkerState::kAlive,
                                    WorkerState::kDead, &worker.state));
    worker.late = entry.late();
  }
  return absl::OkStatus();
}

// The entry in place of an owner for a shard that is lost.
constexpr ShardOwner kNobody{.server_rank = kNoServer, .thread = 0};

absl::Status CheckPlace(absl::string_view what, std::size_t shard, const ShardOwner& place,
                        const ClusterMap& map) {
  if (place.server_rank >= map.servers.size()) {
    return Wrong(what, " of shard ", shard, " is server ", place.server_rank, ", there are ",
                 map.servers.size(), " servers");
  }
  const std::size_t threads = map.servers[place.server_rank].endpoints.size();
  if (place.thread < threads) return absl::OkStatus();
  return Wrong(what, " of shard ", shard, " is thread ", place.thread, " of server ",
               place.server_rank, ", which has ", threads, " threads");
}

// Shards have owners once the map has an epoch, and none before.
absl::Status ReadOwners(const wire::ClusterMap& from, ClusterMap* to) {
  const std::size_t size = SizeOrZero(from.owners());
  const bool complete = to->epoch > 0;
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("number of owners", size, complete ? 1 : 0, complete ? kShardsMax : 0));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("owners", from.owners(), alignof(wire::ShardOwner)));
  to->owners.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ShardOwner& entry = *from.owners()->Get(static_cast<std::uint32_t>(i));
    ShardOwner& owner = to->owners[i];
    owner.server_rank = entry.server_rank();
    owner.thread = entry.thread();
    if (owner == kNobody) continue;
    LEEWAY_RETURN_IF_ERROR(CheckPlace("owner", i, owner, *to));
  }
  return absl::OkStatus();
}

// The entries of one shard: each on a different server, joining replicas last.
absl::Status CheckChain(std::span<const ShardReplica> replicas, const ClusterMap& map) {
  const std::uint32_t shard = replicas.front().shard;
  const ShardOwner head = map.owners[shard];
  if (head == kNobody) return Wrong("shard ", shard, " has a replica but no owner");
  LEEWAY_RETURN_IF_ERROR(CheckRange("length of a chain", 1 + replicas.size(), 1, kChainMax));
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const ShardOwner& place = replicas[i].place;
    LEEWAY_RETURN_IF_ERROR(CheckPlace("replica", shard, place, map));
    bool twice = place.server_rank == head.server_rank;
    for (std::size_t j = 0; j < i; ++j) {
      twice = twice || place.server_rank == replicas[j].place.server_rank;
    }
    if (twice) return Wrong("shard ", shard, " is on server ", place.server_rank, " twice");
    if (i > 0 && replicas[i - 1].joining && !replicas[i].joining) {
      return Wrong("shard ", shard, " has a joining replica before a member");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadReplicas(const wire::ClusterMap& from, ClusterMap* to) {
  const std::size_t size = SizeOrZero(from.replicas());
  const std::size_t max = to->owners.size() * (kChainMax - 1);
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of replicas", size, 0, max));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("replicas", from.replicas(), alignof(wire::ShardReplica)));
  to->replicas.resize(size);
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ShardReplica& entry = *from.replicas()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(
        CheckRange("replica's shard", entry.shard(), before, to->owners.size() - 1));
    before = entry.shard();
    to->replicas[i] = {entry.shard(), {entry.server_rank(), entry.thread()}, entry.joining()};
  }
  const std::span<const ShardReplica> all = to->replicas;
  for (std::size_t first = 0, last = 0; first < size; first = last) {
    while (last < size && all[last].shard == all[first].shard) ++last;
    LEEWAY_RETURN_IF_ERROR(CheckChain(all.subspan(first, last - first), *to));
  }
  return absl::OkStatus();
}

// For each table one decided switch, and at most one announced one behind it.
absl::Status ReadCodecs(const wire::ClusterMap& from, ClusterMap* to) {
  const std::size_t size = SizeOrZero(from.codecs());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of codec switches", size, 0, 2 * kTablesMax));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("codec switches", from.codecs(), alignof(wire::CodecSwitch)));
  to->codecs.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::CodecSwitch& entry = *from.codecs()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(CheckRange("switch's table", entry.table(), 1, kAny));
    LEEWAY_RETURN_IF_ERROR(CheckRange("switch's number", entry.number(), 1, kAny));
    LEEWAY_RETURN_IF_ERROR(CheckRange("switch's clock", entry.clock(), 0, kStartClockMax));
    LEEWAY_RETURN_IF_ERROR(CheckRange("switch's codec before", entry.before(), 0, kTableCodecsMax));
    LEEWAY_RETURN_IF_ERROR(CheckRange("switch's codec", entry.choice(), 0, kTableCodecsMax));
    to->codecs.push_back({.table = entry.table(),
                          .number = entry.number(),
                          .before = entry.before(),
                          .choice = entry.choice(),
                          .clock = entry.clock(),
                          .decided = entry.decided()});
    if (i == 0) continue;
    const CodecSwitch& before = to->codecs[i - 1];
    const CodecSwitch& last = to->codecs[i];
    const bool follows = before.table == last.table && before.number < last.number &&
                         before.decided && !last.decided;
    if (before.table >= last.table && !follows) {
      return Wrong("codec switches of table ", last.table, " are not in order");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const wire::ClusterMap& from, Input& in, ClusterMap* to) {
  to->version = from.version();
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(ReadServers(from, in, to));
  LEEWAY_RETURN_IF_ERROR(ReadWorkers(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadOwners(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadReplicas(from, to));
  LEEWAY_RETURN_IF_ERROR(ReadCodecs(from, to));
  return ReadTableSettings(from.table_settings(), in, &to->table_settings);
}

}  // namespace leeway::proto::decode
