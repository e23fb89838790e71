// What the scheduler, servers and tools say to each other to move shards, save checkpoints and find
// a scheduler that has come back. docs/fault-tolerance.md has the protocols.
#ifndef LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_
#define LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::proto {

// server → scheduler: a filling replica of the shard has caught up. Said again until the map
// shows it as a member.
struct ReplicaReady {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
};
// server → scheduler: what it sends to the next replica of the shard, or to one that it fills, has
// not been acknowledged for long. Said again for as long as that is so.
struct LinkReport {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
  std::uint32_t server = 0;  // rank: to whom it sends
  bool handover = false;     // it was the head, and hands over to that one
};
// scheduler → server: it is the head of the shard, and need not wait for what server `from`, the
// head before it, had to hand over: that one had stepped down in that epoch.
struct LeadNow {
  std::uint64_t epoch = 0;
  std::uint32_t shard = 0;
  std::uint32_t from = 0;  // rank
};
// server → scheduler, on every heartbeat interval.
struct ShardLoad {
  std::uint32_t shard = 0;
  std::uint64_t bytes = 0;     // values and state
  std::uint64_t requests = 0;  // since the server started
  friend bool operator==(const ShardLoad&, const ShardLoad&) = default;
};
// worker → scheduler: what a table's codecs cost there.
struct CodecReport {
  std::uint32_t table = 0;
  std::uint64_t lossy = 0;         // bit i: codec i of the table loses something
  std::vector<double> costs = {};  // nanoseconds for a byte of values, by codec
  double link_bytes_per_s = 0;     // to the server that is reached most slowly
  std::uint64_t clock = 0;         // the worker's
};

struct LoadReport {
  std::vector<ShardLoad> shards = {};  // by shard; none twice
};

// A tool or a worker asks the scheduler to do something: "drain", "rebalance", …
struct Admin {
  std::uint64_t request = 0;
  std::string command = {};
  std::vector<std::string> arguments = {};
};
struct AdminReply {
  std::uint64_t request = 0;
  absl::Status result = {};
};  // payload: JSON

// ---- checkpoints: scheduler → server, and back ----
struct CheckpointPrepare {
  std::uint64_t checkpoint = 0;
};
struct CheckpointPrepared {
  std::uint64_t checkpoint = 0;
  std::uint64_t fastest_clock = 0;
};
struct CheckpointCut {
  std::uint64_t checkpoint = 0;
  std::uint64_t clock = 0;     // freeze each shard when the slowest worker has reached it
  std::string directory = {};  // to write into
  std::string base = {};       // incremental: the checkpoint it adds to; empty: full
  bool bounded = false;        // a table has, or had, a bound: all are frozen by that clock
};
struct CheckpointFile {
  std::string name = {};  // in the checkpoint's directory: without '/'
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};
struct CheckpointWritten {
  std::uint64_t checkpoint = 0;
  absl::Status result = {};
  std::vector<CheckpointFile> files = {};
};
struct RestoreShards {
  std::uint64_t request = 0;
  std::string directory = {};
  std::uint64_t checksum = 0;  // of the manifest that the scheduler has read there
};
struct RestoreShardsReply {
  std::uint64_t request = 0;
  absl::Status result = {};
};

// A scheduler that has come back elsewhere → servers → their workers.
struct SchedulerMoved {
  std::string address = {};
  std::uint64_t cluster = 0;
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_ADMIN_MESSAGES_H_
