// The stores of one shard: its part of each table, and the settings that each store is updated by.
//
// Lives on the data thread's loop, as part of a ShardState. A store comes into being when it is
// first asked for; the table must be installed by then (Tables).
#ifndef LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_
#define LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_

#include <cstdint>
#include <map>
#include <memory>

#include "ps/shard/state/shard_context.h"
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
  // Before a state transfer.
  void Clear();

  // Clocks went back: a worker that was dead pushes again in clocks that versions were said to be
  // complete in, or a new head has not yet heard of clocks that the one before knew.
  void ForgetSlowest();
  // A hash of what all stores hold, and of `index`.
  std::uint64_t Digest(std::uint64_t index) const;

 private:
  const std::uint32_t shard_;
  ShardContext* const context_;
  ByTable stores_;
  std::map<std::uint32_t, std::uint32_t> settings_;  // by table: which the store uses; none: 0
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_SHARD_STORES_H_
