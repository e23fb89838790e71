// AimedFaults strike one message, chosen by its type: a type of which a run has two messages
// (LeadNow, CheckpointCut) is struck as often as one of which it has thousands.
//
// A seed plans a few shots. Each waits for the n-th message of its type from some moment on. Then
// that message is lost, late or repeated, or its link is cut for a while, its connection breaks, or
// its sender or receiver is killed at that moment; or one of the first three and one of the others.
// Or a shot waits for the n-th operation on a disk: the scheduler's machine fails while it writes,
// or the disk of checkpoints loses the bytes that were not synced.
#ifndef LEEWAY_TESTS_SIMULATION_AIMED_FAULTS_H_
#define LEEWAY_TESTS_SIMULATION_AIMED_FAULTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/base/random.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/sim_cluster.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

// "ClusterMap"; for entries of a replication stream with their kind: "Replicate 7".
std::string AimOf(const proto::AnyMessage& message);

class AimedFaults {
 public:
  // Kills a process, as FaultInjector::Strike does; may refuse.
  using Strike = std::function<void(const Episode&)>;
  // `workers_come_back`: a new incarnation of a killed worker is started.
  AimedFaults(SimCluster* cluster, bool workers_come_back, absl::Duration window,
              std::uint64_t seed, Strike strike);
  ~AimedFaults();

  void Start();
  bool over() const { return waiting_ == 0; }
  std::uint64_t struck() const { return struck_; }  // shots that have hit
  std::string ToString() const;                     // the plan, a line a shot

 private:
  enum class Change { kNone, kLost, kDelayed, kRepeated };
  enum class Deed { kNone, kBreak, kCutThere, kCutBack, kKillSender, kKillReceiver };
  struct Shot {
    std::string aim;
    absl::Duration start, patience;  // waits from `start` on, for `patience`
    std::uint64_t passes = 0;        // messages that pass before it strikes
    std::uint64_t passed = 0;
    Change change = Change::kNone;
    Deed deed = Deed::kNone;
    absl::Duration length;    // of the effect on the message or its link
    absl::Duration reaction;  // from the message to the kill
    bool armed = false;
  };

  void ArmDisk(std::size_t index, const std::string& disk);
  void Disarm(std::size_t index);
  Shot Choose(absl::Duration window, runtime::Random* random) const;
  van::SimNetwork::Fate Direct(const van::Overheard& heard);
  van::SimNetwork::Fate Hit(const Shot& shot, const std::string& from, const std::string& to);
  void Do(const Shot& shot, const std::string& from, const std::string& to);
  void Kill(const Shot& shot, const std::string& host);

  SimCluster* const cluster_;
  const bool workers_come_back_;
  const Strike strike_;
  std::vector<Shot> shots_;
  std::map<std::pair<std::string, std::string>, absl::Time> cut_until_;  // from, to
  std::size_t waiting_ = 0;  // shots that have neither struck nor given up
  std::size_t armed_ = 0;
  std::uint64_t struck_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_AIMED_FAULTS_H_
