// "acknowledged clocks never go back", of what nodes say of clocks that are their own:
// - a worker's ticks, acknowledgements of maps and reports tell of clocks that grow, and of one
//   beginning; the numbers of its requests to a shard are in the order of their clocks, and one
//   that is sent again has the clock it had;
// - what a server thread tells a worker in one epoch to be stable grows, and so do its epochs;
// - a scheduler, or one that goes on from what it has left on its disk, says one thing of each
//   version of the map and of each checkpoint, newer maps to a host than before, and one clock at
//   which the cluster begins.
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_SAID_CLOCKS_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_SAID_CLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "proto/messages/messages.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class SaidClocks {
 public:
  // A message leaves a host (SimNetwork::Tap). What is wrong with it; empty: nothing.
  std::string Hear(const van::Overheard& heard);

 private:
  using Worker = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation
  struct Ticks {
    std::uint64_t clock = 0, since = 0;
  };

  std::string OnTick(const van::Overheard& heard, const proto::ClockTick& tick);
  std::string OnWorkersClock(const van::Overheard& heard, std::uint64_t clock);
  std::string OnRequest(const proto::Request& request);
  std::string OnBatch(const proto::PushBatch& batch);
  std::string OnAck(const van::Overheard& heard, const proto::ClockAck& ack);
  std::string OnMap(const van::Overheard& heard, const proto::ClusterMap& map);
  std::string OnCut(const proto::CheckpointCut& cut);
  std::string OnWelcome(const proto::Welcome& welcome);

  // By worker, and by connection: what is sent over another one may wait for longer.
  std::map<std::pair<Worker, van::Overheard::Way>, Ticks> ticks_;
  std::map<van::Overheard::Way, std::uint64_t> told_;  // what a worker said of its clock last
  // By rank, incarnation and shard: the clocks of requests by their numbers.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>,
           std::map<std::uint64_t, std::uint64_t>>
      requests_;
  std::map<van::Overheard::Way, std::pair<std::uint64_t, std::uint64_t>> stable_;  // epoch, clock
  std::map<std::uint64_t, proto::ClusterMap> maps_;                                // by version
  std::map<std::string, std::uint64_t> newest_map_;                                // by host
  std::map<std::uint64_t, std::uint64_t> cuts_;  // by checkpoint: its clock
  std::optional<std::uint64_t> begins_at_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_SAID_CLOCKS_H_
