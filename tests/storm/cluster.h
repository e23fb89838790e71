// Cluster is a cluster of real processes, for a storm.
#ifndef LEEWAY_TESTS_STORM_CLUSTER_H_
#define LEEWAY_TESTS_STORM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/storm/acknowledged_pushes.h"
#include "tests/storm/children.h"
#include "tests/storm/pace.h"
#include "tests/storm/storm_worker.h"

namespace leeway::storm {

struct ClusterOptions {
  std::uint32_t servers = 3;
  std::uint32_t workers = 4;
  WorkerOptions training;
  std::map<std::string, std::string> settings;  // of all nodes, on top of the storm's own
  bool keeps_scheduler_state = false;
  std::string folder;  // for logs and shared files; created if it is missing
  // The command prefix with which a node runs elsewhere, by name ("server 2"). Empty: here, on
  // 127.0.0.1.
  std::function<std::vector<std::string>(const std::string& name)> inside;
  std::function<std::string(const std::string& name)> host;
};

// The part of the scheduler's status that storms need.
struct View {
  struct Server {
    bool alive = false;
    std::uint64_t places = 0;  // shards of which it is head or replica
    std::uint64_t bytes = 0;
    std::vector<std::string> endpoints = {};
  };
  bool complete = false;
  bool whole = false;  // every chain has all its members, and nothing moves
  std::uint64_t lost = 0;
  std::uint64_t epoch = 0;
  std::vector<Server> servers;       // by rank
  std::vector<std::string> workers;  // states, by rank
  std::uint64_t living_servers() const;
};

// A worker's process, and the file of its history.
struct WorkerProcess {
  std::uint32_t rank = 0;
  std::string history;
  Child* child = nullptr;
  std::size_t life = 0;                           // its number in AcknowledgedPushes
  absl::Time killed_at = absl::InfiniteFuture();  // monotonic; the kill was then or shortly after
};

// A node that the scheduler has declared dead.
struct Death {
  std::string who;  // "server 1"
  absl::Time at;    // by the scheduler's log
  std::string why;
};

class Cluster {
 public:
  static constexpr absl::Duration kFailureTimeout = absl::Seconds(3);

  explicit Cluster(ClusterOptions options) : options_(std::move(options)) {}

  // Starts all processes, and waits until all have joined.
  absl::Status Start();
  absl::Status StartScheduler();
  absl::StatusOr<Child*> StartServer(const std::map<std::string, std::string>& more = {});
  // For a rank's later processes, the one before has ended.
  absl::StatusOr<Child*> StartWorker(std::uint32_t rank);
  void KillWorker(std::uint32_t rank);
  // Starts another program of the cluster.
  absl::StatusOr<Child*> StartTool(const std::string& name,
                                   const std::vector<std::string>& command);

  // Waits a while, and reads the lines of all processes.
  void Poll(absl::Duration patience = absl::Milliseconds(20)) { children_.Poll(patience); }
  // Waits until the condition holds. DEADLINE_EXCEEDED: "not within 30s: WHAT". An unexpected end
  // of a node is an error, too.
  absl::Status Await(const std::string& what, absl::Duration patience,
                     const std::function<bool()>& so);
  // Waits until every chain is whole and this many servers live.
  absl::Status AwaitWhole(std::uint32_t servers);
  absl::StatusOr<View> Look();

  // The process that has this rank now; null: none.
  Child* ServerOf(std::uint32_t rank) const;
  Child* scheduler() const { return scheduler_; }
  const std::string& address() const { return address_; }
  // In the order in which they were started.
  const std::vector<WorkerProcess>& worker_processes() const { return worker_processes_; }
  // From now on it may end in any way.
  void Expect(const Child* end) { may_end_.push_back(end); }

  const std::vector<Death>& deaths() const { return deaths_; }
  const ClusterOptions& options() const { return options_; }
  AcknowledgedPushes& acknowledged() { return acknowledged_; }
  Pace& pace() { return *pace_; }
  bool TrainingIsOver() const;
  // Waits until all have ended: in order, unless another end was expected.
  absl::Status AwaitEnd(absl::Duration patience);

 private:
  absl::StatusOr<Child*> StartNode(const std::string& name, std::vector<std::string> command,
                                   std::map<std::string, std::string> more,
                                   const std::function<void(absl::string_view)>& on_output,
                                   const std::function<void(absl::string_view)>& on_error);
  void OnSchedulerLine(absl::string_view line);
  // The first node that has ended and was not expected to.
  absl::Status UnexpectedEnd() const;

  const ClusterOptions options_;
  std::string address_;  // the scheduler's, once it is known
  std::optional<Pace> pace_;
  AcknowledgedPushes acknowledged_;
  Child* scheduler_ = nullptr;
  bool scheduler_listens_ = false;
  std::vector<WorkerProcess> worker_processes_;
  std::map<const Child*, std::uint32_t> ranks_;  // of servers, by their own reports
  std::vector<Child*> servers_;                  // in the order in which they were started
  std::vector<const Child*> may_end_;
  std::vector<Death> deaths_;
  std::map<std::string, int> started_;  // by name: how many processes
  Children children_;                   // destroyed first, since its lines come here
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_CLUSTER_H_
