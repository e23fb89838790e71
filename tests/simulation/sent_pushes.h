// SentPushes records every push that a worker of a simulated run has sent to a shard.
#ifndef LEEWAY_TESTS_SIMULATION_SENT_PUSHES_H_
#define LEEWAY_TESTS_SIMULATION_SENT_PUSHES_H_

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ps/table/inbound.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class SentPushes {
 public:
  // A message leaves a host (SimNetwork::Tap). Messages of hosts other than workers are ignored, as
  // are resends and messages that are no pushes.
  void Hear(const van::Overheard& heard);

  // In the order in which each was first sent, except that one worker's are ordered by number.
  const std::vector<ps::Inbound>& To(std::uint32_t shard) const;

 private:
  struct Shard {
    std::vector<ps::Inbound> pushes;
    std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> known;  // of RequestId
  };

  void Note(ps::Inbound push);

  std::map<std::uint32_t, Shard> shards_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SENT_PUSHES_H_
