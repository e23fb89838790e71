#include "ps/shard/shard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/messages/limits.h"
#include "runtime/log/log.h"

namespace leeway::ps {

Shard::Shard(std::uint32_t id, ShardContext* context, ShardEffects* effects, AnswerSink* answers)
    : state_(id, context, effects, answers),
      open_clocks_(&state_),
      cuts_(&state_),
      publications_(&state_),
      compensation_(&context->pulled),
      pushes_(&state_, &open_clocks_, &cuts_, &compensation_),
      pulls_(&state_, &compensation_),
      admission_(&state_, &pushes_, &pulls_) {}

// ---- workers ----

void Shard::SetWorker(const proto::WorkerEntry& entry) {
  WorkerClocks& clocks = state_.clocks;
  const WorkerKey worker{entry.rank, entry.incarnation};
  const std::optional<std::uint64_t> before = clocks.IncarnationOf(entry.rank);
  if (before.has_value() && *before != entry.incarnation) {
    state_.sessions.Replace({entry.rank, *before});
    compensation_.DropWorker(entry.rank);
  }
  state_.sessions.DropRestored(worker);
  const std::uint64_t slowest_before = clocks.slowest();
  clocks.Set(entry.rank, entry.incarnation, entry.state, entry.late);
  const std::uint64_t start_clock = state_.context->start_clock;
  if (!entry.late && start_clock != 0) state_.sessions.Enter(worker, start_clock, start_clock);
  ClientSession& session = state_.sessions.Of(worker);
  // The log may have spoken of it before the map did.
  if (session.since != WorkerClocks::kNotEntered) {
    clocks.Enter(entry.rank, entry.incarnation, session.clock, session.since);
  }
  if (clocks.slowest() < slowest_before) state_.stores.ForgetSlowest();
  session.tick_clock = 0;
  // The admitted requests of a dead worker stay known: it may come back and send them again.
  for (RequestOrder& order : session.orders) order.TakeAll();
  if (entry.state == proto::WorkerState::kAlive) return;
  pulls_.DropWorker(entry.rank);
  compensation_.DropWorker(entry.rank);
  if (entry.state == proto::WorkerState::kLeft) {
    state_.sessions.Drop(worker);
  } else {
    state_.context->counters->pushes_discarded +=
        open_clocks_.Discard(worker, clocks.ClockOf(entry.rank));
  }
}

std::uint64_t Shard::Enter(std::uint32_t rank, std::uint64_t incarnation) {
  const WorkerClocks& clocks = state_.clocks;
  if (clocks.SinceOf(rank) == WorkerClocks::kNotEntered) {
    // A head that has just taken over knows of workers' clocks what the log says: that they have
    // pushed in clocks, where nothing is held.
    const bool anyone = clocks.living() != 0;
    const std::uint64_t clock =
        !anyone ? state_.closed
                : std::max({state_.closed, clocks.fastest() + 1, state_.pushed_until});
    state_.sessions.Enter({rank, incarnation}, clock, clock);
    LogEntry entry;
    entry.header.kind = proto::LogEntryKind::kEnter;
    entry.header.workers = {
        {.rank = rank, .incarnation = incarnation, .clock = clock, .since = clock}};
    state_.AppendToLog(std::move(entry));
    CloseClocks();  // a table whose clocks wait for so many workers may have them now
  }
  return clocks.ClockOf(rank);
}

// ---- requests ----

bool Shard::TakeRequest(Inbound inbound) {
  ++requests_;
  const WorkerKey worker{inbound.request.id.worker, inbound.request.id.incarnation};
  ClientSession* const session = admission_.Take(std::move(inbound));
  if (admission_.TakeRanAhead()) CloseClocks();
  return session != nullptr && CountTickIfDue(worker, session);
}

void Shard::Read(Inbound inbound) {
  ++requests_;
  const absl::StatusOr<const Table*> table = admission_.TableFor(inbound.request);
  if (!table.ok()) return Refuse(state_, inbound, table.status());
  pulls_.Read(**table, inbound);
}

void Shard::RefuseEarly(const absl::Status& why) {
  state_.sessions.ForgetEarly([&](const Inbound& inbound) { Refuse(state_, inbound, why); });
}

void Shard::DropPeer(van::PeerId peer) {
  pulls_.DropPeer(peer);
  state_.sessions.DropPeer(peer);
}

// ---- clocks ----

void Shard::TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                     std::uint64_t since, const Watermarks& watermarks) {
  const WorkerKey worker{rank, incarnation};
  BeginsAt(worker, since);
  if (clock <= state_.clocks.ClockOf(rank)) return;
  ClientSession& session = state_.sessions.Of(worker);
  if (clock < session.tick_clock) return;
  session.tick_clock = clock;
  session.tick_watermarks = watermarks;
  CountTickIfDue(worker, &session);
}

// A worker that joined late begins at the largest clock that a shard has answered: it may be larger
// than the one that this shard has.
void Shard::BeginsAt(const WorkerKey& worker, std::uint64_t since) {
  const std::uint64_t let_in = state_.clocks.SinceOf(worker.first);
  if (state_.clocks.IncarnationOf(worker.first) != worker.second) return;
  if (let_in == WorkerClocks::kNotEntered || since <= let_in) return;
  state_.sessions.Enter(worker, since, since);
  CloseClocks();
}

bool Shard::AdvanceIfDue(const WorkerKey& worker, ClientSession* session) {
  if (session->tick_clock == 0) return false;
  if (!session->Reached(session->tick_watermarks)) return AdvanceToWaiting(worker, *session);
  const std::uint64_t clock = std::exchange(session->tick_clock, 0);
  if (state_.clocks.Advance(worker.first, worker.second, clock)) {
    pulls_.NoteTick(worker.first, clock);
  }
  return true;
}

// A request that waits for its clock to open keeps back the tick that follows it. Ticks are
// cumulative, so that the ticks before may be lost: the iterations before the request's own have
// ended as soon as the pushes of the held class are here.
bool Shard::AdvanceToWaiting(const WorkerKey& worker, const ClientSession& session) {
  if (!session.Reached(session.tick_watermarks, kHeld)) return false;
  const std::uint64_t clock = state_.clocks.WaitingAt(worker.first, worker.second);
  if (!state_.clocks.Advance(worker.first, worker.second, clock)) return false;
  pulls_.NoteTick(worker.first, clock);
  return true;
}

bool Shard::CountTickIfDue(const WorkerKey& worker, ClientSession* session) {
  if (!AdvanceIfDue(worker, session)) return false;
  CloseClocks();
  return true;
}

void Shard::CloseClocks() {
  do {
    CloseInOrder();
  } while (CloseByCount() && AdmitWaiting());
  state_.clocks.ForgetEndedBelow(state_.closed);
  cuts_.FinishIfDue();
  publications_.MakeIfDue();
  pulls_.ServeAsking();
  pulls_.ArmTimer();
}

// In the order of clocks: a pull that asks for the view at clock c is answered after clock c − 1
// has closed and before clock c does, so that what it sees does not depend on how far the slowest
// worker has jumped meanwhile.
void Shard::CloseInOrder() {
  const std::uint64_t slowest = state_.clocks.slowest();
  const bool nobody_left = state_.clocks.living() == 0;
  for (;;) {
    const std::optional<std::uint64_t> closing = open_clocks_.First();
    const std::optional<std::uint64_t> needed = pulls_.FirstNeeded();
    const bool may_close = closing.has_value() && (nobody_left || *closing < slowest);
    const bool may_serve = needed.has_value() && *needed <= slowest;
    if (may_close && (!may_serve || *closing < *needed)) {
      cuts_.BeforeClosing(*closing);
      publications_.BeforeClosing(*closing);
      open_clocks_.Close(*closing);
    } else if (may_serve) {
      pulls_.ServeNeeding(*needed);
    } else {
      break;
    }
  }
  state_.closed = std::max(state_.closed, slowest);
}

// Closes the clocks of tables that a count of workers closes, each table by itself. Without workers
// all that is collected is applied. True if a clock has closed.
bool Shard::CloseByCount() {
  bool any = false;
  for (auto& [id, closed] : state_.closed_of) {
    const Table* const table = state_.context->tables.Find(id);
    // It was not created after all, or has another consistency than in its checkpoint.
    if (table == nullptr || !table->closes_by_count()) continue;
    const std::uint64_t reached = table->newest_settings().policy.Closed(state_.clocks);
    if (reached <= closed) continue;
    NoteShort(*table);
    pushes_.CloseByCount(*table, closed, reached);
    closed = reached;
    any = true;
  }
  ApplyEnough();
  return any;
}

// Clocks of a table close by fewer workers than it counts. Said when that begins, and counted.
void Shard::NoteShort(const Table& table) {
  const Policy& policy = table.newest_settings().policy;
  if (!policy.IsShort(state_.clocks)) {
    short_.erase(table.id());
    return;
  }
  ++state_.context->counters->clocks_closed_short;
  if (!short_.insert(table.id()).second) return;
  runtime::LogWarning("table ", table.spec().name, " (", policy.consistency().ToString(),
                      "), shard ", state_.id, ": clocks close with ", state_.clocks.living(),
                      " workers, since no more are living");
}

// What is collected may be enough without another push: fewer workers are left, none is, the head
// before had not told that it has applied it, or a table of a checkpoint has another consistency
// now, perhaps one that collects nothing.
void Shard::ApplyEnough() {
  const std::uint32_t living = state_.clocks.living();
  const std::pair seen(living, state_.context->tables.settings_changes());
  if (std::exchange(enough_for_, seen) == seen) return;
  // That of the newest push, as where a push is enough: of other clocks a new head knows less.
  const std::uint64_t clock =
      std::max(state_.closed, std::max<std::uint64_t>(1, state_.pushed_until) - 1);
  for (const auto& [id, collected] : state_.stores.collected()) {
    const Table& table = *state_.context->tables.Find(id);
    const Policy& policy = table.newest_settings().policy;
    const std::uint32_t enough = policy.Enough(living);
    if (living == 0 || !policy.consistency().collects()) {
      pushes_.ApplyCollected(table, clock);
    } else if (enough != 0) {
      pushes_.ApplyCollected(table, clock, enough);
    }
  }
}

// Requests that waited for a clock to open, and the ticks that waited for them. True if a worker
// has gone on.
bool Shard::AdmitWaiting() {
  bool any = false;
  admission_.AdmitWaiting([&](const WorkerKey& worker, ClientSession* session) {
    any = AdvanceIfDue(worker, session) || any;
  });
  return admission_.TakeRanAhead() || any;
}

void Shard::LogConfirm() {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kConfirm;
  state_.AppendToLog(std::move(entry));
}

// ---- changes of the head ----

void Shard::BecomeHead(bool inherited) {
  if (inherited) {
    state_.grace_until = state_.context->loop->Now() + state_.context->held_grace;
  }
  // The head before may have known of later clocks, and so have answered with the block itself, by
  // a codec that the table had from one of them on: no reader may now get an older version.
  if (inherited) state_.stores.ForgetSlowest();
  state_.sessions.RestartAsHead(inherited);
  enough_for_.reset();
  pushes_.FinishClosing();
  CloseClocks();
}

std::vector<LogEntry> Shard::StepDown(const absl::Status& why) {
  cuts_.Abandon(why);
  publications_.Abandon(why);
  std::vector<LogEntry> rest = open_clocks_.HandOver();
  LogEntry end;
  end.header.kind = proto::LogEntryKind::kHandoverEnd;
  end.header.clock = state_.closed;
  end.header.workers = state_.sessions.Export(state_.closed, /*with_held=*/true);
  end.header.map_version = state_.sessions.told();
  rest.push_back(std::move(end));

  pulls_.RefuseAll(why);
  compensation_.Clear();
  RefuseEarly(why);
  // From here on it knows what the log says, like the others: if it leads again, it must not
  // believe that workers have ended clocks whose contributions it has given away.
  state_.clocks.ForgetFrom(state_.closed);
  state_.sessions.RestartAsFollower(state_.closed);
  return rest;
}

void Shard::TakeOver(const std::vector<LogEntry>& entries) {
  for (const LogEntry& entry : entries) {
    if (entry.header.kind == proto::LogEntryKind::kHeld) {
      open_clocks_.TakeHeld(entry);
      continue;
    }
    state_.closed = std::max(state_.closed, entry.header.clock);
    state_.sessions.TakeHandover(entry.header.workers, entry.header.map_version);
    DiscardOfTheDead(entry.header.workers);
  }
  CloseClocks();
}

// The old head may have stepped down before it heard of a death that this one has heard of, while
// nothing was held here yet. Of workers that have left nothing is handed over: with replicas
// Leave() waits until its clocks have closed, and without them the transfer to another head does.
void Shard::DiscardOfTheDead(const std::vector<proto::ClientSession>& handed_over) {
  for (const proto::ClientSession& worker : handed_over) {
    if (!state_.clocks.IsDead(worker.rank, worker.incarnation)) continue;
    state_.context->counters->pushes_discarded +=
        open_clocks_.Discard({worker.rank, worker.incarnation}, worker.clock);
  }
}

// ---- state transfer and checkpoints ----

void Shard::ImportBegin(const LogEntry& begin) {
  cuts_.ForgetSaved();
  ps::ImportBegin(begin, &state_);
}

std::uint64_t Shard::newest_clock() const {
  return std::max(state_.pushed_until == 0 ? 0 : state_.pushed_until - 1, state_.clocks.fastest());
}

}  // namespace leeway::ps
