// A FaultInjector makes the faults of a plan happen in a cluster.
#ifndef LEEWAY_TESTS_SIMULATION_FAULT_INJECTOR_H_
#define LEEWAY_TESTS_SIMULATION_FAULT_INJECTOR_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/fault_plan.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {

class FaultInjector {
 public:
  // Carries out kills, restarts and changes of membership; the run's owner does.
  enum class Struck { kYes, kNo, kAskAgain };
  using Strike = std::function<Struck(const Episode&)>;

  FaultInjector(SimCluster* cluster, FaultPlan plan, Strike strike);
  // Everything in the plan happens from now on.
  void Start();

  const FaultPlan& plan() const { return plan_; }
  // Whether some host is cut off from another one now.
  bool cuts() const;
  bool over() const { return to_come_.empty() && active_.empty(); }
  // For people: the faults that have not begun.
  std::string ToCome() const;
  // The number of messages that met each kind of fault; for kinds without messages, of episodes.
  FaultCounts counts() const;

 private:
  void Begin(std::size_t index);
  void End(std::size_t index);
  void Apply();
  void ApplyToLinks();
  void ApplyToHosts();
  van::LinkFaults Conditions(const std::string& from, const std::string& to, bool* cut) const;

  SimCluster* const cluster_;
  const FaultPlan plan_;
  const Strike strike_;
  std::vector<std::size_t> active_;  // episodes, by their start
  std::set<std::size_t> to_come_;    // episodes that have not begun
  FaultCounts episodes_{};
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_FAULT_INJECTOR_H_
