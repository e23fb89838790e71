#ifndef LEEWAY_PS_STORE_DENSE_DENSE_STORE_H_
#define LEEWAY_PS_STORE_DENSE_DENSE_STORE_H_

#include <memory>

#include "ps/store/shard_store.h"

namespace leeway::ps {

// The blocks of one tensor that lie in one shard. A block comes into being when it is first
// pushed to or pulled from; its optimiser state with the first push. A pull hands out the block
// itself, and the next push writes to a copy if the reader still has it.
std::unique_ptr<ShardStore> NewDenseStore(const TableSpec& spec, const StorePlace& place,
                                          const Updater* updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_DENSE_DENSE_STORE_H_
