// A Config holds the settings by which a process finds its place in a cluster. The comment at each
// field names its environment variable; docs/operations.md lists these with their defaults. The
// names of ps-lite (DMLC_…) are understood as well; where both are set and differ, that is an
// error.
#ifndef LEEWAY_CONFIG_H_
#define LEEWAY_CONFIG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leeway {

enum class Role : std::uint8_t {
  kUnknown = 0,
  kScheduler = 1,
  kServer = 2,
  kWorker = 3,
  kTool = 4,
  kReader = 5,  // a worker with Config::read_only
};
absl::string_view Name(Role role);  // "scheduler", "server", …

// The members that take part in a barrier.
enum class Group : std::uint8_t { kWorkers = 1, kServers = 2, kAll = 3 };

// From `first` to `last`, both included; 0: any port.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct Config {
  Role role = Role::kUnknown;         // LEEWAY_ROLE, DMLC_ROLE
  std::string scheduler;              // LEEWAY_SCHEDULER "host:port" or "tcp://host:port";
                                      // DMLC_PS_ROOT_URI + DMLC_PS_ROOT_PORT
  std::uint32_t num_servers = 1;      // LEEWAY_NUM_SERVERS, DMLC_NUM_SERVER
  std::uint32_t num_workers = 1;      // LEEWAY_NUM_WORKERS, DMLC_NUM_WORKER
  std::optional<std::uint32_t> rank;  // LEEWAY_RANK: the rank that this node asks for; none: any
  std::string interface;              // LEEWAY_INTERFACE, DMLC_INTERFACE: network card to bind
  std::string host;  // LEEWAY_HOST, DMLC_NODE_HOST: address at which others reach this node
  PortRange ports;   // LEEWAY_PORT: "9000" or "9000-9015", the ports that servers listen on
  std::uint32_t server_threads = 1;  // LEEWAY_SERVER_THREADS: data threads of a server
  std::uint32_t num_shards = 0;      // LEEWAY_NUM_SHARDS; 0: 32 for each data thread
  std::uint64_t block_bytes =
      512 << 10;  // LEEWAY_BLOCK_BYTES: size of a dense block (scheduler decides)
  std::vector<std::string> plugins;  // LEEWAY_PLUGINS, colon-separated
  std::uint32_t replication = 1;     // LEEWAY_REPLICATION: replicas of a shard (scheduler decides)
  bool elastic = false;              // LEEWAY_ELASTIC: joins beyond the announced numbers
  bool read_only = false;            // LEEWAY_READ_ONLY: a reader, which only pulls
  std::string scheduler_state;       // LEEWAY_SCHEDULER_STATE: folder of the scheduler's state
  std::string restore;               // LEEWAY_RESTORE: checkpoint that the scheduler restores

  std::string checkpoint_dir;                 // LEEWAY_CHECKPOINT_DIR: folder for checkpoints
  std::uint64_t checkpoint_every_s = 0;       // LEEWAY_CHECKPOINT_EVERY_S; 0: not by time
  std::uint64_t checkpoint_every_clocks = 0;  // LEEWAY_CHECKPOINT_EVERY_CLOCKS; 0: not by clocks
  std::uint64_t checkpoint_keep = 3;          // LEEWAY_CHECKPOINT_KEEP: the newest ones; 0: all
  std::uint64_t checkpoint_full_every = 1;    // LEEWAY_CHECKPOINT_FULL_EVERY: others are increments
  std::uint64_t versions_kept = 4;            // LEEWAY_VERSIONS_KEPT: of each published model
  bool checkpoint_at_end = false;             // LEEWAY_CHECKPOINT_AT_END: when training ends
  // LEEWAY_CHECKPOINT_TIMEOUT_MS: for saving a checkpoint, or restoring one
  absl::Duration checkpoint_timeout = absl::Minutes(10);

  // LEEWAY_HEARTBEAT_INTERVAL_MS: between heartbeats (scheduler decides)
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // LEEWAY_FAILURE_TIMEOUT_MS: a node that is silent for so long is dead (scheduler decides)
  absl::Duration failure_timeout = absl::Seconds(10);
  // LEEWAY_SUSPICION_MS: a worker, or with replicas a server, whose connections broke is dead if it
  // does not come back within this time (scheduler decides)
  absl::Duration suspicion = absl::Seconds(1);
  // LEEWAY_DRAIN_TIMEOUT_MS: a server that gets SIGTERM waits so long for its shards to move; 0: it
  // ends at once, with its shards
  absl::Duration drain_timeout = absl::Seconds(25);
  // LEEWAY_SCHEDULER_TIMEOUT_MS: a node goes on for so long without the scheduler
  absl::Duration scheduler_timeout = absl::Minutes(10);
  // LEEWAY_CONNECT_TIMEOUT_MS: a node waits so long for the scheduler and for the other nodes
  absl::Duration connect_timeout = absl::Minutes(10);
  // LEEWAY_REQUEST_TIMEOUT_MS: deadline of an operation that has none of its own
  absl::Duration request_timeout = absl::Minutes(2);
  // LEEWAY_RESEND_INTERVAL_MS: pause before an unanswered request is sent again; it then doubles
  absl::Duration resend_interval = absl::Seconds(2);

  // LEEWAY_VAN: auto (shared memory between processes of one machine, rdma between machines that
  // both have a device, tcp elsewhere), shm, rdma, tcp, zmq
  std::string van = "auto";
  // LEEWAY_CHECKSUM: auto (CRC32C of everything between machines), on (within a machine too), off
  std::string checksum = "auto";
  std::uint64_t shm_bytes = 64 << 20;   // LEEWAY_SHM_BYTES: shared memory of one side, a connection
  std::uint64_t rdma_bytes = 16 << 20;  // LEEWAY_RDMA_BYTES: for each peer with large messages
  // For rdma connections that need another device, port or path than the one that their address
  // leads to (docs/rdma.md):
  std::string rdma_device;             // LEEWAY_RDMA_DEVICE: "mlx5_0"; empty: by the address
  std::uint32_t rdma_port = 0;         // LEEWAY_RDMA_PORT: of the device; 0: by the address
  std::uint32_t rdma_gid_index = 256;  // LEEWAY_RDMA_GID_INDEX: of the port; 256: by the address
  std::uint32_t rdma_mtu_bytes = 0;    // LEEWAY_RDMA_MTU: at most; 0: the path's
  std::uint64_t busy_poll_us = 100;    // LEEWAY_BUSY_POLL_US: before a thread blocks; 0: no polling
  std::uint64_t send_window_bytes = 64 << 20;  // LEEWAY_SEND_WINDOW_BYTES: not taken yet, a peer
  // LEEWAY_PUSH_WINDOW_BYTES: pushes to one data thread that it has not answered
  std::uint64_t push_window_bytes = 64 << 20;
  // LEEWAY_SEND_QUEUE_BYTES_MAX: messages of a process that wait to be sent
  std::uint64_t send_queue_bytes_max = 4ull << 30;
  std::uint64_t message_bytes_max = 1ull << 30;  // LEEWAY_MESSAGE_BYTES_MAX: one frame
  // LEEWAY_RESIDUAL_BYTES_MAX: a worker's residual of one sparse table (rows that a lossy codec
  // dropped)
  std::uint64_t residual_bytes_max = 1ull << 30;
  std::uint64_t held_bytes_max = 8ull << 30;  // LEEWAY_HELD_BYTES_MAX: held pushes, a data thread
  // LEEWAY_TABLE_BYTES_MAX: tables of a server; 0: four fifths of the memory that it may take
  std::uint64_t table_bytes_max = 0;

  std::uint64_t replication_window_bytes = 16 << 20;  // LEEWAY_REPLICATION_WINDOW_BYTES: sent to a
                                                      // replica of a shard and not acknowledged
  std::uint64_t replication_log_bytes = 1ull << 30;   // LEEWAY_REPLICATION_LOG_BYTES: pushes that
                                                      // are not on every replica yet, a thread

  // Not a setting of the environment: a call that waits asks this ten times a second, on the thread
  // that waits. True ends the call with CANCELLED; the operation goes on, and its arrays stay in
  // use until it has completed. For languages in which a signal becomes an exception. It must not
  // call the library.
  std::function<bool()> interrupted;

  std::string log_level = "info";  // LEEWAY_LOG: debug, info, warning, error, off

  // Returns the value of a variable; nullopt if it is not set.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  // INVALID_ARGUMENT names the variable, its value, and the values that it may have.
  static absl::StatusOr<Config> FromEnvironment();
  static absl::StatusOr<Config> From(const Lookup& lookup);

  // INVALID_ARGUMENT: a setting that `role` needs is missing, or settings contradict each other.
  absl::Status Validate() const;
};

}  // namespace leeway

#endif  // LEEWAY_CONFIG_H_
