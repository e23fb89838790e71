#include "ps/shard/state/shard_stores.h"

#include <algorithm>

#include "ps/store/factory/new_shard_store.h"
#include "ps/store/feedback.h"
#include "runtime/base/random.h"

namespace leeway::ps {

ShardStore* ShardStores::Of(const Table& table) {
  std::unique_ptr<ShardStore>& store = stores_[table.id()];
  if (store == nullptr) {
    const StoreContext context{.table = table.id(),
                               .shard = shard_,
                               .num_shards = context_->num_shards,
                               .block_bytes = context_->block_bytes,
                               .pull_bytes_max = context_->message_bytes_max,
                               .pool = &context_->pool,
                               .memory = context_->table_memory,
                               .hash_seed = context_->loop->Random()};
    store = NewShardStore(table.spec(), context, table.updater());
  }
  return store.get();
}

ShardStore* ShardStores::Of(const Table& table, const PreparedTableSettings& settings) {
  ShardStore* const store = Of(table);
  std::uint32_t& used = settings_[table.id()];
  if (used != settings.number) {
    store->UseSettings(settings.spec, settings.updater.get());
    used = settings.number;
  }
  return store;
}

void ShardStores::Clear() {
  stores_.clear();
  settings_.clear();
}

void ShardStores::ForgetSlowest() {
  for (auto& [id, store] : stores_) store->ForgetSlowest();
}

std::uint64_t ShardStores::Digest(std::uint64_t index) const {
  std::uint64_t digest = index;
  for (const auto& [id, store] : stores_) {
    const std::uint64_t content = ps::Digest(store->Freeze().pieces);
    if (content == 0) continue;  // asked for, but never pushed to
    digest = runtime::StableHash(digest ^ runtime::StableHash(content ^ id));
  }
  return digest;
}

}  // namespace leeway::ps
