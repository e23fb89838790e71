// The messages of the scheduler, servers and tools that move shards, save checkpoints and find a
// scheduler that has come back. docs/fault-tolerance.md has the protocols.
#ifndef LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/fields.h"

namespace leeway::proto {

// server → scheduler: a joining replica of the shard has caught up. Repeated until the map shows it
// as a member.
struct ReplicaReady {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
  static bool Fields(auto& v, auto& m) {
    return v("epoch", m.epoch, AtLeast(1)) && v("shard", m.shard, kShard);
  }
};
// server → scheduler: the successor of the shard, or a joining replica, has not acknowledged
// entries for long. Repeated for as long as that is so.
struct LinkReport {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
  std::uint32_t server = 0;  // rank of the receiver
  bool handover = false;     // the sender was the head, and hands over to the receiver
  static bool Fields(auto& v, auto& m) {
    return v("epoch", m.epoch, AtLeast(1)) && v("shard", m.shard, kShard) &&
           v("server", m.server, kServerRank) && v("handover", m.handover);
  }
};
// scheduler → server: the server is the head of the shard and need not wait for the handover of
// server `from`, the head before it, which had stepped down in that epoch.
struct LeadNow {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
  std::uint32_t from = 0;  // rank
  static bool Fields(auto& v, auto& m) {
    return v("epoch", m.epoch, AtLeast(1)) && v("shard", m.shard, kShard) &&
           v("from", m.from, kServerRank);
  }
};
// server → scheduler, on every heartbeat interval.
struct ShardLoad {
  std::uint32_t shard = 0;
  std::uint64_t bytes = 0;     // values and state
  std::uint64_t requests = 0;  // since the server started
  static constexpr bool FixedFields(auto& v, auto& m) {
    return v("bytes", m.bytes) && v("requests", m.requests) && v("shard", m.shard, kShard);
  }
  friend bool operator==(const ShardLoad&, const ShardLoad&) = default;
};
// worker → scheduler: the cost of a table's codecs on that worker.
struct CodecReport {
  std::uint32_t table = 0;
  std::uint64_t lossy = 0;         // bit i: codec i of the table is lossy
  std::vector<double> costs = {};  // nanoseconds for a byte of values, by codec
  double link_bytes_per_s = 0;     // to the server with the slowest link
  std::uint64_t clock = 0;         // the worker's
  static bool Fields(auto& v, auto& m) {
    return v("table", m.table, AtLeast(1)) && v("lossy", m.lossy) &&
           v("costs", m.costs, Count{1, kTableCodecsMax + 1}, kPositive) &&
           v("link_bytes_per_s", m.link_bytes_per_s, kPositive) && v("clock", m.clock);
  }
};

struct LoadReport {
  std::vector<ShardLoad> shards = {};  // by shard; none twice
  static bool Fields(auto& v, auto& m) { return v("shards", m.shards, Count{0, kShardsMax}); }
};

// A command of a tool or a worker to the scheduler: "drain", "rebalance", …
struct Admin {
  std::uint64_t request = 0;
  std::string command = {};
  std::vector<std::string> arguments = {};
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v("command", m.command, kCommand) &&
           v("arguments", m.arguments, Count{0, kArgumentsMax}, Utf8{0, kArgumentBytesMax});
  }
};
struct AdminReply {
  std::uint64_t request = 0;
  absl::Status result = {};
  static bool Fields(auto& v, auto& m) { return v("request", m.request) && v(m.result); }
};  // payload: JSON

// ---- checkpoints: scheduler → server, and back ----
struct CheckpointPrepare {
  std::uint64_t checkpoint = 0;
  static bool Fields(auto& v, auto& m) { return v("checkpoint", m.checkpoint); }
};
struct CheckpointPrepared {
  std::uint64_t checkpoint = 0;
  std::uint64_t fastest_clock = 0;
  static bool Fields(auto& v, auto& m) {
    return v("checkpoint", m.checkpoint) && v("fastest_clock", m.fastest_clock);
  }
};
struct CheckpointCut {
  std::uint64_t checkpoint = 0;
  std::uint64_t clock = 0;     // freeze each shard when the slowest worker has reached it
  std::string directory = {};  // to write into
  std::string base = {};       // incremental: the checkpoint that it extends; empty: full
  bool bounded = false;        // a table has, or had, a bound: all are frozen by that clock
  static bool Fields(auto& v, auto& m) {
    return v("checkpoint", m.checkpoint) && v("clock", m.clock) &&
           v("directory", m.directory, kPath) && v("base", m.base, Utf8{0, kPathBytesMax}) &&
           v("bounded", m.bounded);
  }
};
struct CheckpointFile {
  std::string name = {};  // in the checkpoint's directory: without '/'
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  static bool Fields(auto& v, auto& m) {
    return v("name", m.name, Utf8{1, kNameBytesMax}) && v("bytes", m.bytes) &&
           v("checksum", m.checksum);
  }
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};
struct CheckpointWritten {
  std::uint64_t checkpoint = 0;
  absl::Status result = {};
  std::vector<CheckpointFile> files = {};
  static bool Fields(auto& v, auto& m) {
    return v("checkpoint", m.checkpoint) && v(m.result) &&
           v("files", m.files, Count{0, kCheckpointFilesMax});
  }
};
struct RestoreShards {
  std::uint64_t request = 0;
  std::string directory = {};
  std::uint64_t checksum = 0;  // of the manifest that the scheduler has read there
  static bool Fields(auto& v, auto& m) {
    return v("request", m.request) && v("directory", m.directory, kPath) &&
           v("checksum", m.checksum);
  }
};
struct RestoreShardsReply {
  std::uint64_t request = 0;
  absl::Status result = {};
  static bool Fields(auto& v, auto& m) { return v("request", m.request) && v(m.result); }
};

// scheduler → servers → their workers: the scheduler has come back at another address.
struct SchedulerMoved {
  std::string address = {};
  std::uint64_t cluster = 0;
  static bool Fields(auto& v, auto& m) {
    return v("address", m.address, Utf8{1, kAddressBytesMax}) && v("cluster", m.cluster);
  }
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_
