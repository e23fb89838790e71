// A shard and its checkpoints: what is taken of it, and what it begins with.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/tables/table_difference.h"
#include "ps/shard/shard.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

std::uint64_t Shard::newest_clock() const {
  return std::max(pushed_until_ == 0 ? 0 : pushed_until_ - 1, clocks_.fastest());
}

absl::Status Shard::BeginCut(const CutOrder& order, ShardCut::Done done) {
  AbandonCut(absl::AbortedError("another checkpoint has begun"));
  bool bounded = order.bounded, held = false;
  for (const auto& [id, table] : context_->tables.all()) {
    held = held || table.is_bsp();
    bounded = bounded || table.is_ever_bounded();
  }
  // Which clocks' pushes an earlier head has applied is not known before all workers have been
  // heard.
  if (bounded && context_->loop->Now() < grace_until_ && !runtime::Planted<"cut-in-grace-time">()) {
    return absl::AbortedError(absl::StrCat("shard ", id_, " has just got another head"));
  }
  const bool past = (held && closed_ > order.clock) || (bounded && pushed_until_ > order.clock);
  if (past && !runtime::Planted<"cut-of-a-past-clock">()) {
    return absl::OutOfRangeError(absl::StrCat("shard ", id_, " is beyond clock ", order.clock));
  }
  ShardCut::Admitted admitted;
  for (const auto& [worker, session] : sessions_) {
    if (!runtime::Planted<"cut-without-admitted">()) {
      admitted[worker] = session.streams[kAtOnce].admitted();
    }
  }
  cut_ = std::make_unique<ShardCut>(order, &context_->tables, &stores_, &saved_, &context_->late,
                                    std::move(admitted), std::move(done));
  // Without any bound there is no clock to wait for.
  bounded || held ? FinishCutIfDue() : FinishCut();
  return absl::OkStatus();
}

void Shard::AbandonCut(const absl::Status& why) {
  if (const std::unique_ptr<ShardCut> cut = std::move(cut_)) cut->Fail(why);
}

void Shard::FinishCutIfDue() {
  if (cut_ == nullptr) return;
  const bool early = closed_ < cut_->clock() && clocks_.living() != 0;
  if (early && !runtime::Planted<"cut-before-its-clock">()) return;
  FinishCut();
}

void Shard::FinishCut() {
  ShardContent place;
  place.shard = id_;
  place.num_shards = context_->num_shards;
  place.block_bytes = context_->block_bytes;
  const std::unique_ptr<ShardCut> cut = std::move(cut_);
  cut->Finish(Windows(/*with_held=*/false), std::move(place));
}

absl::StatusOr<std::uint64_t> Shard::Restore(const ShardContent& content) {
  std::uint64_t taken = 0;
  for (const ShardContent::Table& saved : content.tables) {
    Table* const table = context_->tables.Find(saved.id);
    if (table == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "table ", saved.spec.name, " of the checkpoint is not installed on this server"));
    }
    // Settings may have changed between a checkpoint and one that builds on it.
    LEEWAY_RETURN_IF_ERROR(proto::CheckShapedAlike(table->spec(), saved.spec));
    for (const FrozenPiece& piece : saved.pieces) {
      LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t rows,
                              StoreOf(*table)->LoadElsewhere(piece, content.block_bytes));
      taken += rows;
      if (rows != 0) table->NoteAskedFor();
    }
  }
  if (runtime::Planted<"windows-lost-in-restore">()) return taken;
  // Numbers count for each shard, so that those of other shards mean nothing.
  if ((content.num_shards == context_->num_shards && content.shard == id_) ||
      runtime::Planted<"windows-of-other-shards-restored">()) {
    for (const proto::ClientSession& saved : content.sessions) {
      ClientSession& session = SessionOf({saved.rank, saved.incarnation});
      session.restored = true;
      if (!runtime::Planted<"held-session-lost-in-restore">()) {
        session.in_state = std::max(session.in_state, saved.admitted_held);
      }
      session.streams[kAtOnce].Restart(
          std::max(session.streams[kAtOnce].admitted(), saved.admitted));
      session.streams[kHeld].Restart(std::max(session.streams[kHeld].admitted(), session.in_state));
      session.inherited[kAtOnce] = session.streams[kAtOnce].admitted();
      session.inherited[kHeld] = session.in_state;
    }
  }
  return taken;
}

}  // namespace leeway::ps
