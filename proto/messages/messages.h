// The messages between processes, as plain structs. leeway.fbs has the same on the wire, with a
// comment for each field; proto/encoding/encoding.h converts and checks.
#ifndef LEEWAY_PROTO_MESSAGES_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_MESSAGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "proto/messages/admin_messages.h"
#include "proto/messages/batch_messages.h"
#include "proto/messages/replication_messages.h"

namespace leeway::proto {

inline constexpr std::uint32_t kProtocolVersion = 8;
inline constexpr std::uint32_t kProtocolVersionMin = 8;

// Bits of Hello::capabilities; unknown ones are ignored.
enum Capability : std::uint64_t {
  kNoCapabilities = 0,
  kEnvelopes = 1,  // accepts several small messages in one frame of the van
};

// ---- the van ----
struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  std::uint32_t protocol_min = kProtocolVersionMin;
  std::uint64_t capabilities = 0;
  Role role = Role::kUnknown;
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t cluster = 0;
  std::string build = {};
};
struct Reject {
  absl::Status why = {};
};
struct Goodbye {};

// ---- membership ----
// A codec that a node has (leeway/codec.h).
struct CodecVersion {
  std::string name;
  std::uint32_t version = 0;  // of its messages
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
};
struct Welcome {
  std::uint32_t node = 0, rank = 0;
  std::uint64_t cluster = 0;
  std::uint32_t num_servers = 0, num_workers = 0;
  std::uint32_t heartbeat_interval_ms = 0, failure_timeout_ms = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t replication = 1;
  std::uint64_t clock = 0;  // the clock that the cluster starts at
};
struct Refused {
  absl::Status why = {};
};

struct ShardOwner {
  std::uint32_t server_rank = 0, thread = 0;
  friend bool operator==(const ShardOwner&, const ShardOwner&) = default;
};
struct ServerEntry {
  std::uint32_t node = 0, rank = 0;
  bool alive = true;
  std::vector<std::string> endpoints = {};  // by thread
  std::uint64_t incarnation = 0;
  friend bool operator==(const ServerEntry&, const ServerEntry&) = default;
};
enum class WorkerState : std::uint8_t { kAlive = 0, kLeft = 1, kDead = 2 };
struct WorkerEntry {
  std::uint32_t node = 0, rank = 0;
  std::uint64_t incarnation = 0;
  WorkerState state = WorkerState::kAlive;
  bool late = false;  // joined after the cluster was complete: it enters (EnterClock)
  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};
// ShardOwner::server_rank of a shard that no living server holds.
inline constexpr std::uint32_t kNoServer = 0xffffffff;
// A member of a shard's chain behind its head, or a joining replica.
struct ShardReplica {
  std::uint32_t shard = 0;
  ShardOwner place = {};
  bool joining = false;
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
  std::uint64_t staleness = 0;                    // Consistency::staleness
  NonFinite nonfinite = NonFinite::kCount;
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
  friend bool operator==(const ClusterMap&, const ClusterMap&) = default;
};

struct MapAck {
  std::uint64_t version = 0;
  std::uint64_t clock = 0;   // a worker's, when it took the map
  std::uint64_t oldest = 0;  // the oldest clock of which it may still send anything
};

struct Heartbeat {
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0, number = 0;
  // For `leeway status`: the time since the node joined, by its own monotonic clock, and its
  // resident memory (0: not known).
  std::uint64_t uptime_ms = 0, resident_bytes = 0;
};
struct HeartbeatAck {
  std::uint64_t number = 0;
};
struct NodeDown {
  std::uint32_t node = 0;
  Role role = Role::kUnknown;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  bool left = false;
  std::string reason = {};
  std::uint64_t epoch = 0;
};
struct Leave {
  std::string reason = {};
  std::uint64_t clock = 0;  // a worker's
};
struct LeaveAck {};
struct Shutdown {
  absl::Status why = {};
};

struct BarrierEnter {
  std::string name = {};
  Group group = Group::kWorkers;
  std::uint64_t number = 0;  // 1, 2, … per name, group and worker
  std::uint64_t timeout_ms = 0;
};
struct BarrierRelease {
  std::string name = {};
  Group group = Group::kWorkers;
  std::uint64_t number = 0;
  absl::Status result = {};
};

// ---- tables ----
struct CreateTable {
  std::uint64_t request = 0;
  TableSpec spec = {};
};
struct OpenTable {
  std::uint64_t request = 0;
  std::string name = {};
};
struct TableReply {
  std::uint64_t request = 0;
  absl::Status result = {};
  std::uint32_t table = 0;  // ids count from 1
  TableSpec spec = {};      // only if the result is OK: as the table was created
  Updater::Combine combine = Updater::Combine::kSum;
  std::vector<TableSettings> table_settings = {};  // of the table, as in the map
};
struct InstallTable {
  std::uint32_t table = 0;
  TableSpec spec = {};
  // Not 0: nothing is installed; the question is whether table `of` could have these settings.
  std::uint32_t of = 0;
};
struct InstallTableReply {
  std::uint32_t table = 0;
  absl::Status result = {};
  Updater::Combine combine = Updater::Combine::kSum;
};

// ---- the data path ----
struct RequestId {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint32_t worker = 0;  // rank
  std::uint32_t shard = 0;
  friend bool operator==(const RequestId&, const RequestId&) = default;
};
// The token of the receive that a worker posts for the answer (van/posted_receive.h): different for
// each open request of a connection, and not 0.
constexpr std::uint64_t ReceiveTokenOf(const RequestId& id) {
  return (id.sequence & ((std::uint64_t{1} << 40) - 1)) | std::uint64_t{id.shard} << 40;
}
enum class Op : std::uint8_t { kPush = 1, kPull = 2, kPushPull = 3 };
constexpr bool HasPush(Op op) { return op != Op::kPull; }
constexpr bool HasPull(Op op) { return op != Op::kPush; }

// Payload: keys (sparse, ragged: keys × 8 bytes), widths (ragged push: keys × 4 bytes),
// values (push: elements × width of dtype).
struct Request {
  RequestId id = {};
  std::uint64_t epoch = 0;
  std::uint32_t table = 0;
  TableKind kind = TableKind::kDense;
  Op op = Op::kPush;
  DType dtype = DType::kFloat32;
  std::uint64_t clock = 0;
  std::uint64_t block = 0;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;    // dense pull: elements expected in the reply
  std::uint64_t timeout_ms = 0;  // a waiting request is answered within it; 0: waits without end
  double learning_rate = 0;
  bool has_learning_rate = false;
  // The number of this worker's last request to this shard before this one, of the same request
  // class (BSP tables, or the others), that is still open or that the worker retains; 0: none.
  // Requests between the two are settled and will not be sent again.
  std::uint64_t after = 0;
  std::int32_t priority = 0;  // of replies that wait to be sent to a worker, higher goes first
  // Push: the codec of the values frame (compress::CodecId), which then has fewer bytes than the
  // values; 0: the values as they are.
  std::uint32_t codec = 0;
  std::uint64_t have = 0;  // dense pull: the version of the block that the worker holds; 0: none
  std::uint64_t read_updates = 0;  // push: Reply::updates of the pull that it was computed from
};
// One message of a codec in the values frame of a reply.
struct ReplyPart {
  std::uint64_t version = 0;  // of the block after this part
  std::uint64_t bytes = 0;
  std::uint32_t codec = 0;  // 0: values as they are, of ComputeType
  bool whole = false;       // the block itself; otherwise a difference to add to the worker's copy
  friend bool operator==(const ReplyPart&, const ReplyPart&) = default;
};
// The Request that `push` of `batch` stands for.
inline Request RequestOf(const PushBatch& batch, const BatchedPush& push) {
  return {.id = {.incarnation = batch.incarnation,
                 .sequence = push.sequence,
                 .worker = batch.worker,
                 .shard = push.shard},
          .epoch = batch.epoch,
          .table = push.table,
          .kind = TableKind::kDense,
          .op = Op::kPush,
          .dtype = batch.dtype,
          .clock = batch.clock,
          .block = push.block,
          .elements = push.elements,
          .timeout_ms = batch.timeout_ms,
          .learning_rate = batch.learning_rate,
          .has_learning_rate = batch.has_learning_rate,
          .after = push.after,
          .priority = batch.priority};
}
// Payload, if the result is OK and the request had a pull: widths (ragged), values.
struct Reply {
  RequestId id = {};
  absl::Status result = {};
  Op op = Op::kPush;
  TableKind kind = TableKind::kDense;
  std::uint64_t clock = 0;
  std::uint64_t slowest_clock = 0;
  std::uint64_t staleness = 0;
  DType dtype = DType::kFloat32;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;
  // The push waits for its clock to close and is replicated only then: the worker keeps it until
  // ClockAck::stable has passed its clock.
  bool provisional = false;
  // Dense: the values frame holds `parts`, one after the other (perhaps none).
  bool coded = false;
  std::vector<ReplyPart> parts = {};
  std::uint64_t version = 0;  // of the shard, with values: the number of changes it has taken
  // Of tables with weights by staleness, with values: how often the block, or the sparse table's
  // part of the shard, has been updated.
  std::uint64_t updates = 0;
  // The request's priority, for the sender of this reply. It is not on the wire.
  std::int32_t priority = 0;
};

// The Reply that `ack` of `acks` stands for, as far as it has fields.
inline Reply ReplyOf(const PushAcks& acks, const PushAck& ack) {
  Reply reply;
  reply.id = {.incarnation = acks.incarnation,
              .sequence = ack.sequence,
              .worker = acks.worker,
              .shard = ack.shard};
  reply.provisional = ack.provisional;
  return reply;
}

// The last request of a worker to one shard and request class before a tick.
struct ShardWatermark {
  std::uint64_t sequence = 0;
  std::uint32_t shard = 0;
  bool held = false;  // of the class of BSP tables; each class has its own watermark
  friend bool operator==(const ShardWatermark&, const ShardWatermark&) = default;
};
struct ClockTick {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
  std::uint64_t clock = 0;
  std::vector<ShardWatermark> watermarks = {};
  std::uint64_t since = 0;  // the first iteration that it takes part in
};
struct ClockAck {
  std::uint64_t clock = 0;
  std::uint64_t stable = 0;  // clocks below it have closed and are on all replicas
  std::uint64_t epoch = 0;   // the thread's; `clock` and `stable` are of the shards it heads in it
};
// A worker that joins late asks the shards of a data thread to wait for it from here on.
struct EnterClock {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
};
struct EnterClockReply {
  std::uint64_t clock = 0;  // its first clock at this thread
  std::uint64_t epoch = 0;  // the thread's
};

struct Call {
  std::uint64_t request = 0;
  std::string handler = {};
};  // payload: request
// The handler of every server that answers with nothing, for a worker that measures its link.
inline constexpr char kProbeHandler[] = "leeway.probe";
struct CallReply {
  std::uint64_t request = 0;
  absl::Status result = {};
};  // payload: reply
struct StatusRequest {
  std::uint64_t request = 0;
};
struct StatusReply {
  std::uint64_t request = 0;
};  // payload: JSON

using AnyMessage =
    std::variant<std::monostate, Hello, Reject, Goodbye, Join, Welcome, Refused, ClusterMap, MapAck,
                 Heartbeat, HeartbeatAck, NodeDown, Leave, LeaveAck, Shutdown, BarrierEnter,
                 BarrierRelease, CreateTable, OpenTable, TableReply, InstallTable,
                 InstallTableReply, Request, Reply, ClockTick, ClockAck, Call, CallReply,
                 StatusRequest, StatusReply, EnterClock, EnterClockReply, Replicate, ReplicateAck,
                 ReplicaReady, LoadReport, Admin, AdminReply, CheckpointPrepare, CheckpointPrepared,
                 CheckpointCut, CheckpointWritten, RestoreShards, RestoreShardsReply,
                 SchedulerMoved, PushBatch, PushAcks, CodecReport, LinkReport, LeadNow>;

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_MESSAGES_H_
