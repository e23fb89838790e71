#include "ps/shard/state_transfer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/tables/table_difference.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "ps/store/feedback.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
LogEntry ExportBegin(const ShardState& state) {
  LogEntry begin;
  begin.header.kind = proto::LogEntryKind::kTransferBegin;
  begin.header.index = state.index;
  begin.header.clock = state.closed;
  begin.header.workers = state.ExportSessions();
  begin.header.pushed_until = state.pushed_until;
  begin.header.refusals = state.sessions.Refusals();
  begin.header.map_version = state.sessions.told();
  for (const auto& [table, closed] : state.closed_of)
    begin.header.closed_of.push_back({table, closed});
  return begin;
}

std::vector<LogEntry> ExportPieces(ShardState* state) {
  std::vector<LogEntry> pieces;
  for (const auto& [id, store] : state->stores.all()) {
    const Table& table = *state->context->tables.Find(id);
    for (FrozenPiece& piece : store->Freeze().pieces) {
      // Such a table has no versions.
      if (table.is_weighted()) piece.version = state->stores.UpdatesOf(table, piece.block);
      pieces.push_back(PieceEntry(table, piece));
    }
  }
  for (const auto& [id, collected] : state->stores.collected()) {
    const Table& table = *state->context->tables.Find(id);
    for (const FrozenPiece& piece : collected.Freeze()) {
      pieces.push_back(PieceEntry(table, piece));
    }
  }
  for (LogEntry& entry : state->published.Export(&state->context->tables, &state->stores)) {
    pieces.push_back(std::move(entry));
  }
  for (const auto& [worker, session] : state->sessions.all()) {
    for (const auto& [sequence, answer] : session.answers.all()) {
      pieces.push_back(AnswerEntry(worker.first, worker.second, sequence, answer));
    }
  }
  return pieces;
}

void ImportBegin(const LogEntry& begin, ShardState* state) {
  const proto::Replicate& header = begin.header;
  state->stores.Clear();
  state->published.Clear();
  state->closed_of.clear();
  state->closing.clear();
  for (const proto::TableClock& of : header.closed_of) state->closed_of[of.table] = of.closed;
  state->sessions.Clear();
  state->index = header.index;
  state->closed = header.clock;
  state->pushed_until = header.pushed_until;
  state->sessions.Take(header.workers, header.map_version);
  state->sessions.TakeRefusals(header.refusals, header.map_version);
}

absl::Status ImportPiece(const LogEntry& piece, ShardState* state) {
  if (piece.header.kind == proto::LogEntryKind::kAnswer) {
    // Null: its worker's rank has another process by now.
    ClientSession* const session =
        state->sessions.Find({piece.header.worker, piece.header.incarnation});
    if (session != nullptr) session->answers.Keep(piece.header.sequence, piece.payload[0]);
    return absl::OkStatus();
  }
  Table* table = state->context->tables.Find(piece.header.table);
  if (table == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", piece.header.table, " is not installed on this server"));
  }
  table->NoteAskedFor();
  if (piece.header.has().publication) {
    return state->published.Import(piece, *table, &state->stores);
  }
  FrozenPiece frozen = ToPiece(piece);
  if (frozen.collected != 0) return state->stores.CollectedOf(*table).Load(frozen);
  if (table->is_weighted()) {
    state->stores.SetUpdates(*table, frozen.block, std::exchange(frozen.version, 0));
  }
  LEEWAY_RETURN_IF_ERROR(CheckPiece(table->spec(), *table->updater(), frozen));
  return state->stores.Of(*table)->Load(frozen);
}

absl::StatusOr<std::uint64_t> Restore(const ShardContent& content, ShardState* state) {
  std::uint64_t taken = 0;
  for (const ShardContent::Table& saved : content.tables) {
    Table* const table = state->context->tables.Find(saved.id);
    if (table == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "table ", saved.spec.name, " of the checkpoint is not installed on this server"));
    }
    // Settings may have changed between a checkpoint and one that builds on it.
    LEEWAY_RETURN_IF_ERROR(proto::CheckShapedAlike(table->spec(), saved.spec));
    for (const FrozenPiece& piece : saved.pieces) {
      LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t rows,
                              state->stores.Of(*table)->LoadElsewhere(piece, content.block_bytes));
      if (rows != 0 && saved.codec_changed) {
        LEEWAY_RETURN_IF_ERROR(state->stores.Of(*table)->BeginReplies(piece.block));
      }
      taken += rows;
      if (rows != 0) table->NoteAskedFor();
    }
    for (const FrozenPiece& piece : saved.collected) {
      LEEWAY_ASSIGN_OR_RETURN(const bool any, state->stores.CollectedOf(*table).LoadElsewhere(
                                                  piece, content.block_bytes));
      if (any) table->NoteAskedFor();
    }
  }
  // Requests are numbered for each shard, so that the numbers of other shards mean nothing.
  if (content.num_shards == state->context->num_shards && content.shard == state->id) {
    state->sessions.Restore(content.sessions);
  }
  return taken;
}

}  // namespace leeway::ps
