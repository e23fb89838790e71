// A shard among its replicas: what they hear from each other, and the change of the one that leads.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "ps/shard/log_entries.h"
#include "ps/shard/shard.h"
#include "ps/store/feedback.h"
#include "runtime/base/mutants.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// For bugs of a fill: all slots are lost, or those from that one on.
void LoseState(LogEntry* piece, std::uint32_t from_slot) {
  const std::uint32_t slots = piece->header.state_slots;
  if (slots <= from_slot) return;
  runtime::Buffer& state = piece->payload[piece->payload.size() - 2];
  std::string lost(state.text());
  std::fill(lost.begin() + static_cast<std::ptrdiff_t>(lost.size() / slots * from_slot), lost.end(),
            '\0');
  state = runtime::Buffer::CopyOf(lost);
}

}  // namespace

// ---- the change of the head ----

// The bug of that name.
void Shard::LoseFeedback() {
  for (auto& [id, store] : stores_) {
    if (FeedbackSlots(context_->tables.Find(id)->spec()) == 0) continue;
    for (const FrozenPiece& piece : store->Freeze().pieces) {
      const absl::StatusOr<FeedbackBlock> open = store->OpenFeedback(piece.block, false);
      if (open.ok()) std::fill_n(open->slot, open->elements, 0.0f);
    }
  }
}

void Shard::BecomeHead(bool inherited) {
  if (runtime::Planted<"feedback-lost-in-failover">() && inherited) LoseFeedback();
  if (inherited && !runtime::Planted<"grace-time-forgotten">()) {
    grace_until_ = context_->loop->Now() + context_->held_grace;
  }
  // The head before may have known of later clocks, and so have answered with the block itself, by
  // a codec that the table had from one of them on: no reader may now get an older version.
  if (inherited && !runtime::Planted<"slowest-kept-in-failover">()) ForgetSlowest();
  const bool forget = runtime::Planted<"promote-without-windows">() && inherited;
  for (auto& [worker, session] : sessions_) {
    session.streams[kAtOnce].Restart(forget ? 0 : session.streams[kAtOnce].admitted());
    if (!runtime::Planted<"held-numbers-kept-in-failover">()) {
      session.streams[kHeld].Restart(forget ? 0 : session.in_state);
    }
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      session.inherited[kind] = session.streams[kind].admitted();
    }
  }
  Settle();
}

std::vector<LogEntry> Shard::StepDown(const absl::Status& why) {
  if (!runtime::Planted<"cut-kept-after-step-down">()) AbandonCut(why);
  std::vector<LogEntry> rest;
  contributions_.ForEach(
      [&](std::uint64_t clock, const Target& target, const Contribution& contribution) {
        rest.push_back(HeldEntry(*context_->tables.Find(target.table), clock, contribution));
      });
  if (runtime::Planted<"handover-without-held">()) rest.clear();
  if (!runtime::Planted<"held-kept-after-step-down">()) contributions_.Clear();
  firm_ = 0;
  LogEntry end;
  end.header.kind = proto::LogEntryKind::kHandoverEnd;
  end.header.clock = closed_;
  end.header.workers = Windows(/*with_held=*/true);
  rest.push_back(std::move(end));

  for (const PendingPull& pull : held_.TakeAll()) {
    if (!runtime::Planted<"held-pulls-kept-after-step-down">()) Refuse(pull.inbound, why);
  }
  RefuseEarly(why);
  // From here on it knows what the log says, like the others: if it leads again, it must not
  // believe that workers have ended clocks whose contributions it has given away.
  if (!runtime::Planted<"clocks-known-after-step-down">()) clocks_.ForgetFrom(closed_);
  for (auto& [worker, session] : sessions_) {
    session.streams[kHeld].Restart(session.in_state);
    const bool entered = session.since != WorkerClocks::kNotEntered;
    if (!runtime::Planted<"window-clocks-kept-after-step-down">())
      session.clock = std::min(session.clock, entered ? std::max(closed_, session.since) : closed_);
  }
  return rest;
}

void Shard::TakeOver(const std::vector<LogEntry>& entries) {
  for (const LogEntry& entry : entries) {
    const proto::Replicate& header = entry.header;
    if (header.kind == proto::LogEntryKind::kHeld) {
      if (context_->tables.Find(header.table) == nullptr) continue;  // it can have come to nobody
      const bool dense = header.table_kind == TableKind::kDense;
      contributions_.Add(header.clock, {.table = header.table, .block = dense ? header.block : 0},
                         {.rank = header.worker,
                          .incarnation = header.incarnation,
                          .sequence = header.sequence,
                          .bytes = entry.bytes(),
                          .elements = header.elements,
                          .push = ToPush(entry)});
      continue;
    }
    if (!runtime::Planted<"handover-without-closed">()) closed_ = std::max(closed_, header.clock);
    for (const proto::ClientSession& worker : header.workers) {
      const WorkerKey key{worker.rank, worker.incarnation};
      if (IsReplaced(key)) continue;
      if (!runtime::Planted<"handover-without-clocks">())
        EnterSession(key, worker.clock, worker.since);
      ClientSession& session = SessionOf(key);
      for (const auto& [kind, admitted] :
           {std::pair(kAtOnce, worker.admitted), std::pair(kHeld, worker.admitted_held)}) {
        Stream& stream = session.streams[kind];
        if (!runtime::Planted<"handover-without-numbers">()) {
          stream.Restart(std::max(stream.admitted(), admitted));
        }
        session.inherited[kind] = stream.admitted();
      }
    }
  }
  Settle();
}

// ---- the log ----

absl::Status Shard::Follow(const std::vector<LogEntry>& updates, const LogEntry& entry) {
  const proto::Replicate& header = entry.header;
  // All that could be missing, before anything is changed.
  auto known = [this](const LogEntry& one) {
    const Table* const table = context_->tables.Find(one.header.table);
    if (table != nullptr && table->FindSettings(one.header.settings) != nullptr) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        table == nullptr
            ? absl::StrCat("table ", one.header.table, " is not installed on this server")
            : absl::StrCat("this server has not heard of settings ", one.header.settings,
                           " of table ", one.header.table));
  };
  if (!runtime::Planted<"followed-half-on-missing-table">()) {
    for (const LogEntry& update : updates) LEEWAY_RETURN_IF_ERROR(known(update));
  }
  switch (header.kind) {
    case proto::LogEntryKind::kPush: {
      LEEWAY_RETURN_IF_ERROR(known(entry));
      Table& table = *context_->tables.Find(header.table);
      table.NoteAskedFor();
      LEEWAY_RETURN_IF_ERROR(
          StoreOf(table, *table.FindSettings(header.settings))->Apply(ToPush(entry)));
      ++context_->counters->pushes_followed;
      if (!runtime::Planted<"followed-pushed-until-not-noted">()) {
        pushed_until_ = std::max(pushed_until_, header.clock + 1);
      }
      if (IsReplaced({header.worker, header.incarnation})) break;
      Stream& stream = SessionOf({header.worker, header.incarnation}).streams[kAtOnce];
      if (!runtime::Planted<"followed-push-not-noted">()) {
        stream.Admit(std::max(stream.admitted(), header.sequence));
      }
      break;
    }
    case proto::LogEntryKind::kClose:
      for (const LogEntry& update : updates) {
        Table& table = *context_->tables.Find(update.header.table);
        table.NoteAskedFor();
        const AggregatedPush aggregate = ToAggregate(update);
        ShardStore* const store = StoreOf(table, *table.FindSettings(update.header.settings));
        LEEWAY_RETURN_IF_ERROR(store->ApplyAggregate(aggregate));
        LEEWAY_RETURN_IF_ERROR(store->MakeVersion(aggregate.block, header.clock + 1,
                                                  aggregate.learning_rate, ToVersionBy(update)));
      }
      if (!runtime::Planted<"followed-clock-not-closed">())
        closed_ = std::max(closed_, header.clock + 1);
      TakeSessions(header.workers);
      break;
    case proto::LogEntryKind::kEnter:
      TakeSessions(header.workers);
      break;
    case proto::LogEntryKind::kVersion:
      LEEWAY_RETURN_IF_ERROR(known(entry));
      // How far the slowest worker is the log does not say: a head that takes over finds out anew.
      LEEWAY_RETURN_IF_ERROR(StoreOf(*context_->tables.Find(header.table))
                                 ->MakeVersion(header.block, 0,
                                               std::numeric_limits<double>::quiet_NaN(),
                                               ToVersionBy(entry)));
      break;
    case proto::LogEntryKind::kRefusal:
      if (!runtime::Planted<"followed-refusals-ignored">()) TakeRefusals(header.refusals);
      break;
    case proto::LogEntryKind::kConfirm:
      break;
    default:
      return absl::InvalidArgumentError("this is no entry of a shard's log");
  }
  ++index_;
  return absl::OkStatus();
}

std::vector<proto::ClientSession> Shard::Windows(bool with_held) const {
  std::vector<proto::ClientSession> all;
  all.reserve(sessions_.size());
  for (const auto& [worker, session] : sessions_) {
    const bool current = clocks_.IncarnationOf(worker.first) == worker.second;
    const std::uint64_t since = current ? clocks_.SinceOf(worker.first) : session.since;
    std::uint64_t clock = current ? clocks_.ClockOf(worker.first) : session.clock;
    // Who is not told what is held may not believe either that a worker has ended the clocks it is
    // held for: it would close them without.
    if (!with_held && !runtime::Planted<"log-tells-open-clocks">()) {
      clock = std::min(clock, closed_);
    }
    if (since != WorkerClocks::kNotEntered) clock = std::max(clock, since);
    all.push_back({.rank = worker.first,
                   .incarnation = worker.second,
                   .clock = clock,
                   .since = since,
                   .admitted = session.streams[kAtOnce].admitted(),
                   .admitted_held = with_held || runtime::Planted<"held-told-as-in-state">()
                                        ? session.streams[kHeld].admitted()
                                        : session.in_state});
  }
  return all;
}

void Shard::TakeSessions(const std::vector<proto::ClientSession>& sessions) {
  for (const proto::ClientSession& worker : sessions) {
    const WorkerKey key{worker.rank, worker.incarnation};
    if (IsReplaced(key)) continue;
    if (worker.since != WorkerClocks::kNotEntered && !runtime::Planted<"late-begin-not-told">()) {
      EnterSession(key, worker.clock, worker.since);
    }
    ClientSession& session = SessionOf(key);
    Stream& at_once = session.streams[kAtOnce];
    at_once.Admit(std::max(at_once.admitted(), worker.admitted));
    session.in_state = std::max(session.in_state, worker.admitted_held);
  }
}

// By worker and class in the order of their numbers; the newest where there are too many.
std::vector<proto::Refusal> Shard::Refusals() const {
  std::vector<proto::Refusal> all;
  for (const auto& [worker, session] : sessions_) {
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      const Stream& stream = session.streams[kind];
      proto::Refusal refusal{
          .worker = worker.first, .incarnation = worker.second, .held = kind == kHeld};
      if (const std::uint64_t forgotten = stream.forgotten_failures();
          forgotten > 0 && !runtime::Planted<"forgotten-refusals-unsaid">()) {
        refusal.sequence = forgotten;
        refusal.with_earlier = true;
        refusal.status = absl::UnknownError("");
        all.push_back(refusal);
      }
      refusal.with_earlier = false;
      for (const auto& [sequence, failure] : stream.failures()) {
        refusal.sequence = sequence;
        refusal.status = failure;
        all.push_back(refusal);
      }
    }
  }
  if (all.size() <= proto::kRefusalsMax) return all;
  return {all.end() - proto::kRefusalsMax, all.end()};
}

void Shard::TakeRefusals(const std::vector<proto::Refusal>& refusals) {
  for (const proto::Refusal& refusal : refusals) {
    if (IsReplaced({refusal.worker, refusal.incarnation})) continue;
    Stream& stream =
        SessionOf({refusal.worker, refusal.incarnation}).streams[refusal.held ? kHeld : kAtOnce];
    if (refusal.with_earlier) {
      stream.ForgetFailuresUpTo(refusal.sequence);
      continue;
    }
    // Of the held class what counts as admitted is what is in the state.
    if (!refusal.held) stream.Admit(std::max(stream.admitted(), refusal.sequence));
    stream.RememberFailure(refusal.sequence, refusal.status);
  }
}

// ---- the whole state ----

LogEntry Shard::FillBegin() const {
  LogEntry begin;
  begin.header.kind = proto::LogEntryKind::kFillBegin;
  begin.header.index = index_;
  begin.header.clock = closed_;
  begin.header.workers = Windows(/*with_held=*/false);
  begin.header.pushed_until = pushed_until_;
  begin.header.refusals = Refusals();
  return begin;
}

std::vector<LogEntry> Shard::Freeze() {
  std::vector<LogEntry> pieces;
  for (auto& [id, store] : stores_) {
    const Table& table = *context_->tables.Find(id);
    for (const FrozenPiece& piece : store->Freeze().pieces) {
      pieces.push_back(PieceEntry(table, piece));
      if (runtime::Planted<"state-lost-in-fill">()) LoseState(&pieces.back(), 0);
      if (runtime::Planted<"version-lost-in-fill">()) pieces.back().header.version = 0;
      if (runtime::Planted<"feedback-lost-in-fill">() && FeedbackSlots(table.spec()) > 0) {
        LoseState(&pieces.back(), piece.state_slots - 1);
      }
    }
  }
  return pieces;
}

void Shard::BeginFill(const LogEntry& begin) {
  if (!runtime::Planted<"stores-kept-in-fill">()) stores_.clear();
  if (!runtime::Planted<"settings-kept-in-fill">()) settings_.clear();
  if (!runtime::Planted<"saved-kept-in-fill">())
    saved_ = SavedGenerations();  // of the stores that were
  if (!runtime::Planted<"windows-kept-in-fill">()) sessions_.clear();
  index_ = begin.header.index;
  if (!runtime::Planted<"closed-lost-in-fill">()) closed_ = begin.header.clock;
  if (!runtime::Planted<"pushed-until-lost-in-fill">()) pushed_until_ = begin.header.pushed_until;
  if (!runtime::Planted<"windows-lost-in-fill">()) TakeSessions(begin.header.workers);
  if (!runtime::Planted<"refusals-lost-in-fill">()) TakeRefusals(begin.header.refusals);
}

absl::Status Shard::LoadPiece(const LogEntry& piece) {
  Table* table = context_->tables.Find(piece.header.table);
  if (table == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", piece.header.table, " is not installed on this server"));
  }
  table->NoteAskedFor();
  FrozenPiece frozen = ToPiece(piece);
  LEEWAY_RETURN_IF_ERROR(CheckPiece(table->spec(), *table->updater(), frozen));
  return StoreOf(*table)->Load(frozen);
}

// ---- what there is ----

bool Shard::HoldsFirmly() const {
  const std::optional<std::uint64_t> first = contributions_.FirstClock();
  return first.has_value() && *first < firm_;
}

std::uint64_t Shard::Digest() {
  std::uint64_t digest = index_;
  for (auto& [id, store] : stores_) {
    const std::uint64_t content = ps::Digest(store->Freeze().pieces);
    if (content == 0) continue;  // asked for, but never pushed to
    digest = runtime::StableHash(digest ^ runtime::StableHash(content ^ id));
  }
  return digest;
}

}  // namespace leeway::ps
