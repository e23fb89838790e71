// The stores of dense tables: plain blocks, and a store around another for values that travel
// encoded.
#ifndef LEEWAY_PS_STORE_DENSE_DENSE_STORES_H_
#define LEEWAY_PS_STORE_DENSE_DENSE_STORES_H_

#include <memory>

#include "compress/table_codec.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {

// The blocks of one tensor that lie in one shard. A block comes into being when it is first
// pushed to or pulled from; its optimiser state with the first push. A pull hands out the block
// itself, and the next push writes to a copy if the reader still has it.
std::unique_ptr<ShardStore> NewDenseStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater);

// A store of a table whose values travel encoded, around `plain`, which knows nothing of it. Pushes
// stay encoded until they are applied: then they are decoded into what they are added up in.
// Replies of dense tables are encoded once for each version of a block, for all workers.
//
// Versions. A block's version is 1 + the number of its updates that it has in it. Of tables with
// error feedback on the server, other than gradient tables, a version is made from the one before
// by adding C(value − what workers hold) to what workers hold (EF21-P: Gruntkowska et al., ICML
// 2023, Algorithm 1), and a reader gets the messages C(…) since the version that it has; where that
// is unknown here, or they would be more bytes than the block, all that workers hold. So memory
// does not grow with the number of workers: for each block one slot of state, and at most as many
// bytes of messages as the block has.
//
// A version of a gradient table's block is C(Σ gᵢ + r·e), and e what that drops: the server's half
// of dist-EF-SGD (Zheng et al., NeurIPS 2019, Algorithm 2).
std::unique_ptr<ShardStore> NewCodedStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater, compress::TableCodecs codecs,
                                          std::unique_ptr<ShardStore> plain);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_DENSE_DENSE_STORES_H_
