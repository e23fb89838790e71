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
void LoseState(Item* piece, std::uint32_t from_slot) {
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
  for (auto& [worker, window] : windows_) {
    window.streams[kAtOnce].Restart(forget ? 0 : window.streams[kAtOnce].admitted());
    if (!runtime::Planted<"held-numbers-kept-in-failover">()) {
      window.streams[kHeld].Restart(forget ? 0 : window.in_state);
    }
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      window.inherited[kind] = window.streams[kind].admitted();
    }
  }
  Settle();
}

std::vector<Item> Shard::StepDown(const absl::Status& why) {
  if (!runtime::Planted<"cut-kept-after-step-down">()) AbandonCut(why);
  std::vector<Item> rest;
  contributions_.ForEach(
      [&](std::uint64_t clock, const Target& target, const Contribution& contribution) {
        rest.push_back(HeldItem(*context_->tables.Find(target.table), clock, contribution));
      });
  if (runtime::Planted<"handover-without-held">()) rest.clear();
  if (!runtime::Planted<"held-kept-after-step-down">()) contributions_.Clear();
  firm_ = 0;
  Item end;
  end.header.kind = proto::ReplicaItem::kHandoverEnd;
  end.header.clock = closed_;
  end.header.workers = Windows(/*with_held=*/true);
  rest.push_back(std::move(end));

  for (const HeldPull& pull : held_.TakeAll()) {
    if (!runtime::Planted<"held-pulls-kept-after-step-down">()) Refuse(pull.inbound, why);
  }
  RefuseEarly(why);
  // From here on it knows what the log says, like the others: if it leads again, it must not
  // believe that workers have ended clocks whose contributions it has given away.
  if (!runtime::Planted<"clocks-known-after-step-down">()) progress_.ForgetFrom(closed_);
  for (auto& [worker, window] : windows_) {
    window.streams[kHeld].Restart(window.in_state);
    const bool entered = window.since != Progress::kNotEntered;
    window.clock = std::min(window.clock, entered ? std::max(closed_, window.since) : closed_);
  }
  return rest;
}

void Shard::TakeOver(const std::vector<Item>& items) {
  for (const Item& item : items) {
    const proto::Replicate& header = item.header;
    if (header.kind == proto::ReplicaItem::kHeld) {
      if (context_->tables.Find(header.table) == nullptr) continue;  // it can have come to nobody
      const bool dense = header.table_kind == TableKind::kDense;
      contributions_.Add(header.clock, {.table = header.table, .block = dense ? header.block : 0},
                         {.rank = header.worker,
                          .incarnation = header.incarnation,
                          .sequence = header.sequence,
                          .bytes = item.bytes(),
                          .elements = header.elements,
                          .push = ToPush(item)});
      continue;
    }
    closed_ = std::max(closed_, header.clock);
    for (const proto::WorkerWindow& worker : header.workers) {
      const WorkerKey key{worker.rank, worker.incarnation};
      if (!runtime::Planted<"handover-without-clocks">())
        EnterWindow(key, worker.clock, worker.since);
      Window& window = WindowOf(key);
      for (const auto& [kind, admitted] :
           {std::pair(kAtOnce, worker.admitted), std::pair(kHeld, worker.admitted_held)}) {
        Stream& stream = window.streams[kind];
        if (!runtime::Planted<"handover-without-numbers">()) {
          stream.Restart(std::max(stream.admitted(), admitted));
        }
        window.inherited[kind] = stream.admitted();
      }
    }
  }
  Settle();
}

// ---- the log ----

absl::Status Shard::Follow(const std::vector<Item>& updates, const Item& entry) {
  const proto::Replicate& header = entry.header;
  // All that could be missing, before anything is changed.
  auto known = [this](const Item& item) {
    const Table* const table = context_->tables.Find(item.header.table);
    if (table != nullptr && table->FindSettings(item.header.settings) != nullptr) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        table == nullptr
            ? absl::StrCat("table ", item.header.table, " is not installed on this server")
            : absl::StrCat("this server has not heard of settings ", item.header.settings,
                           " of table ", item.header.table));
  };
  if (!runtime::Planted<"followed-half-on-missing-table">()) {
    for (const Item& update : updates) LEEWAY_RETURN_IF_ERROR(known(update));
  }
  switch (header.kind) {
    case proto::ReplicaItem::kPush: {
      LEEWAY_RETURN_IF_ERROR(known(entry));
      Table& table = *context_->tables.Find(header.table);
      table.NoteAskedFor();
      LEEWAY_RETURN_IF_ERROR(
          StoreOf(table, *table.FindSettings(header.settings))->Apply(ToPush(entry)));
      ++context_->counters->pushes_followed;
      if (!runtime::Planted<"followed-pushed-until-not-noted">()) {
        pushed_until_ = std::max(pushed_until_, header.clock + 1);
      }
      Stream& stream = WindowOf({header.worker, header.incarnation}).streams[kAtOnce];
      if (!runtime::Planted<"followed-push-not-noted">()) {
        stream.Admit(std::max(stream.admitted(), header.sequence));
      }
      break;
    }
    case proto::ReplicaItem::kClose:
      for (const Item& update : updates) {
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
      TakeWindows(header.workers);
      break;
    case proto::ReplicaItem::kEnter:
      TakeWindows(header.workers);
      break;
    case proto::ReplicaItem::kVersion:
      LEEWAY_RETURN_IF_ERROR(known(entry));
      // How far the slowest worker is the log does not say: a head that takes over finds out anew.
      LEEWAY_RETURN_IF_ERROR(StoreOf(*context_->tables.Find(header.table))
                                 ->MakeVersion(header.block, 0,
                                               std::numeric_limits<double>::quiet_NaN(),
                                               ToVersionBy(entry)));
      break;
    case proto::ReplicaItem::kRefusal:
      if (!runtime::Planted<"followed-refusals-ignored">()) TakeRefusals(header.refusals);
      break;
    case proto::ReplicaItem::kConfirm:
      break;
    default:
      return absl::InvalidArgumentError("this is no entry of a shard's log");
  }
  ++index_;
  return absl::OkStatus();
}

std::vector<proto::WorkerWindow> Shard::Windows(bool with_held) const {
  std::vector<proto::WorkerWindow> all;
  all.reserve(windows_.size());
  for (const auto& [worker, window] : windows_) {
    const bool current = progress_.IncarnationOf(worker.first) == worker.second;
    const std::uint64_t since = current ? progress_.SinceOf(worker.first) : window.since;
    std::uint64_t clock = current ? progress_.ClockOf(worker.first) : window.clock;
    // Who is not told what is held may not believe either that a worker has ended the clocks it is
    // held for: it would close them without.
    if (!with_held && !runtime::Planted<"log-tells-open-clocks">()) {
      clock = std::min(clock, closed_);
    }
    if (since != Progress::kNotEntered) clock = std::max(clock, since);
    all.push_back({.rank = worker.first,
                   .incarnation = worker.second,
                   .clock = clock,
                   .since = since,
                   .admitted = window.streams[kAtOnce].admitted(),
                   .admitted_held = with_held || runtime::Planted<"held-told-as-in-state">()
                                        ? window.streams[kHeld].admitted()
                                        : window.in_state});
  }
  return all;
}

void Shard::TakeWindows(const std::vector<proto::WorkerWindow>& windows) {
  for (const proto::WorkerWindow& worker : windows) {
    const WorkerKey key{worker.rank, worker.incarnation};
    if (worker.since != Progress::kNotEntered && !runtime::Planted<"late-begin-not-told">()) {
      EnterWindow(key, worker.clock, worker.since);
    }
    Window& window = WindowOf(key);
    Stream& at_once = window.streams[kAtOnce];
    at_once.Admit(std::max(at_once.admitted(), worker.admitted));
    window.in_state = std::max(window.in_state, worker.admitted_held);
  }
}

// By worker and class in the order of their numbers; the newest where there are too many.
std::vector<proto::Refusal> Shard::Refusals() const {
  std::vector<proto::Refusal> all;
  for (const auto& [worker, window] : windows_) {
    for (const RequestClass kind : {kAtOnce, kHeld}) {
      const Stream& stream = window.streams[kind];
      proto::Refusal refusal{
          .worker = worker.first, .incarnation = worker.second, .held = kind == kHeld};
      if (const std::uint64_t forgotten = stream.forgotten_failures(); forgotten > 0) {
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
    Stream& stream =
        WindowOf({refusal.worker, refusal.incarnation}).streams[refusal.held ? kHeld : kAtOnce];
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

Item Shard::FillBegin() const {
  Item begin;
  begin.header.kind = proto::ReplicaItem::kFillBegin;
  begin.header.index = index_;
  begin.header.clock = closed_;
  begin.header.workers = Windows(/*with_held=*/false);
  begin.header.pushed_until = pushed_until_;
  begin.header.refusals = Refusals();
  return begin;
}

std::vector<Item> Shard::Freeze() {
  std::vector<Item> pieces;
  for (auto& [id, store] : stores_) {
    const Table& table = *context_->tables.Find(id);
    for (const FrozenPiece& piece : store->Freeze().pieces) {
      pieces.push_back(PieceItem(table, piece));
      if (runtime::Planted<"state-lost-in-fill">()) LoseState(&pieces.back(), 0);
      if (runtime::Planted<"version-lost-in-fill">()) pieces.back().header.version = 0;
      if (runtime::Planted<"feedback-lost-in-fill">() && FeedbackSlots(table.spec()) > 0) {
        LoseState(&pieces.back(), piece.state_slots - 1);
      }
    }
  }
  return pieces;
}

void Shard::BeginFill(const Item& begin) {
  if (!runtime::Planted<"stores-kept-in-fill">()) stores_.clear();
  settings_.clear();
  if (!runtime::Planted<"saved-kept-in-fill">())
    saved_ = SavedGenerations();  // of the stores that were
  if (!runtime::Planted<"windows-kept-in-fill">()) windows_.clear();
  index_ = begin.header.index;
  if (!runtime::Planted<"closed-lost-in-fill">()) closed_ = begin.header.clock;
  if (!runtime::Planted<"pushed-until-lost-in-fill">()) pushed_until_ = begin.header.pushed_until;
  if (!runtime::Planted<"windows-lost-in-fill">()) TakeWindows(begin.header.workers);
  if (!runtime::Planted<"refusals-lost-in-fill">()) TakeRefusals(begin.header.refusals);
}

absl::Status Shard::LoadPiece(const Item& piece) {
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
