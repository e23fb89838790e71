// A TransferWatch notices when a joining replica becomes a member of its chain: from then on the
// server that sent it the state may die, and the new member alone may have what was pushed.
#ifndef LEEWAY_TESTS_SIMULATION_TRANSFER_WATCH_H_
#define LEEWAY_TESTS_SIMULATION_TRANSFER_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>

#include "proto/messages/chain.h"
#include "proto/messages/messages.h"

namespace leeway::simulation {

class TransferWatch {
 public:
  struct Ended {
    std::uint32_t source = 0;  // the sender's rank
    std::uint32_t target = 0;
  };
  // `map`: the scheduler's map now. Returns a server that sent a state transfer at the last call,
  // and its receiver, if that is a member behind it now. nullopt: no transfer has ended since.
  std::optional<Ended> Look(const proto::ClusterMap& map);
  // True if some replica was joining at the last call.
  bool joining() const { return !joining_.empty(); }

 private:
  std::map<std::uint32_t, proto::ShardOwner> joining_;  // by shard: its first joining replica
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_TRANSFER_WATCH_H_
