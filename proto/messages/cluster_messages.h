// The messages of a cluster: its members, the map of who holds what, barriers and tables.
#ifndef LEEWAY_PROTO_MESSAGES_CLUSTER_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_CLUSTER_MESSAGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// A codec that a node has (leeway/codec.h).
struct CodecVersion {
  std::string name;
  std::uint32_t version = 0;  // of its messages
  static bool Fields(auto& v, auto& m) {
    return v("name", m.name, Utf8{1, kCodecNameBytesMax}) && v("version", m.version, AtLeast(1));
  }
  friend bool operator==(const CodecVersion&, const CodecVersion&) = default;
};
struct Join {
  Role role = Role::kUnknown;
  std::string host = {};
  std::uint32_t pid = 0;
  std::vector<std::string> endpoints = {};
  std::int32_t rank_wanted = -1;
  std::uint32_t num_servers = 0, num_workers = 0;
  bool elastic = false;                   // may join beyond the announced numbers
  std::vector<CodecVersion> codecs = {};  // sorted by name; empty: not known
  static bool Fields(auto& v, auto& m) {
    return v("role", m.role, kRoles) && v("host", m.host, kNameOrNone) && v("pid", m.pid) &&
           v("endpoints", m.endpoints,
             Count{1, kServerThreadsMax}.When(m.role == Role::kServer, "of a server"), kAddress) &&
           v("rank_wanted", m.rank_wanted, Range{}.Unsaid(-1)) &&
           v("num_servers", m.num_servers, UpTo(kServersMax)) &&
           v("num_workers", m.num_workers, UpTo(kWorkersMax)) && v("elastic", m.elastic) &&
           v("codecs", m.codecs, Count{0, kCodecsMax});
  }
};
struct Welcome {
  std::uint32_t node = 0, rank = 0;
  std::uint64_t cluster = 0;
  std::uint32_t num_servers = 0, num_workers = 0;
  std::uint32_t heartbeat_interval_ms = 0, failure_timeout_ms = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t replication = 1;
  std::uint64_t clock = 0;  // the clock that the cluster starts at
  static bool Fields(auto& v, auto& m) {
    return v("node", m.node, AtLeast(1)) && v("rank", m.rank, kWorkerRank) &&
           v("cluster", m.cluster) && v("num_servers", m.num_servers, UpTo(kServersMax)) &&
           v("num_workers", m.num_workers, UpTo(kWorkersMax)) &&
           v("heartbeat_interval_ms", m.heartbeat_interval_ms, AtLeast(1)) &&
           v("failure_timeout_ms", m.failure_timeout_ms, AtLeast(1)) &&
           v("block_bytes", m.block_bytes, FromTo(kBlockBytesMin, kBlockBytesMax)) &&
           v("replication", m.replication, FromTo(1u, kReplicationMax).Unsaid(1)) &&
           v("clock", m.clock, UpTo(kStartClockMax));
  }
};
struct Refused {
  absl::Status why = {};
  static bool Fields(auto& v, auto& m) { return v(m.why, kError); }
};

struct ShardOwner {
  std::uint32_t server_rank = 0, thread = 0;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("server_rank", m.server_rank) && v("thread", m.thread);
  }
  friend bool operator==(const ShardOwner&, const ShardOwner&) = default;
};
struct ServerEntry {
  std::uint32_t node = 0, rank = 0;
  bool alive = true;
  std::vector<std::string> endpoints = {};  // by thread
  std::uint64_t incarnation = 0;
  static bool Fields(auto& v, auto& m) {
    return v("node", m.node) && v("rank", m.rank, kServerRank) && v("alive", m.alive) &&
           v("endpoints", m.endpoints, Count{1, kServerThreadsMax}, kAddress) &&
           v("incarnation", m.incarnation);
  }
  friend bool operator==(const ServerEntry&, const ServerEntry&) = default;
};
enum class WorkerState : std::uint8_t { kAlive = 0, kLeft = 1, kDead = 2 };
struct WorkerEntry {
  std::uint32_t node = 0, rank = 0;
  std::uint64_t incarnation = 0;
  WorkerState state = WorkerState::kAlive;
  bool late = false;  // joined after the cluster was complete: it enters (EnterClock)
  static bool Fields(auto& v, auto& m) {
    return v("node", m.node) && v("rank", m.rank, kWorkerRank) && v("incarnation", m.incarnation) &&
           v("state", m.state, FromTo(WorkerState::kAlive, WorkerState::kDead)) &&
           v("late", m.late);
  }
  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};
// ShardOwner::server_rank of a shard that no living server holds.
inline constexpr std::uint32_t kNoServer = 0xffffffff;
// A member of a shard's chain behind its head, or a joining replica.
struct ShardReplica {
  std::uint32_t shard = 0;
  ShardOwner place = {};
  bool joining = false;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("shard", m.shard) && v("server_rank", m.place.server_rank) &&
           v("thread", m.place.thread) && v("joining", m.joining);
  }
  friend bool operator==(const ShardReplica&, const ShardReplica&) = default;
};
// A switch of a table to another of its codecs (compress::TableCodecs) from `clock` on: first
// announced, later decided.
struct CodecSwitch {
  std::uint32_t table = 0;
  std::uint64_t number = 0;  // of the table's switches: 1, 2, 3, …
  std::uint32_t before = 0, choice = 0;
  std::uint64_t clock = 0;
  bool decided = false;
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("number", m.number, AtLeast(1)) && v("clock", m.clock, UpTo(kStartClockMax)) &&
           v("table", m.table, AtLeast(1)) &&
           v("before", m.before, Range16{UpTo(kTableCodecsMax)}) &&
           v("choice", m.choice, Range16{UpTo(kTableCodecsMax)}) && v("decided", m.decided);
  }
  friend bool operator==(const CodecSwitch&, const CodecSwitch&) = default;
};

// A table's settings that do not shape its data, as they hold from clock `since` on: first
// announced, later decided.
struct TableSettings {
  std::uint32_t table = 0;
  std::uint32_t number = 0;  // of the table's settings: 1, 2, 3, …; 0: those at its creation
  std::uint64_t since = 0;   // clock
  bool decided = false;
  std::map<std::string, double> parameters = {};  // the updater's
  Consistency consistency = {};
  NonFinite nonfinite = NonFinite::kCount;
  static bool Fields(auto& v, auto& m) {
    return v("table", m.table, AtLeast(1)) &&
           v("number", m.number, FromTo(1u, kTableSettingsMax)) &&
           v("since", m.since, UpTo(kStartClockMax)) && v("decided", m.decided) &&
           v("parameters", m.parameters, kFinite) && v("consistency", m.consistency) &&
           v("nonfinite", m.nonfinite, kNonFinitePolicies);
  }
  friend bool operator==(const TableSettings&, const TableSettings&) = default;
};

// Sent as a whole whenever it changes; a larger version replaces a smaller one.
struct ClusterMap {
  std::uint64_t version = 0;  // of the whole map; grows with every change
  // Of `owners`, `replicas` and `servers`; 0 until the cluster is complete.
  std::uint64_t epoch = 0;
  std::vector<ShardOwner> owners = {};    // by shard: the head of its chain
  std::vector<ServerEntry> servers = {};  // by rank
  std::vector<WorkerEntry> workers = {};  // by rank
  // By shard, then in the order of the chain; joining replicas last.
  std::vector<ShardReplica> replicas = {};
  // By table, then number: the last one that is decided, and the one that is announced.
  std::vector<CodecSwitch> codecs = {};
  // By table, then number: the decided ones that are still needed, and the one that is announced.
  std::vector<TableSettings> table_settings = {};
  static bool Fields(auto& v, auto& m) {
    return v("version", m.version) && v("epoch", m.epoch) &&
           v("owners", m.owners, Count{1, kShardsMax}.When(m.epoch > 0, "once `epoch` is not 0")) &&
           v("servers", m.servers, Count{0, kServersMax}) &&
           v("workers", m.workers, Count{0, kWorkersMax}) &&
           v("replicas", m.replicas,
             Count{0, m.owners.size() * (kChainMax - 1), "up to 15 a shard"}) &&
           v("codecs", m.codecs, Count{0, 2 * kTablesMax}) &&
           v("table_settings", m.table_settings, kTableSettingsCount);
  }
  friend bool operator==(const ClusterMap&, const ClusterMap&) = default;
};

struct MapAck {
  std::uint64_t version = 0;
  std::uint64_t clock = 0;   // a worker's, when it took the map
  std::uint64_t oldest = 0;  // the oldest clock of which it may still send anything
  static bool Fields(auto& v, auto& m) {
    return v("version", m.version) && v("clock", m.clock) && v("oldest", m.oldest);
  }
};

struct Heartbeat {
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0, number = 0;
  // For `leeway status`: the time since the node joined, by its own monotonic clock, and its
  // resident memory (0: not known).
  std::uint64_t uptime_ms = 0, resident_bytes = 0;
  static bool Fields(auto& v, auto& m) {
    return v("node", m.node) && v("incarnation", m.incarnation) && v("number", m.number) &&
           v("uptime_ms", m.uptime_ms) && v("resident_bytes", m.resident_bytes);
  }
};
struct HeartbeatAck {
  std::uint64_t number = 0;
  static bool Fields(auto& v, auto& m) { return v("number", m.number); }
};
struct NodeDown {
  std::uint32_t node = 0;
  Role role = Role::kUnknown;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  bool left = false;
  std::string reason = {};
  std::uint64_t epoch = 0;
  static bool Fields(auto& v, auto& m) {
    return v("node", m.node) && v("role", m.role, kRoles) && v("rank", m.rank, kWorkerRank) &&
           v("incarnation", m.incarnation) && v("left", m.left) &&
           v("reason", m.reason, Reason{}) && v("epoch", m.epoch);
  }
};
struct Leave {
  std::string reason = {};
  std::uint64_t clock = 0;  // a worker's
  static bool Fields(auto& v, auto& m) {
    return v("reason", m.reason, Reason{}) && v("clock", m.clock);
  }
};
struct LeaveAck {
  static bool Fields(auto&, auto&) { return true; }
};
struct Shutdown {
  absl::Status why = {};
  static bool Fields(auto& v, auto& m) { return v(m.why); }
};

struct BarrierEnter {
  std::string name = {};
  Group group = Group::kWorkers;
  std::uint64_t number = 0;  // 1, 2, … per name, group and worker
  std::uint64_t timeout_ms = 0;
  static bool Fields(auto& v, auto& m) {
    return v("name", m.name, kNameOrNone) && v("group", m.group, kGroups) &&
           v("number", m.number, AtLeast(1)) && v("timeout_ms", m.timeout_ms, UpTo(kTimeoutMsMax));
  }
};
struct BarrierRelease {
  std::string name = {};
  Group group = Group::kWorkers;
  std::uint64_t number = 0;
  absl::Status result = {};
  static bool Fields(auto& v, auto& m) {
    return v("name", m.name, kNameOrNone) && v("group", m.group, kGroups) &&
           v("number", m.number, AtLeast(1)) && v(m.result);
  }
};

// ---- tables ----
struct CreateTable {
  std::uint64_t request = 0;
  TableSpec spec = {};
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v("spec", m.spec, Nested{});
  }
};
struct OpenTable {
  std::uint64_t request = 0;
  std::string name = {};
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v("name", m.name, kName);
  }
};
struct TableReply {
  std::uint64_t request = 0;
  absl::Status result = {};
  std::uint32_t table = 0;  // ids count from 1
  TableSpec spec = {};      // only if the result is OK: as the table was created
  Updater::Combine combine = Updater::Combine::kSum;
  std::vector<TableSettings> table_settings = {};  // of the table, as in the map
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v(m.result) &&
           v("table", m.table, AtLeast(m.result.ok(), "at least 1 with code 0")) &&
           v("spec", m.spec, Nested{m.result.ok(), "with code 0"}) &&
           v("combine", m.combine, kCombines) &&
           v("table_settings", m.table_settings, kTableSettingsCount);
  }
};
struct InstallTable {
  std::uint32_t table = 0;
  TableSpec spec = {};
  // Not 0: nothing is installed; the question is whether table `of` could have these settings.
  std::uint32_t of = 0;
  static bool Fields(auto& v, auto& m) {
    return v("table", m.table, AtLeast(1)) && v("spec", m.spec, Nested{}) && v("of", m.of);
  }
};
struct InstallTableReply {
  std::uint32_t table = 0;
  absl::Status result = {};
  Updater::Combine combine = Updater::Combine::kSum;
  static bool Fields(auto& v, auto& m) {
    return v("table", m.table, AtLeast(1)) && v(m.result) && v("combine", m.combine, kCombines);
  }
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_CLUSTER_MESSAGES_H_
