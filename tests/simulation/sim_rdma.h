// SimRdma is the rdma van on virtual time: the production transport over verbs in memory, which
// fail by the seed. It replaces van::SimNetwork, whose link faults it does not have.
//
// Addresses are "tcp://127.0.0.1:PORT": only the port distinguishes hosts.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_RDMA_H_
#define LEEWAY_TESTS_SIMULATION_SIM_RDMA_H_

#include <memory>
#include <string>

#include "runtime/sim/sim_world.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/sim/sim_van.h"
#include "van/van.h"

namespace leeway::simulation {

class SimRdma {
 public:
  explicit SimRdma(runtime::SimWorld* world);

  // The vans of one simulated host.
  std::unique_ptr<van::Factory> NewFactory(const std::string& host);
  void SetTap(van::SimNetwork::Tap tap) { state_->tap = std::move(tap); }
  // The host has died (call SimWorld::Kill too): its peers see their connections break.
  void Kill(const std::string& host) { state_->fabric.Kill(host); }
  van::verbs::FakeFabric& fabric() { return state_->fabric; }
  // True if peers have access to memory that is not an arena, so that an answer may still be
  // written.
  bool HasOpenGrants() const;

  // Shared by its vans.
  struct State {
    runtime::SimWorld* world;
    van::verbs::FakeFabric fabric;
    van::SimNetwork::Tap tap;
    std::uint64_t vans = 0;  // made so far
  };

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_RDMA_H_
