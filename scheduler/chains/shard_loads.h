// The loads of shards, as servers report them, and the weights that follow. Lives on the
// scheduler's loop.
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

// The measure by which servers are to carry alike.
enum class BalanceBy { kCount, kBytes, kRequests };
// "count", "bytes" or "requests".
absl::StatusOr<BalanceBy> ParseBalanceBy(absl::string_view text);

class ShardLoads {
 public:
  void Take(std::uint32_t rank, const proto::LoadReport& report, std::uint32_t num_shards);
  void Forget(std::uint32_t rank) { reports_.erase(rank); }

  // First the weight of each of `num_shards` shards; then weights that count the nearly empty
  // shards, so that these are spread evenly before they grow. All weigh the same until servers have
  // reported.
  std::vector<ShardWeights> Weights(BalanceBy by, std::uint32_t num_shards,
                                    std::uint32_t replication) const;
  // The bytes of all shards of the server.
  std::uint64_t BytesOn(std::uint32_t rank) const;

 private:
  std::map<std::uint32_t, std::map<std::uint32_t, proto::ShardLoad>> reports_;  // by rank, shard
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_SHARD_LOADS_H_
