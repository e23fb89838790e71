// What a shard does with requests: their order, pushes, pulls, and the pulls that have to wait.
#include <algorithm>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "ps/shard/log_entries.h"
#include "ps/shard/shard.h"
#include "ps/store/decode_pushes.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// The bug of that name.
void LoseFirstMessage(PullResult* pulled) {
  if (pulled->parts.size() < 2) return;
  const std::uint64_t first_bytes = pulled->parts.front().bytes;
  pulled->parts.erase(pulled->parts.begin());
  const runtime::Buffer& all = pulled->payload[0];
  pulled->payload[0] = all.Part(first_bytes, all.size() - first_bytes);
}

// What is kept of a pull that waits: its keys. What was pushed along has been taken.
std::size_t FramesHeld(const Table& table, const Inbound& inbound) {
  return std::min<std::size_t>(inbound.payload.size(),
                               table.spec().kind == TableKind::kDense ? 0 : 1);
}

std::uint64_t BytesHeldFor(const Table& table, const Inbound& inbound) {
  std::uint64_t bytes = kRequestOverheadBytes;
  for (std::size_t i = 0; i < FramesHeld(table, inbound); ++i) bytes += inbound.payload[i].size();
  return bytes;
}

// What a pull has found goes into the message that answers it, and into what travels with that.
Payload TakeValues(PullResult& pulled, proto::Reply* reply) {
  reply->keys = pulled.keys;
  reply->elements = pulled.elements;
  Payload payload;
  for (runtime::Buffer& frame : pulled.payload) payload.push_back(std::move(frame));
  return payload;
}

}  // namespace

proto::Reply ReplyTo(const proto::Request& request) {
  proto::Reply reply;
  reply.id = request.id;
  reply.op = request.op;
  reply.kind = request.kind;
  reply.dtype = request.dtype;
  reply.clock = request.clock;
  reply.priority = request.priority;
  return reply;
}

// ---- order ----

RequestClass Shard::ClassOf(const proto::Request& request) const {
  const Table* table = context_->tables.Find(request.table);
  return table != nullptr && table->is_bsp() ? kHeld : kAtOnce;
}

bool Shard::TakeRequest(Inbound inbound) {
  ++requests_;
  const proto::RequestId id = inbound.request.id;
  const WorkerKey worker{id.worker, id.incarnation};
  const RequestClass kind = ClassOf(inbound.request);
  ClientSession& session = SessionOf(worker);
  Stream& stream = session.streams[kind];
  switch (stream.Judge(id.sequence, inbound.request.after)) {
    case Stream::Order::kSeen: {
      ++context_->counters->duplicates;
      if (runtime::Planted<"dedupe-off">()) {
        Admit(std::move(inbound)).IgnoreError();
        return false;
      }
      const absl::Status outcome = stream.OutcomeOf(id.sequence);
      outcome.ok() ? AnswerAgain(session, kind, std::move(inbound)) : Refuse(inbound, outcome);
      return false;
    }
    case Stream::Order::kEarly:
      if (stream.Keep(std::move(inbound))) {
        ++context_->counters->early;
        early_from_.insert(worker);
      } else {
        ++context_->counters->early_dropped;
      }
      return false;
    case Stream::Order::kNext:
      AdmitNext(&session, kind, std::move(inbound));
      while (std::optional<Inbound> next = stream.TakeNext()) {
        AdmitNext(&session, kind, *std::move(next));
      }
  }
  return CountTickIfDue(worker, &session);
}

void Shard::AdmitNext(ClientSession* session, RequestClass kind, Inbound inbound) {
  const proto::RequestId id = inbound.request.id;
  const bool pushes = HasPush(inbound.request.op);
  session->streams[kind].Admit(id.sequence);
  absl::Status outcome = Admit(std::move(inbound));
  if (outcome.ok()) return;
  // Not so where the worker asks again in any case.
  if (pushes && !absl::IsUnavailable(outcome) && effects_->has_follower() &&
      !runtime::Planted<"refusal-not-logged">()) {
    AppendToLog(RefusalEntry({.worker = id.worker,
                              .incarnation = id.incarnation,
                              .sequence = id.sequence,
                              .held = kind == kHeld,
                              .status = outcome}));
  }
  if (runtime::Planted<"failure-not-remembered">()) return;
  session->streams[kind].RememberFailure(id.sequence, std::move(outcome));
}

void Shard::RefuseEarly(const absl::Status& why) {
  for (auto& [worker, session] : sessions_) {
    if (runtime::Planted<"early-kept-over-epoch">()) continue;
    session.tick_clock = 0;
    for (Stream& stream : session.streams) {
      for (const Inbound& inbound : stream.TakeAll()) Refuse(inbound, why);
    }
  }
}

void Shard::DropPeer(van::PeerId peer) {
  if (!runtime::Planted<"lost-connection-keeps-held">()) held_.DropPeer(peer);
  std::erase_if(early_from_, [&](const WorkerKey& worker) {
    const auto found = sessions_.find(worker);
    if (found == sessions_.end()) return true;
    bool none_left = true;
    for (Stream& stream : found->second.streams) {
      stream.DropPeer(peer);
      none_left = none_left && stream.keeps_nothing();
    }
    return none_left;
  });
}

// ---- a request whose turn it is ----

// Takes its effect and answers it, now or later. The status is what the same request is to be told
// should it be sent again.
absl::Status Shard::Admit(Inbound inbound) {
  absl::StatusOr<const Table*> table = TableFor(inbound.request);
  absl::Status status = table.status();
  bool held = false;
  if (status.ok() && HasPush(inbound.request.op)) {
    if (HasPull(inbound.request.op)) status = ChargePushPull(**table, inbound);
    if (status.ok()) status = TakePush(**table, &inbound, &held);
  }
  if (!status.ok()) {
    Refuse(inbound, status);
  } else if (HasPull(inbound.request.op)) {
    ServeOrHold(**table, std::move(inbound));
  } else {
    Acknowledge(inbound, held);
  }
  return status;
}

// One that was admitted before, without failing, here or at an earlier head of the chain.
void Shard::AnswerAgain(const ClientSession& session, RequestClass kind, Inbound inbound) {
  if (held_.Redirect(inbound.request.id, inbound.peer) &&
      !runtime::Planted<"held-pull-answered-twice">())
    return;
  absl::StatusOr<const Table*> table = TableFor(inbound.request);
  if (!table.ok()) return Refuse(inbound, table.status());
  // What an earlier head refused is not known here, but why it did can be seen again.
  if (HasPush(inbound.request.op) && inbound.request.id.sequence <= session.inherited[kind]) {
    const PushView push = ToPush(inbound);
    absl::Status fits = CheckFinite(**table, inbound.request, push);
    if (fits.ok()) fits = StoreOf(**table)->Check(push);
    if (!fits.ok() && !runtime::Planted<"inherited-refusal-unseen">()) return Refuse(inbound, fits);
  }
  if (HasPull(inbound.request.op)) {
    ServeOrHold(**table, std::move(inbound));
  } else {
    Acknowledge(inbound, kind == kHeld && inbound.request.id.sequence > session.in_state &&
                             !runtime::Planted<"held-again-called-applied">());
  }
}

void Shard::Refuse(const Inbound& inbound, const absl::Status& why) {
  CountRefusal(why, context_->counters);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  effects_->AnswerNow(inbound.peer, std::move(reply));
  if (IsMalformedEncoding(why)) effects_->Offended(inbound.peer, why);
}

// The pull failed. If a push came with it, that has been taken, and the answer says so.
void Shard::RefusePull(const Inbound& inbound, const absl::Status& why) {
  if (!HasPush(inbound.request.op)) return Refuse(inbound, why);
  Refuse(inbound,
         absl::UnknownError(absl::StrCat(why.message(), " (", absl::StatusCodeToString(why.code()),
                                         "); what it pushed along was accepted")));
}

// One that is held is not in the state yet, so there is nothing to be replicated either.
void Shard::Acknowledge(const Inbound& inbound, bool held) {
  proto::Reply reply = ReplyTo(inbound.request);
  reply.slowest_clock = clocks_.slowest();
  reply.staleness = Policy::Staleness(reply.clock, reply.slowest_clock);
  reply.provisional = held && effects_->provisional() && !runtime::Planted<"provisional-unsaid">();
  held ? effects_->AnswerNow(inbound.peer, std::move(reply))
       : effects_->Answer(inbound.peer, std::move(reply), {}, DeadlineOf(inbound));
}

absl::StatusOr<const Table*> Shard::TableFor(const proto::Request& request) const {
  Table* table = context_->tables.Find(request.table);
  if (table == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("table ", request.table, " is not installed on this server"));
  }
  if (request.clock >= kClockMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("clock ", request.clock, " is beyond what a clock may be, ", kClockMax));
  }
  LEEWAY_RETURN_IF_ERROR(table->Fits(request, context_->message_bytes_max));
  table->NoteAskedFor();
  return table;
}

absl::Status Shard::ChargeHeld(std::uint64_t bytes) const {
  const runtime::ByteBudget& held = context_->held;
  const bool room = held.HasRoom(bytes) || runtime::Planted<"held-unlimited">();
  if (room ||
      (context_->loop->Now() < grace_until_ && !runtime::Planted<"held-limit-in-grace-time">()))
    return absl::OkStatus();
  const std::string slow = clocks_.DescribeBehind(clocks_.slowest() + 1);
  return absl::ResourceExhaustedError(absl::StrCat(
      "this server thread holds ", held.bytes, " bytes of requests that wait for slower workers (",
      slow, "), and ", bytes, " more would be over LEEWAY_HELD_BYTES_MAX (", held.bytes_max,
      "): raise it, or use more servers or LEEWAY_SERVER_THREADS"));
}

// A pull that cannot be held is refused before what comes with it is applied.
absl::Status Shard::ChargePushPull(const Table& table, const Inbound& inbound) const {
  const proto::Request& request = inbound.request;
  const Policy& policy = SettingsFor(table, request.clock).policy;
  const bool held = policy.Push(request.clock, closed_).hold;
  const bool waits = policy.Pull(request.op, request.clock, clocks_.slowest()).hold;
  if (!waits || runtime::Planted<"push-pull-refused-too-late">()) return absl::OkStatus();
  return ChargeHeld(
      (held && !runtime::Planted<"push-pull-charged-in-part">() ? inbound.bytes() : 0) +
      BytesHeldFor(table, inbound));
}

// ---- pushes ----

absl::Status Shard::CheckFinite(const Table& table, const proto::Request& request,
                                const PushView& push) {
  bool nonfinite = false;
  if (push.codec == 0) {
    nonfinite = HasNonFinite(request.dtype, push.values.bytes());
  } else {
    LEEWAY_RETURN_IF_ERROR(StoreOf(table)->Check(push));
    LEEWAY_ASSIGN_OR_RETURN(nonfinite, StoreOf(table)->EncodedNonFinite(push));
  }
  if (!nonfinite || runtime::Planted<"nonfinite-taken">()) return absl::OkStatus();
  ++context_->counters->nonfinite_pushes;
  if (table.SettingsAt(request.clock).spec.nonfinite != NonFinite::kRefuse) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a push of worker ", request.id.worker, " to table ", table.spec().name,
                   " holds NaN or infinity, which the table refuses (TableSpec::nonfinite)"));
}

absl::Status Shard::TakePush(const Table& table, Inbound* inbound, bool* held) {
  bool begun = false;
  try {
    return TakePush(table, inbound, held, &begun);
  } catch (const std::bad_alloc&) {
    return OutOfMemory(table, *inbound, begun);
  }
}

// `begun`: some of its rows may have been updated. Then nobody else may be told that it was
// refused, nor that it was applied: replicas go on without this server, and where there are none
// its worker hears that it does not know.
absl::Status Shard::OutOfMemory(const Table& table, const Inbound& inbound, bool begun) {
  const std::string text = absl::StrCat("there is no memory left on this server for a push of ",
                                        inbound.bytes(), " bytes to table ", table.spec().name,
                                        ": give it more, lower LEEWAY_TABLE_BYTES_MAX so that it "
                                        "refuses sooner, or use more servers");
  if (!begun) return absl::ResourceExhaustedError(text);
  if (!effects_->has_follower()) return absl::UnknownError(text);
  effects_->Broken(absl::ResourceExhaustedError(absl::StrCat(
      text, "; as some of its rows have been updated, the replicas go on without this server")));
  return absl::UnavailableError(text);
}

absl::Status Shard::TakePush(const Table& table, Inbound* inbound, bool* held, bool* begun) {
  const proto::Request& request = inbound->request;
  const PushView push = ToPush(*inbound);
  const HeldSettings& settings = SettingsFor(table, request.clock);
  const PushDecision decision = settings.policy.Push(request.clock, closed_);
  *held = decision.hold;
  // What is applied now in any case is looked at on the way.
  const bool look_first = decision.hold || settings.spec.nonfinite == NonFinite::kRefuse;
  if (look_first) LEEWAY_RETURN_IF_ERROR(CheckFinite(table, request, push));
  ShardStore* store = StoreOf(table, settings);
  if (!runtime::Planted<"table-memory-unlimited">())
    LEEWAY_RETURN_IF_ERROR(store->CheckMemory(push));
  if (!decision.hold) {
    // Before anything has changed, since there may be no memory for it.
    LogEntry entry = effects_->has_follower() ? PushEntry(*inbound) : LogEntry();
    if (cut_ != nullptr && !runtime::Planted<"cut-after-the-push">()) {
      cut_->BeforePush(table, request.clock);
    }
    bool nonfinite = false;
    *begun = request.kind != TableKind::kDense;
    LEEWAY_RETURN_IF_ERROR(look_first ? store->Apply(push) : store->Apply(push, &nonfinite));
    *begun = true;
    if (nonfinite) ++context_->counters->nonfinite_pushes;
    if (cut_ != nullptr && !runtime::Planted<"late-push-not-in-cut">()) {
      cut_->AfterPush(table, *inbound);
    }
    if (!runtime::Planted<"pushed-until-not-noted">()) {
      pushed_until_ =
          std::max(pushed_until_,
                   request.clock + (runtime::Planted<"pushed-until-a-clock-short">() ? 0 : 1));
    }
    ++context_->counters->pushes_applied;
    if (!runtime::Planted<"settings-not-logged">()) entry.header.settings = settings.number;
    AppendToLog(std::move(entry));
    return absl::OkStatus();
  }
  if (!runtime::Planted<"held-push-unchecked">()) LEEWAY_RETURN_IF_ERROR(store->Check(push));
  if (!runtime::Planted<"held-pushes-unlimited">())
    LEEWAY_RETURN_IF_ERROR(ChargeHeld(inbound->bytes()));
  if (decision.clock != request.clock) ++context_->counters->late_pushes;
  if (!effects_->provisional() && !runtime::Planted<"firm-not-noted">()) {
    firm_ = std::max(firm_, decision.clock + 1);
  }
  const bool dense = request.kind == TableKind::kDense;
  EnsureOwned(&inbound->payload);
  contributions_.Add(decision.clock, {.table = table.id(), .block = dense ? request.block : 0},
                     {.rank = request.id.worker,
                      .incarnation = request.id.incarnation,
                      .sequence = request.id.sequence,
                      .bytes = inbound->bytes(),
                      .elements = request.elements,
                      .push = ToPush(*inbound)});
  return absl::OkStatus();
}

// ---- pulls ----

absl::StatusOr<PullResult> Shard::PullFrom(ShardStore* store, const PullView& view) {
  try {
    return store->Pull(view);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "there is no memory left on this server for the answer: pull less at a time, give it more, "
        "or lower LEEWAY_TABLE_BYTES_MAX");
  }
}

void Shard::ServeOrHold(const Table& table, Inbound inbound) {
  const proto::Request& request = inbound.request;
  const Policy& policy = SettingsFor(table, request.clock).policy;
  PullDecision decision = policy.Pull(request.op, request.clock, clocks_.slowest());
  if (runtime::Planted<"hold-released-early">() && decision.hold) {
    decision.hold = --decision.needed > clocks_.slowest();
  }
  if (decision.hold && !context_->test_only_never_hold) {
    Hold(table, std::move(inbound), decision);
  } else {
    Serve(table, inbound, decision.needed, decision.effective);
  }
}

void Shard::Serve(const Table& table, const Inbound& inbound, std::uint64_t needed,
                  std::uint64_t effective) {
  ShardStore* const store = StoreOf(table);
  PullView view = ToPull(inbound);
  // Clocks are closed one by one, and held pulls answered in between: what is pulled is of the
  // clock that was closed last, however far all workers have gone on.
  const bool closed_ones = table.is_bsp() && !runtime::Planted<"serves-a-later-view">();
  const std::uint64_t slowest = closed_ones ? std::max(closed_, needed) : clocks_.slowest();
  view.codec = table.codec_schedule().KnownAt(slowest);
  // Before anything is said of it, all replicas have it: the answer waits for the log.
  const ReaderTerms terms{.needed = needed, .slowest = slowest, .workers = clocks_.living()};
  if (store->WantsVersion(view, terms)) {
    const VersionBy by = store->NextVersion(view.block, table.codec_schedule(), slowest);
    const absl::Status made =
        store->MakeVersion(view.block, slowest, std::numeric_limits<double>::quiet_NaN(), by);
    if (!made.ok()) return RefusePull(inbound, made);
    if (!runtime::Planted<"version-not-logged">()) {
      AppendToLog(VersionEntry(table, view.block, by));
    }
  }
  absl::StatusOr<PullResult> pulled = PullFrom(store, view);
  if (!pulled.ok()) return RefusePull(inbound, pulled.status());
  if (runtime::Planted<"messages-since-another">()) LoseFirstMessage(&*pulled);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.slowest_clock = pulled->slowest.value_or(clocks_.slowest());
  reply.coded = pulled->coded;
  reply.parts = std::move(pulled->parts);
  reply.staleness = Policy::Staleness(effective, reply.slowest_clock);
  reply.version = index_;
  Payload payload = TakeValues(*pulled, &reply);
  ++context_->counters->pulls_served;
  table.CountStaleness(reply.staleness);
  effects_->Answer(inbound.peer, std::move(reply), std::move(payload), DeadlineOf(inbound));
}

// The table is read as it is now, with all that has been applied, however slow a worker is. The
// answer leaves when it cannot be undone any more, like one to a worker.
void Shard::Read(Inbound inbound) {
  ++requests_;
  if (runtime::Planted<"reader-counts">()) {
    clocks_.Set(proto::kWorkersMax, inbound.request.id.incarnation, proto::WorkerState::kAlive);
  }
  const absl::StatusOr<const Table*> table = TableFor(inbound.request);
  if (!table.ok()) return Refuse(inbound, table.status());
  PullView view = ToPull(inbound);
  view.plain = true;
  absl::StatusOr<PullResult> pulled = PullFrom(StoreOf(**table), view);
  if (!pulled.ok()) return Refuse(inbound, pulled.status());
  proto::Reply reply = ReplyTo(inbound.request);
  const bool ahead = runtime::Planted<"reader-clock-ahead">();
  reply.slowest_clock = ahead ? clocks_.fastest() : ClockOfContent(**table);
  reply.staleness = Policy::Staleness(reply.clock, reply.slowest_clock);
  reply.version = index_;
  Payload payload = TakeValues(*pulled, &reply);
  const absl::Status answered = effects_->AnswerReader(inbound.peer, std::move(reply),
                                                       std::move(payload), DeadlineOf(inbound));
  if (!answered.ok()) return Refuse(inbound, answered);
  ++context_->counters->reads_served;
  ++context_->counters->pulls_served;
}

// All that living workers have pushed in clocks below it is in the table.
std::uint64_t Shard::ClockOfContent(const Table& table) const {
  const bool closed = table.is_bsp() && !runtime::Planted<"reader-clock-of-fastest-bsp">();
  return closed ? closed_ : clocks_.slowest();
}

void Shard::Hold(const Table& table, Inbound inbound, const PullDecision& decision) {
  inbound.payload.resize(FramesHeld(table, inbound));
  if (absl::Status room = ChargeHeld(inbound.bytes()); !room.ok()) return RefusePull(inbound, room);
  EnsureOwned(&inbound.payload);
  PendingPull pull;
  pull.needed = decision.needed;
  pull.effective = decision.effective;
  pull.since = context_->loop->Now();
  pull.deadline = DeadlineOf(inbound);
  pull.inbound = std::move(inbound);
  held_.Add(std::move(pull));
  if (!runtime::Planted<"held-pull-without-deadline">()) ArmTimer();
}

// ---- deadlines ----

absl::Time Shard::DeadlineOf(const Inbound& inbound) const {
  const std::uint64_t timeout = inbound.request.timeout_ms;
  return timeout == 0 ? absl::InfiniteFuture()
                      : context_->loop->Now() + absl::Milliseconds(timeout);
}

void Shard::ArmTimer() {
  const absl::Time first = held_.FirstDeadline().value_or(absl::InfiniteFuture());
  if (first >= timer_at_) return;  // it fires early at worst, and arms itself again
  context_->loop->Cancel(timer_);
  timer_at_ = first;
  timer_ = context_->loop->After(first - context_->loop->Now(), [this] { OnTimer(); });
}

void Shard::OnTimer() {
  timer_ = runtime::TimerId::kNone;
  timer_at_ = absl::InfiniteFuture();
  for (const PendingPull& pull : held_.TakeExpired(context_->loop->Now())) {
    Refuse(pull.inbound, DeadlineExceeded(pull));
  }
  if (!runtime::Planted<"deadline-timer-once">()) ArmTimer();
}

absl::Status Shard::DeadlineExceeded(const PendingPull& pull) const {
  const proto::Request& request = pull.inbound.request;
  const TableSpec& spec = context_->tables.Find(request.table)->SettingsAt(request.clock).spec;
  return absl::DeadlineExceededError(absl::StrCat(
      clocks_.DescribeBehind(pull.needed), "; waiting for clock ", pull.needed, " of table ",
      spec.name, " (", spec.consistency.ToString(), "; worker ", request.id.worker, " is in clock ",
      request.clock, "; waited ",
      absl::FormatDuration(absl::Trunc(context_->loop->Now() - pull.since, absl::Milliseconds(1))),
      HasPush(request.op) ? "; what it pushed along was accepted" : "",
      "; LEEWAY_REQUEST_TIMEOUT_MS says how long)"));
}

}  // namespace leeway::ps
