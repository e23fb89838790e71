#include "ps/store/shard_store.h"

#include "ps/store/dense_store.h"
#include "ps/store/ragged_store.h"
#include "ps/store/sparse_store.h"

namespace leeway::ps {

std::unique_ptr<ShardStore> NewShardStore(const TableSpec& spec, const StorePlace& place,
                                          const Updater* updater) {
  switch (spec.kind) {
    case TableKind::kSparse:
      return NewSparseStore(spec, place, updater);
    case TableKind::kRagged:
      return NewRaggedStore(spec, place, updater);
    case TableKind::kDense:
      break;
  }
  return NewDenseStore(spec, place, updater);
}

}  // namespace leeway::ps
