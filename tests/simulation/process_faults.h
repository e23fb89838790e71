// ProcessFaults carries out the process faults of a plan: kills processes and starts others in
// their place, cuts hosts off until they are taken for dead, adds servers, drains them. It knows
// what a cluster promises to survive, and refuses everything else.
#ifndef LEEWAY_TESTS_SIMULATION_PROCESS_FAULTS_H_
#define LEEWAY_TESTS_SIMULATION_PROCESS_FAULTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/fault_injector.h"
#include "tests/simulation/published_model.h"
#include "tests/simulation/scripted_worker.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_tool.h"
#include "tests/simulation/transfer_watch.h"

namespace leeway::simulation {

class ProcessFaults {
 public:
  using Struck = FaultInjector::Struck;
  using Workers = std::vector<std::unique_ptr<ScriptedWorker>>;

  ProcessFaults(SimCluster* cluster, const std::vector<SimTable>* tables, const Workers* workers,
                const PublishedModel* model, Checker* checker)
      : cluster_(cluster), tables_(tables), workers_(workers), model_(model), checker_(checker) {}

  Struck Strike(const Episode& episode);
  // True if every strike is over: killed processes are back, and requests are answered.
  bool over() const { return to_come_ == 0; }
  // True if a codec switch, a change of a table or a checkpoint was asked for and is not decided or
  // saved: that needs the workers' clocks to go
  // on.
  bool needs_clocks() const { return need_clocks_ > 0; }
  std::uint64_t table_changes() const { return table_changes_; }  // that succeeded
  // Starts processes again that have ended because they were taken for dead, drained, or could not
  // write to their disk. Not when the cluster is about to end.
  void Replace();
  // Tells the checker about requests that are not answered.
  void CheckWaiting();

  // The server with that rank in a map; null if it does not live (any more).
  ps::Server* ServerOf(const proto::ClusterMap& map, std::uint32_t rank) const;
  scheduler::Scheduler* scheduler() const;  // null while there is none
  // The map that promises depend on: one that a restarted scheduler knows. Null if there is none.
  std::shared_ptr<const proto::ClusterMap> KeptMap() const;

 private:
  struct Ask {
    std::string what;
    absl::Time since;
    std::unique_ptr<SimTool> tool;
    bool answered = false;
  };

  Struck StrikeScheduler(const Episode& episode);
  // True if all processes would learn of a new address of the scheduler.
  bool MayMoveScheduler() const;
  // True if some process may not have learned of it yet.
  bool MovesScheduler() const;
  Struck StrikeServer(std::uint32_t rank, const Episode& episode);
  // Kills it, and starts another one in its place.
  void ReplaceServer(std::uint32_t rank, absl::Duration after);
  void KillTransferSourceWhenDue(std::shared_ptr<TransferWatch> watch, absl::Time until);
  void KillCutOff(const TransferWatch::Ended& ended);
  Struck StrikeWorker(ScriptedWorker* victim, const Episode& episode);
  Struck LetWorkerLeave(ScriptedWorker* leaver, const Episode& episode);
  Struck AddServer(std::uint32_t rank);
  Struck Drain(std::uint32_t rank);
  Struck SwitchCodec(double choice);
  Struck ChangeTable(double choice);
  Struck Publish();
  void AskFor(const std::string& command, std::vector<std::string> arguments,
              std::function<void(const absl::Status&)> then);
  void ReplaceScheduler();
  // Runs a part of a strike later.
  void Later(absl::Duration delay, std::function<void()> what);
  bool CanDoWithout(std::uint32_t rank) const;

  SimCluster* const cluster_;
  const std::vector<SimTable>* const tables_;
  const Workers* const workers_;
  const PublishedModel* const model_;
  Checker* const checker_;
  std::size_t to_come_ = 0;      // calls of Later and AskFor that are not over
  std::size_t need_clocks_ = 0;  // of them, those that wait for a clock
  std::uint64_t table_changes_ = 0;
  absl::Time moved_ = absl::InfinitePast();  // the last move of the scheduler
  std::set<std::string> doomed_;  // servers that are cut off until they are taken for dead
  std::vector<std::unique_ptr<Ask>> asks_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_PROCESS_FAULTS_H_
