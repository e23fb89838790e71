// What the servers say that their shards weigh.
#ifndef LEEWAY_SCHEDULER_CHAINS_SHARD_LOADS_H_
#define LEEWAY_SCHEDULER_CHAINS_SHARD_LOADS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/messages/messages.h"
#include "scheduler/chains/chain_loads.h"

namespace leeway::scheduler {

// By what servers are to carry alike.
enum class BalanceBy { kCount, kBytes, kRequests };
// "count", "bytes" or "requests".
absl::StatusOr<BalanceBy> ParseBalanceBy(absl::string_view text);

class ShardLoads {
 public:
  void Take(std::uint32_t rank, const proto::LoadReport& report, std::uint32_t num_shards);
  void Forget(std::uint32_t rank) { reports_.erase(rank); }

  // What each of `num_shards` shards weighs; then, by their number, those that weigh next to
  // nothing, so that what will fill them one day is spread as well. All weigh the same as long as
  // nothing is known.
  std::vector<ShardWeights> Weights(BalanceBy by, std::uint32_t num_shards,
                                    std::uint32_t replication) const;
  // All that the server has.
  std::uint64_t BytesOn(std::uint32_t rank) const;

 private:
  std::map<std::uint32_t, std::map<std::uint32_t, proto::ShardLoad>> reports_;  // by rank, shard
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_SHARD_LOADS_H_
