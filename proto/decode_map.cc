#include "proto/decode_parts.h"
#include "proto/limits.h"
#include "runtime/status_macros.h"

namespace leeway::proto::decode {
namespace {

// Entries stand by rank. Until the cluster is complete some may be missing; afterwards rank r is
// entry r, so that others may use a rank as an index.
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
  }
  return absl::OkStatus();
}

// Shards belong to somebody once the map has an epoch, and to nobody before.
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
    if (owner.server_rank >= to->servers.size()) {
      return Wrong("owner of shard ", i, " is server ", owner.server_rank, ", there are ",
                   to->servers.size(), " servers");
    }
    const std::size_t threads = to->servers[owner.server_rank].endpoints.size();
    if (owner.thread >= threads) {
      return Wrong("owner of shard ", i, " is thread ", owner.thread, " of server ",
                   owner.server_rank, ", which has ", threads, " threads");
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
  return ReadOwners(from, to);
}

}  // namespace leeway::proto::decode
