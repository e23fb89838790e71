// The stores of rows by key: sparse, where all rows have one width, and ragged, where each has its
// own. A row comes into being with its first push.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_STORES_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_STORES_H_

#include <memory>

#include "ps/store/shard_store.h"

namespace leeway::ps {

// Pulling a row that was never pushed computes its initial values, and keeps nothing.
std::unique_ptr<ShardStore> NewSparseStore(const TableSpec& spec, const StoreContext& context,
                                           const Updater* updater);

// A row's first push gives it its width. Where the last push wins (Updater::Combine::kLast) every
// push does so, and a row whose width changes starts again from initial values and state;
// otherwise a push of another width is refused. A row never pushed has width 0.
std::unique_ptr<ShardStore> NewRaggedStore(const TableSpec& spec, const StoreContext& context,
                                           const Updater* updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_STORES_H_
