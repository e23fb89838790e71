#ifndef LEEWAY_PS_STORE_SPARSE_SPARSE_STORE_H_
#define LEEWAY_PS_STORE_SPARSE_SPARSE_STORE_H_

#include <memory>

#include "ps/store/shard_store.h"

namespace leeway::ps {

// The rows, all of one width, whose keys lie in one shard. A row comes into being with its first
// push; pulling another one computes its initial values and keeps nothing.
std::unique_ptr<ShardStore> NewSparseStore(const TableSpec& spec, const StorePlace& place,
                                           const Updater* updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_SPARSE_STORE_H_
