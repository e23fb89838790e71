// What processes say to each other, as plain values. leeway.fbs is the same on the wire, with a
// comment for each field; codec.h converts and checks.
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

inline constexpr std::uint32_t kProtocolVersion = 7;
inline constexpr std::uint32_t kProtocolVersionMin = 7;

// Bits of Hello::capabilities; one that is not known is ignored.
enum Capability : std::uint64_t {
  kNoCapabilities = 0,
  kEnvelopes = 1,  // takes several small messages in one of the van
};

// ---- the van's own ----
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
  bool elastic = false;                   // may come on top of the announced numbers
  std::vector<CodecVersion> codecs = {};  // sorted by name; empty: it does not say
};
struct Welcome {
  std::uint32_t node = 0, rank = 0;
  std::uint64_t cluster = 0;
  std::uint32_t num_servers = 0, num_workers = 0;
  std::uint32_t heartbeat_interval_ms = 0, failure_timeout_ms = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t replication = 1;
  std::uint64_t clock = 0;  // where the cluster begins
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
  bool late = false;  // came after the cluster was complete: it enters (EnterClock)
  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};
// ShardOwner::server_rank of a shard that no living server holds.
inline constexpr std::uint32_t kNoServer = 0xffffffff;
// A member of a shard's chain behind its head, or a replica that is being filled.
struct ShardReplica {
  std::uint32_t shard = 0;
  ShardOwner place = {};
  bool filling = false;
  friend bool operator==(const ShardReplica&, const ShardReplica&) = default;
};
// A table gets another of its codecs (compress::TableCodecs) from `clock` on: announced, and later
// decided.
struct CodecSwitch {
  std::uint32_t table = 0;
  std::uint64_t number = 0;  // of the table's switches: 1, 2, 3, …
  std::uint32_t before = 0, choice = 0;
  std::uint64_t clock = 0;
  bool decided = false;
  friend bool operator==(const CodecSwitch&, const CodecSwitch&) = default;
};

// What does not shape a table's data, as it holds from `since` on: announced, and later decided.
struct TableSettings {
  std::uint32_t table = 0;
  std::uint32_t number = 0;  // of the table's: 1, 2, 3, …; 0 is what it was created with
  std::uint64_t since = 0;   // the clock
  bool decided = false;
  std::map<std::string, double> parameters = {};  // the updater's
  std::uint64_t staleness = 0;                    // Consistency::staleness
  NonFinite nonfinite = NonFinite::kCount;
  friend bool operator==(const TableSettings&, const TableSettings&) = default;
};

// Sent whole whenever it changes; a larger version replaces a smaller one.
struct ClusterMap {
  std::uint64_t version = 0;  // of the whole; grows with every change
  // Of `owners`, `replicas` and `servers`; 0 until the cluster is complete.
  std::uint64_t epoch = 0;
  std::vector<ShardOwner> owners = {};    // by shard: the head of its chain
  std::vector<ServerEntry> servers = {};  // by rank
  std::vector<WorkerEntry> workers = {};  // by rank
  // By shard, then in the order of the chain; those that are filling last.
  std::vector<ShardReplica> replicas = {};
  // By table, then number: the last one that is decided, and the one that is announced.
  std::vector<CodecSwitch> codecs = {};
  // By table, then number: the last ones that are decided, and the one that is announced.
  std::vector<TableSettings> settings = {};
  friend bool operator==(const ClusterMap&, const ClusterMap&) = default;
};

struct MapAck {
  std::uint64_t version = 0;
  std::uint64_t clock = 0;  // a worker's, when it took the map
};

struct Heartbeat {
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0, number = 0;
  // What `leeway status` shows of the node: since it joined, by its own monotonic clock, and RSS
  // (0: not known).
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
  TableSpec spec = {};      // only where the result is OK: as it was created
  Updater::Combine combine = Updater::Combine::kSum;
  std::vector<TableSettings> settings = {};  // of the table, as in the map
};
struct InstallTable {
  std::uint32_t table = 0;
  TableSpec spec = {};
  // Nothing is installed: whether that table could have these settings. 0: it is installed.
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
// The receive that a worker posts for the answer (van/posted_receive.h): different for each request
// that is open on a connection, and not 0.
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
  std::uint64_t timeout_ms = 0;  // a held request is answered within; 0: held without end
  double learning_rate = 0;
  bool has_learning_rate = false;
  // This worker's last request to this shard before this one, of the same class (BSP tables, or the
  // others), that is still open, or that it keeps to send again; 0: none. Those between are settled
  // and will not be sent again.
  std::uint64_t after = 0;
  std::int32_t priority = 0;  // of replies that wait to be sent to a worker, the higher goes first
  // Push: how the values frame is encoded (compress::CodecId); 0: values as they are. Fewer bytes
  // than these, in any case.
  std::uint32_t codec = 0;
  std::uint64_t have = 0;  // dense pull: the version of the block that the worker holds; 0: none
};
// One message of a codec in the values frame of a reply.
struct ReplyPart {
  std::uint64_t version = 0;  // of the block with it
  std::uint64_t bytes = 0;
  std::uint32_t codec = 0;  // 0: values as they are, of ComputeType
  bool whole = false;       // the block itself; otherwise what is to be added to what one holds
  friend bool operator==(const ReplyPart&, const ReplyPart&) = default;
};
// What `push` of `batch` would be if it travelled alone.
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
  // A push that waits for its clock to close and is not replicated before: the worker keeps it
  // until ClockAck::stable has passed its clock.
  bool provisional = false;
  // Dense: the values frame holds `parts`, one after the other (perhaps none).
  bool coded = false;
  std::vector<ReplyPart> parts = {};
  std::uint64_t version = 0;  // of the shard, with values: how many changes it has taken
  // The request's, for whoever sends this. It is not said on the wire.
  std::int32_t priority = 0;
};

// What `ack` of `acks` would be if it travelled alone, as far as it is said.
inline Reply ReplyOf(const PushAcks& acks, const PushAck& ack) {
  Reply reply;
  reply.id = {.incarnation = acks.incarnation,
              .sequence = ack.sequence,
              .worker = acks.worker,
              .shard = ack.shard};
  reply.provisional = ack.provisional;
  return reply;
}

struct ShardWatermark {
  std::uint64_t sequence = 0;
  std::uint32_t shard = 0;
  bool held = false;  // of BSP tables; the other class has numbers of its own to be reached
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
  std::uint64_t epoch = 0;   // the thread's: both are of the shards that it heads in it
};
// A worker that came late asks to be waited for from here on.
struct EnterClock {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
};
struct EnterClockReply {
  std::uint64_t clock = 0;  // where this thread counts it from
  std::uint64_t epoch = 0;  // the thread's
};

struct Call {
  std::uint64_t request = 0;
  std::string handler = {};
};  // payload: request
// The handler that every server has: it answers with nothing, for a worker that measures its link.
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
