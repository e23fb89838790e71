#include "ps/engine.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
Engine::~Engine() { setup_.loop->Cancel(timer_); }

void Engine::SetLayout(std::uint32_t num_shards, std::uint64_t block_bytes) {
  num_shards_ = num_shards;
  block_bytes_ = block_bytes;
}

absl::Status Engine::Install(std::uint32_t id, const TableSpec& spec,
                             std::unique_ptr<Updater> updater) {
  if (auto it = tables_.find(id); it != tables_.end()) {
    const TableSpec& other = it->second->spec();
    if (other == spec) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("table ", id, " is installed as ",
                                                 other.ToString(), ", not as ", spec.ToString()));
  }
  tables_.emplace(id, std::make_unique<Table>(id, spec, std::move(updater)));
  return absl::OkStatus();
}

// Nobody is ever given the id of a table that was not created. If somebody has asked for it all the
// same, the table stays, since what waits here may speak of it.
void Engine::Forget(std::uint32_t id) {
  const auto it = tables_.find(id);
  if (it != tables_.end() && !it->second->asked_for()) tables_.erase(it);
}

// ---- requests ----

absl::Status Engine::Admit(Inbound inbound) {
  absl::StatusOr<Table*> table = TableFor(inbound.request);
  absl::Status status = table.status();
  if (status.ok() && HasPush(inbound.request.op)) status = TakePush(*table, inbound);
  if (!status.ok()) {
    Refuse(inbound, status);
  } else if (HasPull(inbound.request.op)) {
    ServeOrHold(*table, std::move(inbound));
  } else {
    Acknowledge(inbound);
  }
  return status;
}

void Engine::AnswerAgain(Inbound inbound) {
  if (!HasPull(inbound.request.op)) return Acknowledge(inbound);
  if (held_.Redirect(inbound.request.id, inbound.peer)) return;
  absl::StatusOr<Table*> table = TableFor(inbound.request);
  if (!table.ok()) return Refuse(inbound, table.status());
  ServeOrHold(*table, std::move(inbound));
}

void Engine::Refuse(const Inbound& inbound, const absl::Status& why) {
  proto::Reply reply = ReplyTo(inbound, inbound.request.clock);
  reply.result = why;
  setup_.replier->SendReply(inbound.peer, std::move(reply), {});
}

absl::StatusOr<Table*> Engine::TableFor(const proto::Request& request) const {
  auto it = tables_.find(request.table);
  if (it == tables_.end()) {
    return absl::NotFoundError(
        absl::StrCat("table ", request.table, " is not installed on this server"));
  }
  if (request.clock >= kClockMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("clock ", request.clock, " is beyond what a clock may be, ", kClockMax));
  }
  LEEWAY_RETURN_IF_ERROR(it->second->Fits(request, setup_.message_bytes_max));
  it->second->NoteAskedFor();
  return it->second.get();
}

ShardStore* Engine::StoreOf(Table* table, std::uint32_t shard) {
  return table->Shard({.shard = shard,
                       .num_shards = num_shards_,
                       .block_bytes = block_bytes_,
                       .pull_bytes_max = setup_.message_bytes_max});
}

absl::Status Engine::ChargeHeld(std::uint64_t bytes) const {
  const std::uint64_t held = held_bytes();
  if (held <= setup_.held_bytes_max && bytes <= setup_.held_bytes_max - held) {
    return absl::OkStatus();
  }
  const std::string slow = progress_.DescribeBehind(progress_.slowest() + 1);
  return absl::ResourceExhaustedError(absl::StrCat(
      "this server thread holds ", held, " bytes of requests that wait for slower workers (", slow,
      "), and ", bytes, " more would be over LEEWAY_HELD_BYTES_MAX (", setup_.held_bytes_max,
      "): raise it, or use more servers or LEEWAY_SERVER_THREADS"));
}

absl::Status Engine::TakePush(Table* table, const Inbound& inbound) {
  const proto::Request& request = inbound.request;
  PushView push = ToPush(inbound);
  if (HasNonFinite(request.dtype, push.values.bytes())) {
    ++setup_.counters->nonfinite_pushes;
    if (table->spec().nonfinite == NonFinite::kRefuse) {
      return absl::InvalidArgumentError(
          absl::StrCat("a push of worker ", request.id.worker, " to table ", table->spec().name,
                       " holds NaN or infinity, which the table refuses (TableSpec::nonfinite)"));
    }
  }
  ShardStore* store = StoreOf(table, request.id.shard);
  const PushDecision decision = table->policy().Push(request.clock, closed_);
  if (!decision.hold) {
    LEEWAY_RETURN_IF_ERROR(store->Apply(push));
    ++setup_.counters->pushes_applied;
    return absl::OkStatus();
  }
  LEEWAY_RETURN_IF_ERROR(store->Check(push));
  LEEWAY_RETURN_IF_ERROR(ChargeHeld(inbound.bytes()));
  if (decision.clock != request.clock) ++setup_.counters->late_pushes;
  const bool dense = request.kind == TableKind::kDense;
  contributions_.Add(
      decision.clock,
      {.table = table->id(), .shard = request.id.shard, .block = dense ? request.block : 0},
      {.rank = request.id.worker,
       .incarnation = request.id.incarnation,
       .sequence = request.id.sequence,
       .bytes = inbound.bytes(),
       .push = std::move(push)});
  return absl::OkStatus();
}

void Engine::Acknowledge(const Inbound& inbound) {
  setup_.replier->SendReply(inbound.peer, ReplyTo(inbound, inbound.request.clock), {});
}

void Engine::ServeOrHold(Table* table, Inbound inbound) {
  const proto::Request& request = inbound.request;
  const PullDecision decision =
      table->policy().Pull(request.op, request.clock, progress_.slowest());
  if (decision.hold && !setup_.test_only_never_hold) {
    Hold(*table, std::move(inbound), decision);
  } else {
    Serve(table, inbound, decision.effective);
  }
}

void Engine::Serve(Table* table, const Inbound& inbound, std::uint64_t effective) {
  absl::StatusOr<PullResult> pulled =
      StoreOf(table, inbound.request.id.shard)->Pull(ToPull(inbound));
  if (!pulled.ok()) {
    ++setup_.counters->refused;
    return Refuse(inbound, pulled.status());
  }
  proto::Reply reply = ReplyTo(inbound, effective);
  reply.keys = pulled->keys;
  reply.elements = pulled->elements;
  Payload payload;
  for (runtime::Buffer& frame : pulled->payload) payload.push_back(std::move(frame));
  ++setup_.counters->pulls_served;
  setup_.replier->SendReply(inbound.peer, std::move(reply), std::move(payload));
}

void Engine::Hold(const Table& table, Inbound inbound, const PullDecision& decision) {
  // Only the keys are needed from here on; what was pushed along has been taken.
  inbound.payload.resize(std::min<std::size_t>(inbound.payload.size(),
                                               table.spec().kind == TableKind::kDense ? 0 : 1));
  if (absl::Status room = ChargeHeld(inbound.bytes()); !room.ok()) {
    ++setup_.counters->refused;
    return Refuse(inbound, room);
  }
  HeldPull pull;
  pull.needed = decision.needed;
  pull.effective = decision.effective;
  pull.since = setup_.loop->Now();
  if (const std::uint64_t timeout = inbound.request.timeout_ms; timeout != 0) {
    pull.deadline = pull.since + absl::Milliseconds(timeout);
  }
  pull.inbound = std::move(inbound);
  held_.Add(std::move(pull));
  ArmTimer();
}

proto::Reply Engine::ReplyTo(const Inbound& inbound, std::uint64_t effective) const {
  const proto::Request& request = inbound.request;
  proto::Reply reply;
  reply.id = request.id;
  reply.op = request.op;
  reply.kind = request.kind;
  reply.dtype = request.dtype;
  reply.clock = request.clock;
  reply.slowest_clock = progress_.slowest();
  reply.staleness = Policy::Staleness(effective, reply.slowest_clock);
  return reply;
}

// ---- clocks ----

void Engine::SetWorker(std::uint32_t rank, std::uint64_t incarnation, proto::WorkerState state) {
  progress_.Set(rank, incarnation, state);
  if (state == proto::WorkerState::kAlive) return;
  held_.DropWorker(rank);
  if (state != proto::WorkerState::kDead) return;
  setup_.counters->pushes_discarded +=
      contributions_.Discard(rank, incarnation, progress_.ClockOf(rank));
}

bool Engine::Advance(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock) {
  return progress_.Advance(rank, incarnation, clock);
}

// In the order of clocks: a pull that asks for the view at clock c is answered after clock c − 1
// has closed and before clock c does, so that what it sees does not depend on how far the slowest
// worker has jumped meanwhile.
void Engine::Settle() {
  const std::uint64_t slowest = progress_.slowest();
  const bool nobody_left = progress_.living() == 0;
  for (;;) {
    const std::optional<std::uint64_t> closing = contributions_.FirstClock();
    const std::optional<std::uint64_t> needed = held_.FirstNeeded();
    const bool may_close = closing.has_value() && (nobody_left || *closing < slowest);
    const bool may_serve = needed.has_value() && *needed <= slowest;
    if (may_close && (!may_serve || *closing < *needed)) {
      Close(*closing);
    } else if (may_serve) {
      ServeNeeding(*needed);
    } else {
      break;
    }
  }
  closed_ = std::max(closed_, slowest);
  ArmTimer();
}

void Engine::Close(std::uint64_t clock) {
  ClosedClock closed = contributions_.Take(clock);
  closed_ = std::max(closed_, clock + 1);
  ++setup_.counters->clocks_closed;
  const std::uint32_t ended = progress_.CountEnded(clock);
  for (auto& [target, list] : closed) {
    // Those who ended the clock, and those who gave something to it and then left.
    std::set<std::uint32_t> left_within;
    std::vector<PushView> pushes;
    pushes.reserve(list.size());
    for (Contribution& contribution : list) {
      if (progress_.ClockOf(contribution.rank) <= clock) left_within.insert(contribution.rank);
      pushes.push_back(std::move(contribution.push));
    }
    Table* table = tables_.at(target.table).get();
    const absl::Status applied =
        StoreOf(table, target.shard)
            ->ApplyCombined(pushes, ended + static_cast<std::uint32_t>(left_within.size()));
    if (applied.ok()) {
      setup_.counters->pushes_applied += pushes.size();
    } else {
      setup_.counters->apply_failures += pushes.size();
      runtime::LogWarning("clock ", clock, " of table ", table->spec().name, ", shard ",
                          target.shard,
                          ": accepted pushes could not be applied: ", applied.message());
    }
  }
}

void Engine::ServeNeeding(std::uint64_t needed) {
  for (HeldPull& pull : held_.TakeNeeding(needed)) {
    Table* table = tables_.at(pull.inbound.request.table).get();
    Serve(table, pull.inbound, pull.effective);
  }
}

// ---- deadlines ----

void Engine::ArmTimer() {
  const absl::Time first = held_.FirstDeadline().value_or(absl::InfiniteFuture());
  if (first >= timer_at_) return;  // it fires early at worst, and arms itself again
  setup_.loop->Cancel(timer_);
  timer_at_ = first;
  timer_ = setup_.loop->After(first - setup_.loop->Now(), [this] { OnTimer(); });
}

void Engine::OnTimer() {
  timer_ = runtime::TimerId::kNone;
  timer_at_ = absl::InfiniteFuture();
  for (const HeldPull& pull : held_.TakeExpired(setup_.loop->Now())) {
    ++setup_.counters->deadlines;
    Refuse(pull.inbound, DeadlineExceeded(pull));
  }
  ArmTimer();
}

absl::Status Engine::DeadlineExceeded(const HeldPull& pull) const {
  const proto::Request& request = pull.inbound.request;
  const TableSpec& spec = tables_.at(request.table)->spec();
  return absl::DeadlineExceededError(absl::StrCat(
      progress_.DescribeBehind(pull.needed), "; waiting for clock ", pull.needed, " of table ",
      spec.name, " (", spec.consistency.ToString(), "; worker ", request.id.worker, " is in clock ",
      request.clock, "; waited ", absl::FormatDuration(setup_.loop->Now() - pull.since),
      HasPush(request.op) ? "; what it pushed along was accepted" : "",
      "; LEEWAY_REQUEST_TIMEOUT_MS says how long)"));
}

}  // namespace leeway::ps
