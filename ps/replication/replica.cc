#include "ps/replication/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {

Replica::Replica(std::uint32_t shard, ReplicaContext* context)
    : context_(context), shard_(shard, context->shards, this), uncommitted_(&context->log) {}

Replica::~Replica() {
  if (filling_) --context_->fills;
  ForgetWaiting();
}

// ---- what the shard does (ShardEffects) ----

bool Replica::has_follower() const {
  return successor_ != nullptr && (!handing_over_ || runtime::Planted<"logs-to-the-next-head">()) &&
         !fill_waits_;
}

void Replica::Log(LogEntry entry) {
  if (gating_) uncommitted_.Append(entry);
  const bool complete = entry.header.kind != proto::LogEntryKind::kUpdate;
  successor_->Append(std::move(entry));
  if (complete) Pump();  // not between the updates and their Close: a fill might end there
}

bool Replica::provisional() const {
  return context_->replication > 1 || members_.size() > 1 || !fillings_.empty();
}

// Another replica may be the head by now, so that what is read here may be of the past. Not where
// no other can be: what is committed without any is all that there is.
bool Replica::NeedsProof() const {
  if (runtime::Planted<"proof-not-asked">()) return false;
  return gating_ && context_->shards->loop->Now() >= context_->lease_until;
}

void Replica::Answer(van::PeerId peer, proto::Reply reply, Payload payload, absl::Time deadline) {
  const bool proof = HasPull(reply.op) && NeedsProof();
  if ((committed() == shard_.index() && !proof) ||
      runtime::Planted<"acknowledge-before-replicated">()) {
    context_->host->SendReply(peer, std::move(reply), std::move(payload));
    return;
  }
  Waiting waiting;
  waiting.deadline = deadline;
  waiting.peer = peer;
  waiting.reply = std::move(reply);
  waiting.payload = std::move(payload);
  Wait(std::move(waiting), proof);
}

absl::Status Replica::AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                                   absl::Time deadline) {
  const bool proof = NeedsProof();
  if ((committed() == shard_.index() && !proof) || runtime::Planted<"read-uncommitted">()) {
    context_->host->SendReply(peer, std::move(reply), std::move(payload));
    return absl::OkStatus();
  }
  Waiting waiting;
  waiting.reader_bytes = kRequestOverheadBytes;
  for (const runtime::Buffer& frame : payload) waiting.reader_bytes += frame.size();
  if ((!context_->readers.HasRoom(waiting.reader_bytes) &&
       !runtime::Planted<"reader-bytes-unlimited">()) ||
      waiting_.size() >= kAnswersWaitingMax / 2) {
    return absl::UnavailableError(
        absl::StrCat("answers of ", context_->readers.bytes,
                     " bytes to readers wait for other replicas already; ask again"));
  }
  context_->readers.bytes += waiting.reader_bytes;
  waiting.deadline = deadline;
  waiting.peer = peer;
  waiting.reply = std::move(reply);
  waiting.payload = std::move(payload);
  Wait(std::move(waiting), proof);
  return absl::OkStatus();
}

void Replica::ForgetWaiting() {
  for (const Waiting& waiting : waiting_) Release(waiting);
  waiting_.clear();
}

void Replica::AnswerNow(van::PeerId peer, proto::Reply reply) {
  context_->provisional_given = context_->provisional_given || reply.provisional;
  context_->host->SendReply(peer, std::move(reply), {});
}

void Replica::Offended(van::PeerId peer, const absl::Status& why) {
  context_->host->DropSoon(peer, why);
}

void Replica::Broken(const absl::Status& why) {
  leads_ = false;
  broken_ = true;
  context_->host->OnBroken(why);
}

void Replica::WhenCommitted(std::function<void()> then) {
  if (committed() == shard_.index()) return then();
  Waiting waiting;
  waiting.then = std::move(then);
  Wait(std::move(waiting));
}

// With `proof`: for an entry that is logged from now on.
void Replica::Wait(Waiting waiting, bool proof) {
  const std::size_t most = waiting.then == nullptr ? kAnswersWaitingMax : 2 * kAnswersWaitingMax;
  if (waiting_.size() >= most && !runtime::Planted<"answers-unlimited">()) {
    ++context_->shards->counters->replies_unsent;
    return;
  }
  waiting.index = shard_.index() + (proof && !runtime::Planted<"proof-of-the-past">() ? 1 : 0);
  if (proof) {
    confirm_at_ = waiting.index;
    context_->host->ConfirmSoon(shard_.id());
  }
  waiting.since = context_->shards->loop->Now();
  first_deadline_ = std::min(first_deadline_, waiting.deadline);
  if (waiting.deadline != absl::InfiniteFuture()) context_->host->ResendAt(waiting.deadline);
  waiting_.push_back(std::move(waiting));
}

// One at a time: those that ask meanwhile share the next.
void Replica::Confirm() {
  if (!leads_) return;
  if (confirm_at_ > shard_.index() && confirming_ <= committed()) {
    if (!runtime::Planted<"confirm-not-logged">()) shard_.LogConfirm();
    confirming_ = shard_.index();
  }
  if (!gating_) OnCommitted();
}

// Who asks gives up soon, and would blame this server.
void Replica::RefuseOverdue(absl::Time now) {
  if (now < first_deadline_ || runtime::Planted<"overdue-answers-wait-on">()) return;
  first_deadline_ = absl::InfiniteFuture();
  std::deque<Waiting> left;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.deadline > now) {
      if (!runtime::Planted<"later-deadline-forgotten">())
        first_deadline_ = std::min(first_deadline_, waiting.deadline);
      left.push_back(std::move(waiting));
      continue;
    }
    if (!runtime::Planted<"overdue-reader-bytes-kept">()) Release(waiting);
    proto::Reply reply = std::move(waiting.reply);
    reply.result = Overdue(waiting, now);
    reply.keys = reply.elements = reply.version = 0;
    AnswerNow(waiting.peer, std::move(reply));
  }
  waiting_ = std::move(left);
}

absl::Status Replica::Overdue(const Waiting& waiting, absl::Time now) const {
  const auto rounded = [](absl::Duration time) {
    return absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(1)));
  };
  const std::string who =
      successor_ == nullptr ? "its next replica"
                            : absl::StrCat("server ", successor_->peer().place.server_rank,
                                           ", last heard ", rounded(now - follower_heard_), " ago");
  const std::string waited =
      absl::StrCat("waiting for ", who, ", to have what is in shard ", shard_.id(),
                   " as well; waited ", rounded(now - waiting.since));
  if (waiting.reader_bytes > 0) {
    return absl::DeadlineExceededError(
        absl::StrCat(waited,
                     " (LEEWAY_REQUEST_TIMEOUT_MS says how long). A reader is told only what is on "
                     "all replicas: pull again, or wait longer (Options::timeout)"));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      waited, HasPush(waiting.reply.op) ? "; whether the push was accepted is not known" : "",
      " (LEEWAY_REQUEST_TIMEOUT_MS says how long)"));
}

absl::Status Replica::CanTake(const proto::Request& request) const {
  if (!leads_ && !runtime::Planted<"serves-before-handover">()) {
    return absl::UnavailableError(absl::StrCat(
        "shard ", shard_.id(),
        broken_ ? " is not served here any more" : " is being handed over to this server"));
  }
  // It was created while the scheduler took this server for dead, which has not heard that yet.
  if (context_->shards->tables.Find(request.table) == nullptr &&
      !runtime::Planted<"unknown-table-refused">()) {
    return absl::UnavailableError(
        absl::StrCat("table ", request.table, " is not installed on this server yet"));
  }
  // Somebody who is being filled may count by now as well.
  const bool alone = members_.size() <= 1 && fillings_.empty();
  if (HasPull(request.op) && context_->isolated && !alone &&
      !runtime::Planted<"isolated-serves-pulls">()) {
    return absl::UnavailableError(
        "this server has heard neither the scheduler nor another replica for "
        "LEEWAY_FAILURE_TIMEOUT_MS, so others may serve its shards by now");
  }
  if (HasPush(request.op) && has_follower() && !context_->log.HasRoom(0) &&
      !runtime::Planted<"log-limit-ignored">()) {
    return absl::UnavailableError(
        absl::StrCat("this server thread keeps ", context_->log.bytes, " bytes that server ",
                     successor_->peer().place.server_rank,
                     " has not acknowledged, more than LEEWAY_REPLICATION_LOG_BYTES"));
  }
  return absl::OkStatus();
}

void Replica::OnCommitted() {
  const std::uint64_t index = committed();
  uncommitted_.Trim(index);
  while (!waiting_.empty() && waiting_.front().index <=
                                  index + (runtime::Planted<"answers-one-entry-early">() ? 1 : 0)) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (!runtime::Planted<"reader-bytes-kept">()) Release(next);
    if (next.then != nullptr) {
      next.then();
    } else {
      context_->host->SendReply(next.peer, std::move(next.reply), std::move(next.payload));
    }
  }
  UpdateStable();
  if (leads_ && confirm_at_ > shard_.index()) context_->host->ConfirmSoon(shard_.id());
  if (predecessor_.has_value()) context_->host->AcknowledgeSoon(shard_.id());
}

void Replica::UpdateStable() {
  if (!leads_) return;
  const std::uint64_t before = stable_;
  const std::uint64_t closed = shard_.closed();
  if (committed() == shard_.index() || runtime::Planted<"stable-before-committed">()) {
    closings_.clear();
    stable_ = std::max(stable_, closed);
  } else {
    for (; !closings_.empty() && closings_.front().first <= committed(); closings_.pop_front()) {
      if (!runtime::Planted<"stable-grows-late">()) stable_ = closings_.front().second;
    }
    if (closed > (closings_.empty() ? stable_ : closings_.back().second)) {
      closings_.emplace_back(shard_.index(), closed);
    }
  }
  if (stable_ > before) context_->host->StableHasGrown();
}

// ---- from the one before ----

void Replica::OnEntry(const Peer& sender, van::PeerId connection, LogEntry entry) {
  const proto::Replicate& header = entry.header;
  bool mine = predecessor_.has_value() && predecessor_->peer.server() == sender.server();
  if (runtime::Planted<"entry-of-anybody">()) {
    if (!mine) receiver_.Forget();
    if (!mine) predecessor_ = Predecessor{.peer = sender};
    mine = true;
  }
  const bool late = header.epoch < (mine ? predecessor_->since : 0);
  if (!mine || (late && !runtime::Planted<"entry-of-earlier-epoch">())) {
    if (!mine) stray_ = Stray{sender.server(), connection, header.stream};
    // One that has stepped down sends that until it is heard; but an answer to one who has nothing
    // to hand over would be another question.
    if (leads_ && header.kind == proto::LogEntryKind::kHandoverEnd && header.stream != 0 &&
        !runtime::Planted<"late-handover-end-unanswered">()) {
      context_->host->SendBack(
          connection, proto::ReplicateAck{
                          .shard = shard_.id(), .stream = header.stream, .entry = header.entry});
    }
    return;
  }
  predecessor_->connection = connection;
  const bool of_handover =
      header.kind == proto::LogEntryKind::kHeld || header.kind == proto::LogEntryKind::kHandoverEnd;
  // The old head has heard of the handover first. It is asked for it when the map is here.
  if (of_handover && !leads_ && !awaited_.has_value() &&
      !runtime::Planted<"handover-before-map">()) {
    return;
  }
  if (header.stream == 0) {
    if (!awaited_.has_value() || header.kind != proto::LogEntryKind::kHandoverEnd) return;
    handed_.clear();
    return EndHandover();
  }
  const std::uint64_t stream = header.stream;
  const std::uint64_t number = header.entry;
  switch (receiver_.Judge(stream, number)) {
    case ReplicationReceiver::Verdict::kOld:
      return;
    case ReplicationReceiver::Verdict::kUnknown:
      if (runtime::Planted<"unknown-stream-unanswered">()) return;
      context_->host->SendBack(
          connection, proto::ReplicateAck{
                          .shard = shard_.id(), .stream = stream, .since = predecessor_->since});
      return;
    case ReplicationReceiver::Verdict::kSeen:
    case ReplicationReceiver::Verdict::kGap:
      break;
    case ReplicationReceiver::Verdict::kNext:
      // A stream that begins anew begins with whole entries.
      if (stream != receiver_.stream() && !runtime::Planted<"updates-of-old-stream">())
        updates_.clear();
      if (absl::Status taken = TakeStreamed(std::move(entry)); !taken.ok()) {
        runtime::LogWarning("shard ", shard_.id(), ": what server ", sender.place.server_rank,
                            " sent is not taken: ", taken.message());
        if (!runtime::Planted<"untaken-entry-counts">()) return;  // it will be sent again
      }
      receiver_.Take(stream, number);
  }
  context_->host->AcknowledgeSoon(shard_.id());
}

absl::Status Replica::TakeStreamed(LogEntry entry) {
  using Kind = proto::LogEntryKind;
  switch (entry.header.kind) {
    case Kind::kFillBegin:
      if (role_ != Role::kFilling) return absl::FailedPreconditionError("nothing is to be filled");
      shard_.BeginFill(entry);
      fill_begun_ = true;
      broken_ = false;
      if (!runtime::Planted<"filled-by-an-earlier-fill">()) filled_ = false;
      return absl::OkStatus();
    case Kind::kFillPiece:
      if (!fill_begun_ && !runtime::Planted<"piece-without-begin">())
        return absl::FailedPreconditionError("a piece of a fill without its begin");
      return shard_.LoadPiece(entry);
    case Kind::kFillEnd:
      filled_ = fill_begun_ || runtime::Planted<"fill-end-without-begin">();
      return absl::OkStatus();
    case Kind::kHeld:
    case Kind::kHandoverEnd:
      if (awaited_.has_value()) handed_.push_back(entry);
      if (entry.header.kind == Kind::kHandoverEnd && awaited_.has_value()) EndHandover();
      return absl::OkStatus();
    case Kind::kUpdate:
      if (entry.header.index == shard_.index() + 1 || runtime::Planted<"update-out-of-turn">())
        updates_.push_back(std::move(entry));
      return absl::OkStatus();
    case Kind::kPush:
    case Kind::kClose:
    case Kind::kEnter:
    case Kind::kVersion:
    case Kind::kRefusal:
    case Kind::kConfirm:
      return TakeEntry(std::move(entry));
  }
  return absl::InvalidArgumentError("an unknown kind of entry");
}

absl::Status Replica::TakeEntry(LogEntry entry) {
  const std::uint64_t index = entry.header.index;
  if (role_ == Role::kFilling && !fill_begun_ && !runtime::Planted<"entry-before-fill">()) {
    return absl::FailedPreconditionError("an entry of the log before the fill");
  }
  if (index <= shard_.index() && !runtime::Planted<"entry-applied-again">())
    return absl::OkStatus();
  if (broken_ || (index != shard_.index() + 1 && !runtime::Planted<"entry-out-of-turn">())) {
    return absl::InternalError(
        absl::StrCat("entry ", index, " of the log cannot follow entry ", shard_.index()));
  }
  const std::vector<LogEntry> updates = std::exchange(updates_, {});
  if (absl::Status followed = shard_.Follow(updates, entry); !followed.ok()) {
    if (absl::IsFailedPrecondition(followed)) {
      if (!runtime::Planted<"updates-lost-on-second-try">())
        updates_ = updates;  // nothing has changed: it will be tried again
    } else {
      broken_ = true;
      context_->host->OnBroken(absl::DataLossError(
          absl::StrCat("the replica of shard ", shard_.id(), " could not apply entry ", index,
                       " of the log, which its head had applied: ", followed.message())));
    }
    return followed;
  }
  if (has_follower()) {
    if (!runtime::Planted<"updates-not-passed-on">()) {
      for (const LogEntry& update : updates) Log(update);
    }
    if (!runtime::Planted<"log-not-passed-on">()) Log(std::move(entry));
  }
  if (!gating_) OnCommitted();
  return absl::OkStatus();
}

// The predecessor stays for now: it may not have heard that its last entry has arrived.
void Replica::EndHandover() {
  awaited_.reset();
  TakeLead();
}

// The connection that the entries came over may have broken since. The one before may have nothing
// to send that would make another: all entries taken, and it waits for this word of what is
// committed.
void Replica::Acknowledge() {
  if (!predecessor_.has_value() || receiver_.stream() == 0) return;
  const proto::ReplicateAck ack{
      .shard = shard_.id(),
      .stream = receiver_.stream(),
      .entry = receiver_.received(),
      .committed = runtime::Planted<"received-told-as-committed">() ? shard_.index() : committed()};
  if (predecessor_->connection != 0) {
    context_->host->SendBack(predecessor_->connection, ack);
  } else if (!runtime::Planted<"acknowledges-only-there">()) {
    context_->host->SendTo(predecessor_->peer, ack, {});
  }
}

// ---- from the one behind ----

void Replica::OnAck(const Peer& sender, van::PeerId connection, const proto::ReplicateAck& ack) {
  const bool mine = successor_ != nullptr && successor_->peer().server() == sender.server();
  if (mine) follower_heard_ = context_->shards->loop->Now();
  if (ack.stream == 0) {  // a new head asks for the handover
    if (mine && handing_over_) {
      if (!runtime::Planted<"handover-rewind-forgotten">()) successor_->sender().Rewind();
      Pump();
    } else if (!runtime::Planted<"nothing-to-hand-over-unsaid">() && !leads_ && !members_.empty() &&
               members_.front().server() == sender.server()) {
      proto::Replicate nothing{.shard = shard_.id(), .epoch = epoch_, .stream = 0, .entry = 1};
      nothing.kind = proto::LogEntryKind::kHandoverEnd;
      context_->host->SendBack(connection, nothing);
    }
    return;
  }
  if (!mine) return;
  if (ack.stream != successor_->sender().stream() && !runtime::Planted<"ack-of-other-stream">())
    return;
  // It has had others before it since this stream began, and forgotten what it had of it. That it
  // has not seen the beginning does not say so: it may have seen it since.
  if (ack.entry == 0 &&
      (ack.since > successor_since_ || runtime::Planted<"late-word-restarts-stream">()) &&
      successor_->sender().acked() > 0 && !handing_over_ &&
      !runtime::Planted<"restart-of-follower-ignored">()) {
    BeginSuccessor(Peer(successor_->peer()), to_filling_);
    return Pump();
  }
  const absl::Time now = context_->shards->loop->Now();
  if (successor_->sender().TakeAck(ack.entry, ack.committed, now) ==
      ReplicationSender::Outcome::kProgress) {
    link_good_ = now;
  }
  if (handing_over_ && successor_->CaughtUp() &&
      (successor_->sender().all_acked() || runtime::Planted<"handover-over-when-sent">())) {
    handing_over_ = false;
    EndSuccessor();
    return CheckSuccessor();
  }
  if (const std::uint64_t committed = runtime::Planted<"commit-beyond-log">()
                                          ? ack.committed
                                          : std::min(ack.committed, shard_.index());
      gating_ && (committed > committed_ || runtime::Planted<"commit-goes-back">())) {
    committed_ = committed;
    OnCommitted();
  }
  Pump();
}

// ---- sending ----

void Replica::Pump() {
  if (successor_ == nullptr || fill_waits_) return;
  const Peer to = successor_->peer();
  successor_->Pump(context_->shards->loop->Now(), [this, &to](LogEntry* entry) {
    entry->header.shard = shard_.id();
    entry->header.epoch = epoch_;
    return context_->host->SendTo(to, entry->header, entry->payload);
  });
  if (due() != absl::InfiniteFuture()) context_->host->ResendAt(due());
  EndFillIfDue();
}

void Replica::ResendIfDue(absl::Time now) {
  RefuseOverdue(now);
  if (runtime::Planted<"resend-off">()) return;
  if (successor_ != nullptr && successor_->sender().RewindIfDue(now)) Pump();
}

absl::Time Replica::due() const {
  return successor_ == nullptr ? first_deadline_
                               : std::min(first_deadline_, successor_->sender().due());
}

void Replica::OnLinkUp(const proto::ShardOwner& place) {
  if (awaited_.has_value() && awaited_->place == place) Nudge();
  if (successor_ == nullptr || !(successor_->peer().place == place)) return;
  if (runtime::Planted<"link-up-unnoticed">()) return;
  successor_->sender().Rewind();
  BeginFillIfDue();
  Pump();
}

void Replica::OnPeerDown(van::PeerId connection) {
  shard_.DropPeer(connection);
  // A worker comes back and asks again; a reader may be gone for good.
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const bool lost = waiting.peer == connection && waiting.reader_bytes > 0 &&
                      !runtime::Planted<"lost-reader-kept">();
    if (lost) Release(waiting);
    return lost;
  });
  if (predecessor_.has_value() && predecessor_->connection == connection &&
      !runtime::Planted<"acknowledges-over-the-dead">())
    predecessor_->connection = 0;
  if (stray_.has_value() && stray_->connection == connection) stray_.reset();
}

void Replica::Nudge() {
  if (awaited_.has_value() && !runtime::Planted<"handover-asked-once">()) {
    context_->host->SendTo(*awaited_, proto::ReplicateAck{.shard = shard_.id()}, {});
  }
  BeginFillIfDue();
}

}  // namespace leeway::ps
