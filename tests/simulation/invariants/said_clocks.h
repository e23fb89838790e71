// SaidClocks checks "acknowledged clocks never go back" for the clocks that nodes send about
// themselves:
// - a worker's ticks, acknowledgements of maps and reports have growing clocks, and one beginning;
//   the numbers of its requests to a shard are in the order of their clocks, and a resent request
//   has its first clock;
// - the stable clocks that a data thread sends to a worker in one epoch grow, and so do its epochs;
// - a scheduler, also one that goes on from another's disk, sends one content for each version of
//   the map and for each checkpoint, newer maps to a host than before, and one clock at which the
//   cluster begins.
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
  // A message leaves a host (SimNetwork::Tap). Returns what is wrong with it; empty: nothing.
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

  // By worker and connection, since messages on another connection may be delayed for longer.
  std::map<std::pair<Worker, van::Overheard::Way>, Ticks> ticks_;
  std::map<van::Overheard::Way, std::uint64_t> told_;  // the last clock that a worker sent
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
