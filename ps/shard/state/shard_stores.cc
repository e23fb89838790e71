#include "ps/shard/state/shard_stores.h"

#include <algorithm>

#include "ps/store/factory/new_shard_store.h"
#include "ps/store/feedback.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

ShardStore* ShardStores::Of(const Table& table) {
  std::unique_ptr<ShardStore>& store = stores_[table.id()];
  if (store == nullptr) store = NewStoreFor(table);
  return store.get();
}

std::unique_ptr<ShardStore> ShardStores::NewStoreFor(const Table& table) const {
  return NewShardStore(table.spec(), ContextFor(table.id()), table.updater());
}

StoreContext ShardStores::ContextFor(std::uint32_t table) const {
  return {.table = table,
          .shard = shard_,
          .num_shards = context_->num_shards,
          .block_bytes = context_->block_bytes,
          .pull_bytes_max = context_->message_bytes_max,
          .pool = &context_->pool,
          .memory = context_->table_memory,
          .hash_seed = context_->loop->Random()};
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

CollectedPushes& ShardStores::CollectedOf(const Table& table) {
  const auto found = collected_.find(table.id());
  if (found != collected_.end()) return found->second;
  Of(table);
  return collected_.try_emplace(table.id(), table.spec(), ContextFor(table.id())).first->second;
}

absl::Status ShardStores::ApplyCollected(const Table& table, const PreparedTableSettings& settings,
                                         std::uint64_t block, std::uint32_t mean_of) {
  LEEWAY_RETURN_IF_ERROR(
      Of(table, settings)->ApplyAggregate(CollectedOf(table).Take(block, mean_of)));
  CountUpdate(table, block);
  return absl::OkStatus();
}

absl::Status ShardStores::Apply(const Table& table, const PreparedTableSettings& settings,
                                const PushView& push, double weight, bool* nonfinite) {
  ShardStore* const store = Of(table, settings);
  const bool begins = BeginsWithPush(table, push.block);
  LEEWAY_RETURN_IF_ERROR(ApplyWeighted(store, table.spec().dtype, push, weight, nonfinite));
  CountUpdate(table, push.block);
  // Workers are given the values that a block begins with whole: a codec would make a guess of
  // them.
  return begins ? store->BeginReplies(push.block) : absl::OkStatus();
}

bool ShardStores::BeginsWithPush(const Table& table, std::uint64_t block) {
  return table.spec().initializer.kind == Initializer::Kind::kPushed &&
         Of(table)->StepsOf(block) == 0;
}

void ShardStores::CountUpdate(const Table& table, std::uint64_t block) {
  if (table.is_weighted()) ++updates_[TargetOf(table, block)];
}

std::uint64_t ShardStores::UpdatesOf(const Table& table, std::uint64_t block) const {
  const auto found = updates_.find(TargetOf(table, block));
  return found == updates_.end() ? 0 : found->second;
}

void ShardStores::SetUpdates(const Table& table, std::uint64_t block, std::uint64_t updates) {
  updates_[TargetOf(table, block)] = updates;
}

ShardStores::Target ShardStores::TargetOf(const Table& table, std::uint64_t block) {
  return {table.id(), table.spec().kind == TableKind::kDense ? block : 0};
}

void ShardStores::Clear() {
  stores_.clear();
  collected_.clear();
  updates_.clear();
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
  for (const auto& [id, collected] : collected_) {
    const std::uint64_t content = ps::Digest(collected.Freeze());
    if (content != 0) digest = runtime::StableHash(digest ^ runtime::StableHash(~content ^ id));
  }
  return digest;
}

}  // namespace leeway::ps
