#ifndef LEEWAY_PS_STORE_SPARSE_RAGGED_STORE_H_
#define LEEWAY_PS_STORE_SPARSE_RAGGED_STORE_H_

#include <memory>

#include "ps/store/shard_store.h"

namespace leeway::ps {

// The rows, each of its own width, whose keys lie in one shard. A row comes into being with its
// first push, which gives it its width. Where the last push wins (Updater::Combine::kLast) every
// push does so, and a row whose width changes starts again from initial values and state;
// otherwise a push of another width is refused. A row never pushed has width 0.
std::unique_ptr<ShardStore> NewRaggedStore(const TableSpec& spec, const StorePlace& place,
                                           const Updater* updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_RAGGED_STORE_H_
