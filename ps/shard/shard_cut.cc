#include "ps/shard/shard_cut.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "proto/messages/table_settings_schedule.h"
#include "ps/store/factory/collected_pushes.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/feedback.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// Checkpoints that a shard remembers: incremental ones are taken on top of the newest as a rule.
constexpr std::size_t kSavedMax = 4;

// As the shard does, where nobody has pushed in the cut's clock or a later one.
absl::Status Collect(const FrozenShard::TrailingPush& trailing, DType dtype, ShardStore* store,
                     CollectedPushes* collected) {
  LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush weighted,
                          Weighted(*store, dtype, trailing.push, trailing.as.weight));
  LEEWAY_RETURN_IF_ERROR(collected->Add(weighted));
  const bool enough =
      trailing.as.enough != 0 && collected->count(weighted.block) >= trailing.as.enough;
  if (!enough) return absl::OkStatus();
  return store->ApplyAggregate(collected->Take(weighted.block, trailing.as.mean_of));
}

}  // namespace

const SavedGenerations::ByTable* SavedGenerations::Find(const std::string& folder) const {
  for (const auto& [name, generations] : saved_) {
    if (name == folder) return &generations;
  }
  return nullptr;
}

void SavedGenerations::Remember(const std::string& folder, ByTable generations) {
  std::erase_if(saved_, [&](const auto& one) { return one.first == folder; });
  saved_.emplace_back(folder, std::move(generations));
  if (saved_.size() > kSavedMax) saved_.erase(saved_.begin());
}

ShardCut::ShardCut(const CutOrder& order, Tables* tables, const ShardStores* stores,
                   SavedGenerations* saved, runtime::ByteBudget* trailing, Admitted admitted,
                   Done done)
    : order_(order),
      base_folder_(order.base.empty() ? ""
                                      : checkpoint::JoinPath(
                                            checkpoint::SplitPath(order.folder).first, order.base)),
      tables_(tables),
      stores_(stores),
      saved_(saved),
      trailing_budget_(trailing),
      admitted_(std::move(admitted)),
      done_(std::move(done)) {
  by_clock_ = order.bounded;
  for (const auto& [id, table] : tables_->all()) {
    by_clock_ = by_clock_ || table.is_ever_bounded();
  }
  for (const auto& [id, store] : stores_->all()) {
    const Table& table = *tables_->Find(id);
    if (!table.is_bsp() && !ByClock(table)) Freeze(id, /*may_trail=*/false);
  }
}

ShardCut::~ShardCut() { trailing_budget_->bytes -= trailing_bytes_; }

void ShardCut::Freeze(std::uint32_t table, bool may_trail) {
  const SavedGenerations::ByTable* before = saved_->Find(base_folder_);
  std::uint64_t since = 0;
  if (before != nullptr && before->contains(table)) since = before->at(table);
  ShardStore* store = stores_->all().at(table).get();
  Frozen& frozen = frozen_[table];
  frozen.since = store->FreezeSince(since);
  // A trailing push needs the row that it changes, however old that is.
  if (may_trail && since != 0) {
    frozen.full = store->Freeze();
  }
  const auto collected = stores_->collected().find(table);
  if (collected != stores_->collected().end()) frozen.collected = collected->second.Freeze();
}

void ShardCut::BeforePush(const Table& table, std::uint64_t clock) {
  if (frozen_.contains(table.id()) || !stores_->all().contains(table.id())) return;
  // A table that is not taken by its clock and was not there at the beginning is empty.
  if (!ByClock(table)) return Freeze(table.id(), /*may_trail=*/false);
  if (clock >= order_.clock) Freeze(table.id(), /*may_trail=*/true);
}

void ShardCut::AfterPush(const Table& table, const Inbound& push, const PushedAs& as) {
  const bool later = push.request.clock >= order_.clock;
  if (later || !ByClock(table) || done_ == nullptr) return;
  const proto::RequestId& id = push.request.id;
  std::uint64_t& admitted = admitted_[{id.worker, id.incarnation}];
  admitted = std::max(admitted, id.sequence);
  const auto frozen = frozen_.find(table.id());
  if (frozen == frozen_.end()) return;
  if (!trailing_budget_->HasRoom(push.bytes())) {
    return Fail(absl::ResourceExhaustedError(
        absl::StrCat("pushes of slower workers that belong to the checkpoint and came after it had "
                     "begun take more than LEEWAY_HELD_BYTES_MAX (",
                     trailing_budget_->bytes_max, " bytes a thread)")));
  }
  trailing_budget_->bytes += push.bytes();
  trailing_bytes_ += push.bytes();
  frozen->second.has_trailing = true;
  PushView trailing = ToPush(push);
  EnsureOwned(&trailing);  // its worker is answered before the checkpoint is written
  trailing_.push_back(
      {.table = table.id(),
       .settings = proto::TableSettingsOf(table.SettingsAt(push.request.clock).spec),
       .as = as,
       .push = std::move(trailing)});
}

void ShardCut::Finish(std::vector<proto::ClientSession> sessions, ShardContent place) {
  if (done_ == nullptr) return;
  for (const auto& [id, store] : stores_->all()) {
    if (!frozen_.contains(id)) Freeze(id, /*may_trail=*/false);
  }
  FrozenShard frozen{.content = std::move(place), .trailing = std::move(trailing_)};
  ShardContent& content = frozen.content;
  content.clock = order_.clock;
  content.base = saved_->Find(base_folder_) != nullptr ? order_.base : "";
  for (proto::ClientSession& session : sessions) {
    session.clock = std::min(session.clock, order_.clock);
    const auto admitted = admitted_.find({session.rank, session.incarnation});
    session.admitted = admitted == admitted_.end() ? 0 : admitted->second;
  }
  content.sessions = std::move(sessions);
  SavedGenerations::ByTable generations;
  for (auto& [id, snapshots] : frozen_) {
    const Table& table = *tables_->Find(id);
    generations[id] = snapshots.since.generation;
    const bool needs_full = snapshots.has_trailing && snapshots.full.has_value();
    content.tables.push_back(
        {.id = id,
         .spec = table.spec(),
         .state_slots = StateSlots(table.spec(), *table.updater()),
         .pieces = std::move(needs_full ? snapshots.full->pieces : snapshots.since.pieces),
         .collected = std::move(snapshots.collected)});
  }
  saved_->Remember(order_.folder, std::move(generations));
  std::exchange(done_, nullptr)(std::move(frozen));
}

void ShardCut::Fail(absl::Status why) {
  if (done_ != nullptr) std::exchange(done_, nullptr)(std::move(why));
}

absl::StatusOr<ShardContent> ApplyTrailingPushes(FrozenShard frozen) {
  for (ShardContent::Table& table : frozen.content.tables) {
    const auto is_its = [&](const FrozenShard::TrailingPush& push) {
      return push.table == table.id;
    };
    if (std::none_of(frozen.trailing.begin(), frozen.trailing.end(), is_its)) continue;
    LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Updater> updater, MakeUpdater(table.spec));
    proto::TableSettings used = proto::TableSettingsOf(table.spec);
    const StoreContext context = {.table = table.id,
                                  .shard = frozen.content.shard,
                                  .num_shards = frozen.content.num_shards,
                                  .block_bytes = frozen.content.block_bytes};
    const std::unique_ptr<ShardStore> copy = NewShardStore(table.spec, context, updater.get());
    for (const FrozenPiece& piece : std::exchange(table.pieces, {})) {
      LEEWAY_RETURN_IF_ERROR(copy->Load(piece));
    }
    CollectedPushes collected(table.spec, context);
    for (const FrozenPiece& piece : std::exchange(table.collected, {})) {
      LEEWAY_RETURN_IF_ERROR(collected.Load(piece));
    }
    for (const FrozenShard::TrailingPush& trailing : frozen.trailing) {
      if (!is_its(trailing)) continue;
      if (trailing.settings != used) {
        const TableSpec spec = proto::WithTableSettings(table.spec, trailing.settings);
        LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Updater> other, MakeUpdater(spec));
        copy->UseSettings(spec, other.get());
        updater = std::move(other);
        used = trailing.settings;
      }
      LEEWAY_RETURN_IF_ERROR(trailing.as.collected
                                 ? Collect(trailing, table.spec.dtype, copy.get(), &collected)
                                 : ApplyWeighted(copy.get(), table.spec.dtype, trailing.push,
                                                 trailing.as.weight, /*nonfinite=*/nullptr));
    }
    table.pieces = copy->Freeze().pieces;
    table.collected = collected.Freeze();
  }
  return std::move(frozen.content);
}

// ---- the cuts of a shard ----

absl::Status ShardCuts::Begin(const CutOrder& order, ShardCut::Done done) {
  Abandon(absl::AbortedError("another checkpoint has begun"));
  bool bounded = order.bounded, held = false;
  for (const auto& [id, table] : state_->context->tables.all()) {
    held = held || table.is_bsp();
    bounded = bounded || table.is_ever_bounded();
  }
  // Which clocks' pushes an earlier head has applied is not known before all workers have been
  // heard.
  if (bounded && state_->context->loop->Now() < state_->grace_until) {
    return absl::AbortedError(absl::StrCat("shard ", state_->id, " has just got another head"));
  }
  const bool past =
      (held && state_->closed > order.clock) || (bounded && state_->pushed_until > order.clock);
  if (past) {
    return absl::OutOfRangeError(
        absl::StrCat("shard ", state_->id, " is beyond clock ", order.clock));
  }
  ShardCut::Admitted admitted = state_->sessions.AdmittedAtOnce();
  cut_ =
      std::make_unique<ShardCut>(order, &state_->context->tables, &state_->stores, &saved_,
                                 &state_->context->trailing, std::move(admitted), std::move(done));
  // Without any bound there is no clock to wait for.
  bounded || held ? FinishIfDue() : Finish();
  return absl::OkStatus();
}

void ShardCuts::Abandon(const absl::Status& why) {
  if (const std::unique_ptr<ShardCut> cut = std::move(cut_)) cut->Fail(why);
}

void ShardCuts::BeforeClosing(std::uint64_t clock) {
  if (cut_ != nullptr && clock >= cut_->clock()) {
    Finish();
  }
}

void ShardCuts::FinishIfDue() {
  if (cut_ == nullptr) return;
  if (state_->closed < cut_->clock() && state_->clocks.living() != 0) return;
  Finish();
}

void ShardCuts::Finish() {
  ShardContent place;
  place.shard = state_->id;
  place.num_shards = state_->context->num_shards;
  place.block_bytes = state_->context->block_bytes;
  const std::unique_ptr<ShardCut> cut = std::move(cut_);
  cut->Finish(state_->ExportSessions(), std::move(place));
}

}  // namespace leeway::ps
