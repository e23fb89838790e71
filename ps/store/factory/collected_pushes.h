// The collected pushes of one table in one shard: added up as they came, and not applied yet
// (docs/consistency.md: backup workers, n-softsync, FedBuff). And pushes with weights.
//
// Lives on the data thread's loop, beside the table's store. It is state like that: all replicas
// have the same, and it is moved and saved with the shard.
#ifndef LEEWAY_PS_STORE_FACTORY_COLLECTED_PUSHES_H_
#define LEEWAY_PS_STORE_FACTORY_COLLECTED_PUSHES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

// The values of a push that passed `store`'s Check, multiplied by `weight`, to be applied with
// ApplyAggregate.
absl::StatusOr<AggregatedPush> Weighted(const ShardStore& store, DType dtype, const PushView& push,
                                        double weight);

// Applies a push that passed Check, multiplied by `weight`; `nonfinite` as for ShardStore::Apply,
// may be null.
absl::Status ApplyWeighted(ShardStore* store, DType dtype, const PushView& push, double weight,
                           bool* nonfinite);

class CollectedPushes {
 public:
  // Of a dense or sparse table whose updater adds up pushes (Updater::Combine::kSum). `context`: as
  // that of its store.
  CollectedPushes(const TableSpec& spec, const StoreContext& context);
  ~CollectedPushes();

  // Adds one (Weighted). It is one more of its target: of the block, or of the sparse table. One of
  // no rows is not counted.
  absl::Status Add(const AggregatedPush& push);
  // Whether integers of a sum have wrapped around since it was asked last.
  bool TakeOverflow() { return std::exchange(overflowed_, false); }
  // Whether the tables of the server may take what it would add. RESOURCE_EXHAUSTED.
  absl::Status CheckMemory(const AggregatedPush& push) const;

  // How many pushes to that block (sparse: 0) there are.
  std::uint32_t count(std::uint64_t block) const;
  // Those that there are any of.
  std::vector<std::uint64_t> blocks() const;
  // The sum of the pushes to that block, divided by `mean_of`, which it forgets; with the learning
  // rate of the last that had one of its own. There is one.
  AggregatedPush Take(std::uint64_t block, std::uint32_t mean_of);

  // For other replicas and checkpoints (FrozenPiece::collected), as ShardStore::Freeze and Load.
  std::vector<FrozenPiece> Freeze() const;
  absl::Status Load(const FrozenPiece& piece);
  // Of a checkpoint, by any number of shards. Returns whether anything of it belongs here.
  absl::StatusOr<bool> LoadElsewhere(const FrozenPiece& piece, std::uint64_t block_bytes);

 private:
  struct Sum {
    std::unique_ptr<ShardStore> store;
    std::uint32_t count = 0;
    double learning_rate = std::numeric_limits<double>::quiet_NaN();  // of the last that had one
  };
  Sum& SumOf(std::uint64_t block);

  const DType dtype_;     // of the table
  const TableSpec spec_;  // of the sums
  const StoreContext context_;
  const std::unique_ptr<Updater> adds_;
  std::map<std::uint64_t, Sum> sums_;  // by block
  bool overflowed_ = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_FACTORY_COLLECTED_PUSHES_H_
