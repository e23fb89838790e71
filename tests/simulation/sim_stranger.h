// A SimStranger is a process of a simulated run that is no member of the cluster, and floods a node
// with requests for its status over a link that is too slow for the answers. It may have learned
// the cluster's id, and says then that it is a member. One thread, the simulation's.
//
// docs/threat-model.md: the id is told to none that does not say it, and whatever a peer says, a
// node that does not know it keeps few bytes for it.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_STRANGER_H_
#define LEEWAY_TESTS_SIMULATION_SIM_STRANGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/checker.h"
#include "tests/simulation/sim_cluster.h"
#include "van/van.h"

namespace leeway::simulation {

class SimStranger final : private van::Handler {
 public:
  // Nodes by host and address.
  using Nodes = std::vector<std::pair<std::string, std::string>>;

  SimStranger(SimCluster* cluster, Checker* checker, std::uint64_t seed);
  ~SimStranger() override;

  // Connects to all nodes. `id`: the cluster's, which it says only if it knows it.
  void Come(const Nodes& nodes, std::uint64_t id, bool knows_it);

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId /*peer*/, const absl::Status& /*why*/) override {}
  void OnMessage(van::PeerId peer, van::Message raw) override;

  SimCluster* const cluster_;
  Checker* const checker_;
  const std::unique_ptr<runtime::Host> host_;
  const std::unique_ptr<van::Factory> factory_;
  const std::unique_ptr<runtime::LoopRunner> runner_;
  const std::uint64_t seed_;
  std::uint64_t id_ = 0, asked_ = 0;
  bool knows_id_ = false;
  std::map<van::PeerId, std::uint64_t> answered_bytes_;
  std::unique_ptr<van::Van> van_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_STRANGER_H_
