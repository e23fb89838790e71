// Does to a cluster what a plan of faults says of its processes: kills them and starts others in
// their stead, cuts hosts off until they are taken for dead, adds servers, drains them. It knows
// what is promised to be survived, and leaves the rest alone.
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
#include "tests/simulation/fill_watch.h"
#include "tests/simulation/scripted_worker.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_tool.h"

namespace leeway::simulation {

class ProcessFaults {
 public:
  using Struck = FaultInjector::Struck;
  using Workers = std::vector<std::unique_ptr<ScriptedWorker>>;

  ProcessFaults(SimCluster* cluster, const std::vector<SimTable>* tables, const Workers* workers,
                Checker* checker)
      : cluster_(cluster), tables_(tables), workers_(workers), checker_(checker) {}

  Struck Strike(const Episode& episode);
  // Whether everything is over that belongs to a strike: what was killed is back, what was asked
  // for has been done.
  bool over() const { return to_come_ == 0; }
  // Whether a change of codecs has been asked for that is not decided: that needs workers' clocks
  // to go on.
  bool switches() const { return switches_ > 0; }
  std::uint64_t table_changes() const { return table_changes_; }  // that succeeded
  // Starts those again that have ended because they were taken for dead, drained, or could not
  // write to their disk. Not when the cluster is about to end.
  void Replace();
  // Tells the checker about what has been asked for and is not done.
  void CheckWaiting();

  // The server that a map means by a rank; null if it does not live (any more).
  ps::Server* ServerOf(const proto::ClusterMap& map, std::uint32_t rank) const;
  scheduler::Scheduler* scheduler() const;  // null while there is none
  // What is promised rests on this one. Null while there is none that outlives the scheduler.
  std::shared_ptr<const proto::ClusterMap> KeptMap() const;

 private:
  struct Ask {
    std::string what;
    absl::Time since;
    std::unique_ptr<SimTool> tool;
    bool answered = false;
  };

  Struck StrikeScheduler(const Episode& episode);
  // Whether all hear of it when the scheduler has another address.
  bool MayMoveScheduler() const;
  // Whether some may not have heard of it yet.
  bool MovesScheduler() const;
  Struck StrikeServer(std::uint32_t rank, const Episode& episode);
  // Kills it, and starts another one in its stead.
  void ReplaceServer(std::uint32_t rank, absl::Duration after);
  void KillFillerWhenDue(std::shared_ptr<FillWatch> watch, absl::Time until);
  void KillCutOff(const FillWatch::Ended& ended);
  Struck StrikeWorker(ScriptedWorker* victim, const Episode& episode);
  Struck AddServer(std::uint32_t rank);
  Struck Drain(std::uint32_t rank);
  Struck SwitchCodec(double choice);
  Struck ChangeTable(double choice);
  void AskFor(const std::string& command, std::vector<std::string> arguments,
              std::function<void(const absl::Status&)> then);
  void ReplaceScheduler();
  // Something that is part of a strike.
  void Later(absl::Duration delay, std::function<void()> what);
  bool CanDoWithout(std::uint32_t rank) const;

  SimCluster* const cluster_;
  const std::vector<SimTable>* const tables_;
  const Workers* const workers_;
  Checker* const checker_;
  std::size_t to_come_ = 0;   // that Later and AskFor were given
  std::size_t switches_ = 0;  // of codecs, and changes of tables, that AskFor was given
  std::uint64_t table_changes_ = 0;
  absl::Time moved_ = absl::InfinitePast();  // the scheduler, last
  std::set<std::string> doomed_;  // servers that are cut off until they are taken for dead
  std::vector<std::unique_ptr<Ask>> asks_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_PROCESS_FAULTS_H_
