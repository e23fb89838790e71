#include "ps/store/factory/new_shard_store.h"

#include <utility>

#include "compress/table_codec.h"
#include "ps/store/dense/dense_stores.h"
#include "ps/store/sparse/row_stores.h"

namespace leeway::ps {
namespace {

std::unique_ptr<ShardStore> NewPlainStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater) {
  switch (spec.kind) {
    case TableKind::kSparse:
      return NewSparseStore(spec, context, updater);
    case TableKind::kRagged:
      return NewRaggedStore(spec, context, updater);
    case TableKind::kDense:
      break;
  }
  return NewDenseStore(spec, context, updater);
}

}  // namespace

std::unique_ptr<ShardStore> NewShardStore(const TableSpec& spec, const StoreContext& context,
                                          const Updater* updater) {
  std::unique_ptr<ShardStore> plain = NewPlainStore(spec, context, updater);
  absl::StatusOr<compress::TableCodecs> codecs = compress::TableCodecsOf(spec);
  if (!codecs.ok() || !codecs->encodes()) return plain;
  return NewCodedStore(spec, context, updater, *std::move(codecs), std::move(plain));
}

}  // namespace leeway::ps
