// The stores of one shard: its part of each table, and the settings that each store is updated by.
//
// Lives on the data thread's loop, as part of a ShardState. A store comes into being when it is
// first asked for; the table must be installed by then (Tables).
#ifndef LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_
#define LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "ps/shard/state/shard_context.h"
#include "ps/store/factory/collected_pushes.h"
#include "ps/store/shard_store.h"
#include "ps/table/table.h"

namespace leeway::ps {

class ShardStores {
 public:
  using ByTable = std::map<std::uint32_t, std::unique_ptr<ShardStore>>;

  ShardStores(std::uint32_t shard, ShardContext* context) : shard_(shard), context_(context) {}

  ShardStore* Of(const Table& table);
  // From now on updated by those settings.
  ShardStore* Of(const Table& table, const PreparedTableSettings& settings);
  const ByTable& all() const { return stores_; }
  std::uint64_t block_bytes() const { return context_->block_bytes; }
  // One more for the table, without content.
  std::unique_ptr<ShardStore> NewStoreFor(const Table& table) const;

  // Of a table whose pushes are collected (Consistency::collects). Where anything is collected
  // there is a store, too: who goes through the stores finds all.
  CollectedPushes& CollectedOf(const Table& table);
  const std::map<std::uint32_t, CollectedPushes>& collected() const { return collected_; }
  // Applies what is collected for that block (sparse: 0): its sum, divided by `mean_of`.
  absl::Status ApplyCollected(const Table& table, const PreparedTableSettings& settings,
                              std::uint64_t block, std::uint32_t mean_of);
  // Applies one push, multiplied by `weight`; `nonfinite` as for ShardStore::Apply, may be null.
  absl::Status Apply(const Table& table, const PreparedTableSettings& settings,
                     const PushView& push, double weight, bool* nonfinite);
  // Whether the next push of the block sets its values: the table begins with one, and there was
  // none.
  bool BeginsWithPush(const Table& table, std::uint64_t block);
  // The number of updates of the block, or of the sparse table here, in this cluster: what the
  // staleness of a push is counted in. Of a table with weights; other ones have 0.
  std::uint64_t UpdatesOf(const Table& table, std::uint64_t block) const;
  void SetUpdates(const Table& table, std::uint64_t block, std::uint64_t updates);

  // Before a state transfer.
  void Clear();

  // Clocks went back: a worker that was dead pushes again in clocks that versions were said to be
  // complete in, or a new head has not yet heard of clocks that the one before knew.
  void ForgetSlowest();
  // A hash of what all stores hold, and of `index`.
  std::uint64_t Digest(std::uint64_t index) const;

 private:
  using Target = std::pair<std::uint32_t, std::uint64_t>;  // table, block (sparse: 0)

  StoreContext ContextFor(std::uint32_t table) const;
  static Target TargetOf(const Table& table, std::uint64_t block);
  void CountUpdate(const Table& table, std::uint64_t block);

  const std::uint32_t shard_;
  ShardContext* const context_;
  ByTable stores_;
  std::map<std::uint32_t, CollectedPushes> collected_;  // by table
  std::map<Target, std::uint64_t> updates_;             // where τ is asked for
  std::map<std::uint32_t, std::uint32_t> settings_;     // by table: which the store uses; none: 0
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_
