// Notices the moment at which a replica that was being filled becomes a member of its chain: who
// filled it may die from then on, and nobody but the new one has what was pushed.
#ifndef LEEWAY_TESTS_SIMULATION_FILL_WATCH_H_
#define LEEWAY_TESTS_SIMULATION_FILL_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>

#include "proto/messages/chain.h"
#include "proto/messages/messages.h"

namespace leeway::simulation {

class FillWatch {
 public:
  struct Ended {
    std::uint32_t filler = 0;  // ranks
    std::uint32_t filled = 0;
  };
  // Of the scheduler's map now: a server that was filling another one when last looked, which is a
  // member now and follows it. None: no fill has ended since.
  std::optional<Ended> Look(const proto::ClusterMap& map);
  // Whether some replica was being filled when last looked.
  bool filling() const { return !filling_.empty(); }

 private:
  std::map<std::uint32_t, proto::ShardOwner> filling_;  // by shard: the first of those filled
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_FILL_WATCH_H_
