// Acknowledgements checks that each push gets an acknowledgement of its own kind, whatever travels
// beside it in a batch (docs/consistency.md): a push that waits for its clock to close is accepted
// provisionally, so that its worker keeps it until replicas have it, and settled only when its
// worker has ended that clock; a push that is applied at once is settled at once.
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_ACKNOWLEDGEMENTS_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_ACKNOWLEDGEMENTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "proto/messages/messages.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class Acknowledgements {
 public:
  // With one replica, servers have nothing to wait for.
  explicit Acknowledgements(std::uint32_t replication) : replicated_(replication > 1) {}

  // A message leaves a host (SimNetwork::Tap). Returns what is wrong with it; empty: nothing.
  std::string Hear(const van::Overheard& heard);

 private:
  struct Sent {
    bool held = false;
    std::uint64_t clock = 0;
  };
  void OnPush(const proto::RequestId& id, std::uint32_t table, std::uint64_t clock);
  std::string OnAnswer(const proto::Reply& reply) const;

  const bool replicated_;
  std::set<std::uint32_t> bsp_;  // tables
  // By rank, incarnation, shard and number.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>, Sent> pushes_;
  // By rank and incarnation: the clock that it is in.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> clocks_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_ACKNOWLEDGEMENTS_H_
