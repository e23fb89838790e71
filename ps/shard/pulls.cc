#include "ps/shard/pulls.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/shard/state/answers.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// The frames that are kept of a pull that waits: its keys. A push that came along has been taken.
std::size_t FramesOfPending(const Table& table, const Inbound& inbound) {
  return std::min<std::size_t>(inbound.payload.size(),
                               table.spec().kind == TableKind::kDense ? 0 : 1);
}

std::uint64_t BytesOfPending(const Table& table, const Inbound& inbound) {
  std::uint64_t bytes = kRequestOverheadBytes;
  for (std::size_t i = 0; i < FramesOfPending(table, inbound); ++i)
    bytes += inbound.payload[i].size();
  return bytes;
}

// The sizes of what a pull has found go into the reply, its values into the reply's payload.
Payload TakeValues(PullResult& pulled, proto::Reply* reply) {
  reply->keys = pulled.keys;
  reply->elements = pulled.elements;
  Payload payload;
  for (runtime::Buffer& frame : pulled.payload) payload.push_back(std::move(frame));
  return payload;
}

absl::StatusOr<PullResult> PullFrom(ShardStore* store, const PullView& view) {
  try {
    return store->Pull(view);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "there is no memory left on this server for the answer: pull less at a time, give it more, "
        "or lower LEEWAY_TABLE_BYTES_MAX");
  }
}

}  // namespace

absl::Status Pulls::CheckRoom(const Table& table, const Inbound& inbound) {
  if (!Decide(table, inbound.request).hold) return absl::OkStatus();
  return state_->CheckRoomToHold((table.is_bsp() ? inbound.bytes() : 0) +
                                 BytesOfPending(table, inbound));
}

PullDecision Pulls::Decide(const Table& table, const proto::Request& request) {
  const Policy& policy = table.SettingsFor(request.clock).policy;
  PullFacts facts{.op = request.op,
                  .rank = request.id.worker,
                  .clock = request.clock,
                  .closed = state_->ClosedFor(table),
                  .clocks = &state_->clocks};
  if (policy.consistency().rule == Consistency::Rule::kDynamic) {
    facts.dynamic = &dynamic_[table.id()];
    facts.now = state_->context->loop->Now();
  }
  return policy.Pull(facts);
}

void Pulls::NoteTick(std::uint32_t rank, std::uint64_t clock) {
  for (auto& [table, bound] : dynamic_) bound.Ticked(rank, clock, state_->context->loop->Now());
}

void Pulls::ServeOrHold(const Table& table, Inbound inbound) {
  if (inbound.request.publication != 0) return ServePublished(table, inbound, /*reader=*/false);
  const PullDecision decision = Decide(table, inbound.request);
  if (decision.hold && !state_->context->test_only_never_hold) {
    Hold(table, std::move(inbound), decision);
  } else {
    Serve(table, inbound, decision);
  }
}

void Pulls::Serve(const Table& table, const Inbound& inbound, const PullDecision& decision) {
  ShardStore* const store = state_->stores.Of(table);
  PullView view = ToPull(inbound);
  // Clocks are closed one by one, and pending pulls answered in between: what is pulled is of the
  // clock that was closed last, however far all workers have gone on.
  const bool closed_ones = table.is_bsp();
  const std::uint64_t slowest =
      closed_ones ? std::max(state_->closed, decision.needed) : state_->clocks.slowest();
  view.codec = table.codec_schedule().KnownAt(slowest);
  // A version that is made here is logged first, and the answer waits for the log: all replicas
  // have the version before a worker hears of it.
  const ReaderTerms terms{
      .needed = decision.needed, .slowest = slowest, .workers = state_->clocks.living()};
  if (store->WantsVersion(view, terms)) {
    const VersionBy by = store->NextVersion(view.block, table.codec_schedule(), slowest);
    const absl::Status made =
        store->MakeVersion(view.block, slowest, std::numeric_limits<double>::quiet_NaN(), by);
    if (!made.ok()) return RefusePull(*state_, inbound, made);
    state_->AppendToLog(VersionEntry(table, view.block, by));
  }
  absl::StatusOr<PullResult> pulled = PullFrom(store, view);
  if (!pulled.ok()) return RefusePull(*state_, inbound, pulled.status());
  proto::Reply reply = ReplyTo(inbound.request);
  reply.slowest_clock = pulled->slowest.value_or(decision.reached);
  reply.coded = pulled->coded;
  reply.parts = std::move(pulled->parts);
  reply.staleness = Policy::Staleness(decision.effective, reply.slowest_clock);
  reply.version = state_->index;
  if (table.is_weighted()) {
    const proto::RequestId& id = inbound.request.id;
    reply.updates = state_->stores.UpdatesOf(table, view.block);
    state_->sessions.Of({id.worker, id.incarnation})
        .updates_sent.Note(table.id(), view.block, reply.updates);
  }
  if (table.is_compensated()) NotePulled(table, inbound.request.id.worker, view, *pulled);
  Payload payload = TakeValues(*pulled, &reply);
  ++state_->context->counters->pulls_served;
  table.CountStaleness(reply.staleness);
  state_->answers->Answer(inbound.peer, std::move(reply), std::move(payload),
                          DeadlineOf(*state_, inbound));
}

// The values that the worker has when it has decoded the reply. Encoded replies of tables that are
// compensated have the block as it is (CheckConsistency refuses those that are differences).
void Pulls::NotePulled(const Table& table, std::uint32_t worker, PullView view,
                       const PullResult& reply) {
  if (!reply.coded) {
    return compensation_->NotePulled(worker, table.id(), view.block, reply.payload[0]);
  }
  view.plain = true;
  const absl::StatusOr<PullResult> plain = PullFrom(state_->stores.Of(table), view);
  if (!plain.ok()) return;
  compensation_->NotePulled(worker, table.id(), view.block, plain->payload[0]);
}

// What a publication has never changes, so that the answer says nothing that a failure could undo
// but the publication's existence, which its reader has heard of from the scheduler.
void Pulls::ServePublished(const Table& table, const Inbound& inbound, bool reader) {
  PullView view = ToPull(inbound);
  view.plain = true;
  absl::StatusOr<PullResult> pulled =
      state_->published.Pull(table, &state_->stores, view, inbound.request.publication);
  if (!pulled.ok()) return Refuse(*state_, inbound, pulled.status());
  proto::Reply reply = ReplyTo(inbound.request);
  reply.version = inbound.request.publication;
  reply.digest = pulled->digest;
  reply.coded = pulled->coded;
  reply.parts = std::move(pulled->parts);
  Payload payload = TakeValues(*pulled, &reply);
  if (!reader) {
    state_->answers->Answer(inbound.peer, std::move(reply), std::move(payload),
                            DeadlineOf(*state_, inbound));
  } else if (const absl::Status answered = state_->answers->AnswerReader(
                 inbound.peer, std::move(reply), std::move(payload), DeadlineOf(*state_, inbound));
             !answered.ok()) {
    return Refuse(*state_, inbound, answered);
  }
  ++state_->context->counters->publications_served;
}

void Pulls::Read(const Table& table, const Inbound& inbound) {
  if (inbound.request.publication != 0) return ServePublished(table, inbound, /*reader=*/true);
  PullView view = ToPull(inbound);
  view.plain = true;
  absl::StatusOr<PullResult> pulled = PullFrom(state_->stores.Of(table), view);
  if (!pulled.ok()) return Refuse(*state_, inbound, pulled.status());
  proto::Reply reply = ReplyTo(inbound.request);
  reply.slowest_clock = ClockOfContent(table);
  reply.staleness = Policy::Staleness(reply.clock, reply.slowest_clock);
  reply.version = state_->index;
  Payload payload = TakeValues(*pulled, &reply);
  const absl::Status answered = state_->answers->AnswerReader(
      inbound.peer, std::move(reply), std::move(payload), DeadlineOf(*state_, inbound));
  if (!answered.ok()) return Refuse(*state_, inbound, answered);
  ++state_->context->counters->reads_served;
  ++state_->context->counters->pulls_served;
}

// The table has all that living workers have pushed in clocks below this one; where a count of
// workers closes clocks, all that those workers have.
std::uint64_t Pulls::ClockOfContent(const Table& table) const {
  if (table.closes_by_count()) return state_->ClosedOf(table);
  return table.is_bsp() ? state_->closed : state_->clocks.slowest();
}

// ---- pulls that wait ----

void Pulls::Hold(const Table& table, Inbound inbound, const PullDecision& decision) {
  inbound.payload.resize(FramesOfPending(table, inbound));
  if (absl::Status room = state_->CheckRoomToHold(inbound.bytes()); !room.ok()) {
    return RefusePull(*state_, inbound, room);
  }
  EnsureOwned(&inbound.payload);
  PendingPull pull;
  pull.decision = decision;
  pull.since = state_->context->loop->Now();
  pull.deadline = DeadlineOf(*state_, inbound);
  pull.inbound = std::move(inbound);
  (table.goes_by_slowest() ? pending_ : asking_).Add(std::move(pull));
  ArmTimer();
}

void Pulls::ServeNeeding(std::uint64_t needed) {
  for (PendingPull& pull : pending_.TakeNeeding(needed)) {
    pull.decision.reached = state_->clocks.slowest();
    Serve(*state_->context->tables.Find(pull.inbound.request.table), pull.inbound, pull.decision);
  }
}

void Pulls::ServeAsking() {
  const auto may_go = [this](PendingPull& pull) {
    const proto::Request& request = pull.inbound.request;
    pull.decision = Decide(*state_->context->tables.Find(request.table), request);
    return !pull.decision.hold;
  };
  for (const PendingPull& pull : asking_.TakeIf(may_go)) {
    Serve(*state_->context->tables.Find(pull.inbound.request.table), pull.inbound, pull.decision);
  }
}

void Pulls::ArmTimer() {
  timer_.SetBy(std::min(pending_.FirstDeadline().value_or(absl::InfiniteFuture()),
                        asking_.FirstDeadline().value_or(absl::InfiniteFuture())));
}

void Pulls::RefuseAll(const absl::Status& why) {
  for (PendingPulls* const pulls : {&pending_, &asking_}) {
    for (const PendingPull& pull : pulls->TakeAll()) Refuse(*state_, pull.inbound, why);
  }
}

void Pulls::DropPeer(van::PeerId peer) {
  pending_.DropPeer(peer);
  asking_.DropPeer(peer);
}

void Pulls::DropWorker(std::uint32_t rank) {
  pending_.DropWorker(rank);
  asking_.DropWorker(rank);
}

void Pulls::OnTimer() {
  for (PendingPulls* const pulls : {&pending_, &asking_}) {
    for (const PendingPull& pull : pulls->TakeExpired(state_->context->loop->Now())) {
      Refuse(*state_, pull.inbound, DeadlineExceeded(pull));
    }
  }
  ArmTimer();
}

absl::Status Pulls::DeadlineExceeded(const PendingPull& pull) const {
  const proto::Request& request = pull.inbound.request;
  const TableSpec& spec =
      state_->context->tables.Find(request.table)->SettingsAt(request.clock).spec;
  const absl::Duration waited = state_->context->loop->Now() - pull.since;
  std::string why = Policy(spec.consistency).WhyOpen(state_->clocks);
  if (why.empty()) why = state_->clocks.DescribeBehind(pull.decision.needed);
  return absl::DeadlineExceededError(
      absl::StrCat(why, "; waiting for clock ", pull.decision.needed, " of table ", spec.name, " (",
                   spec.consistency.ToString(), "; worker ", request.id.worker, " is in clock ",
                   request.clock, "; waited ", runtime::FormatDuration(waited),
                   HasPush(request.op) ? "; what it pushed along was accepted" : "",
                   "; LEEWAY_REQUEST_TIMEOUT_MS says how long)"));
}

}  // namespace leeway::ps
