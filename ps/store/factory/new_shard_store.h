// The factory of stores: the kind that a table's description asks for.
#ifndef LEEWAY_PS_STORE_FACTORY_NEW_SHARD_STORE_H_
#define LEEWAY_PS_STORE_FACTORY_NEW_SHARD_STORE_H_

#include <memory>

#include "ps/store/shard_store.h"

namespace leeway::ps {

// `updater` outlives the store and supports the table's dtype.
std::unique_ptr<ShardStore> NewShardStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_FACTORY_NEW_SHARD_STORE_H_
