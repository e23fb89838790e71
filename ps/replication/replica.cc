#include "ps/replication/replica.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {

Replica::Replica(std::uint32_t shard, ReplicaContext* context)
    : context_(context),
      shard_(shard, context->shards, this, &waiting_),
      place_(shard, &context->place),
      received_(&shard_),
      successor_(shard, context),
      commit_(&context->log),
      waiting_(context, &shard_, &commit_) {}

// ---- the shard's effects (ShardEffects) ----

void Replica::Log(LogEntry entry) {
  commit_.Append(entry);
  const bool complete = !proto::IsPartOfNext(entry.header.kind);
  successor_->Append(std::move(entry));
  if (complete) Pump();  // not between the updates and their Close: a transfer might end there
}

bool Replica::provisional() const { return context_->replication > 1 || !place_.alone(); }

void Replica::Offended(van::PeerId peer, const absl::Status& why) {
  context_->replies->DropSoon(peer, why);
}

void Replica::Broken(const absl::Status& why) {
  leads_ = false;
  received_.Break();
  context_->host->OnBroken(why);
}

// ---- what is committed ----

void Replica::Confirm() {
  if (!leads_) return;
  if (waiting_.NeedConfirm()) {
    shard_.LogConfirm();
    waiting_.NoteConfirm();
  }
  if (!commit_.gating()) OnCommitted();
}

void Replica::OnCommitted() {
  const std::uint64_t index = committed();
  commit_.Trim(index);
  waiting_.Release(index);
  UpdateStable();
  if (leads_ && waiting_.WaitForLaterEntry()) context_->host->ConfirmSoon(shard_.id());
  if (predecessor_.peer() != nullptr) context_->host->AcknowledgeSoon(shard_.id());
}

void Replica::UpdateStable() {
  if (leads_ && commit_.UpdateStable(shard_.index(), shard_.closed())) {
    context_->host->StableHasGrown();
  }
}

absl::Status Replica::CanTake(const proto::Request& request) const {
  if (!leads_) {
    return absl::UnavailableError(absl::StrCat("shard ", shard_.id(),
                                               received_.broken()
                                                   ? " is not served here any more"
                                                   : " is being handed over to this server"));
  }
  // The table was created while the scheduler took this server, which has not heard of that yet,
  // for dead.
  if (context_->shards->tables.Find(request.table) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("table ", request.table, " is not installed on this server yet"));
  }
  if (HasPull(request.op) && context_->isolated && !place_.alone()) {
    return absl::UnavailableError(
        "this server has heard neither the scheduler nor another replica for "
        "LEEWAY_FAILURE_TIMEOUT_MS, so others may serve its shards by now");
  }
  if (HasPush(request.op) && has_follower() && !context_->log.HasRoom(0)) {
    return absl::UnavailableError(
        absl::StrCat("this data thread keeps ", context_->log.bytes, " bytes that server ",
                     successor_.peer().place.server_rank,
                     " has not acknowledged, more than LEEWAY_REPLICATION_LOG_BYTES"));
  }
  return absl::OkStatus();
}

// ---- changes of the chain ----

void Replica::TakeMap(const proto::ClusterMap& map) {
  const std::optional<Peer> old_head = place_.head();
  const bool was_head = is_head(), was_joining = place_.is_joining();
  const bool changed = place_.TakeMap(map);
  if (was_joining && is_member() && !received_.has_state()) {
    RefuseMembership();
  }
  was_replica_ = was_replica_ || !is_head();

  if (leads_ && !is_head()) StepDown();
  if (!is_head()) {
    predecessor_.StopAwaiting();
  } else if (!was_head && old_head.has_value()) {
    predecessor_.AwaitHandover(old_head, place_.epoch());
  }
  if (awaits_handover() && !IsAlive(map, *predecessor_.awaited())) {
    predecessor_.StopAwaiting();
  }
  CheckPredecessor();
  CheckSuccessor();
  if (is_head() && !leads_ && !awaits_handover()) TakeLead();
  if (!changed) return;
  // A replica that did not have the map yet may have ignored the entries sent before.
  if (successor_.exists()) successor_->sender().Rewind();
  Pump();
  Nudge();
}

// A replica is appended to its chain only after it has said that it has the state. Should a map say
// otherwise, what is here must be neither served nor handed on.
void Replica::RefuseMembership() {
  place_.StayJoining();
  received_.Break();
  context_->host->OnBroken(absl::DataLossError(absl::StrCat(
      "the map of epoch ", place_.epoch(), " makes this server a member of the chain of shard ",
      shard_.id(), ", of which it has been given nothing or only a part")));
}

void Replica::TakeLead() {
  leads_ = true;
  waiting_.RestartConfirms();
  commit_.RestartStable();
  shard_.BecomeHead(/*inherited=*/was_replica_);
  shard_.TakeOver(received_.ReleaseHandedOver());
  UpdateStable();
}

// State that is not in the log goes to the new head after the log. It was answered provisionally at
// most, so nothing is lost if this replica dies before it has handed it over.
void Replica::StepDown() {
  leads_ = false;
  waiting_.Clear();
  commit_.ForgetClosings();
  std::vector<LogEntry> rest =
      shard_.StepDown(absl::AbortedError(absl::StrCat("epoch ", place_.epoch(), " has begun")));
  const std::optional<Peer> head = place_.head();
  if (!head.has_value()) return;
  if (!successor_.Is(*head)) BeginSuccessor(*head, /*joining=*/false);
  successor_.BeginHandover(std::move(rest));
  SetGating(false);
}

void Replica::OnLeadNow(const proto::LeadNow& lead) {
  if (!predecessor_.IsAbout(lead)) return;
  predecessor_.StopAwaiting();
  CheckPredecessor();
  TakeLead();
}

// The predecessor stays for now: it may not have heard that its last entry has arrived.
void Replica::EndHandover() {
  predecessor_.StopAwaiting();
  TakeLead();
}

void Replica::CheckPredecessor() {
  const std::optional<Peer> wanted = is_head() || place_.role() == ChainPlace::Role::kNone
                                         ? predecessor_.awaited()
                                         : place_.predecessor();
  std::optional<PredecessorLink::Greeting> greeting;
  if (!predecessor_.Set(wanted, place_.epoch(), &greeting)) return;
  received_.OnNewPredecessor();
  if (!greeting.has_value()) return;
  context_->replies->SendBack(greeting->connection, proto::ReplicateAck{.shard = shard_.id(),
                                                                        .stream = greeting->stream,
                                                                        .since = place_.epoch()});
}

void Replica::CheckSuccessor() {
  if (successor_.handing_over()) {
    if (place_.head().has_value() && successor_.Is(*place_.head())) return;
    successor_.EndHandover();  // that one is head no more: nobody waits for the handover
    successor_.End();
  }
  const std::optional<Peer> wanted = place_.successor();
  const bool joining = place_.is_tail();
  if (wanted.has_value() && successor_.Is(*wanted) && (successor_.joining() || !joining)) {
    if (successor_.joining() && !joining) SetGating(true);
    successor_.set_joining(joining);
    return;
  }
  if (!wanted.has_value()) {
    successor_.End();
    SetGating(false);
  } else {
    BeginSuccessor(*wanted, joining);
  }
}

void Replica::BeginSuccessor(const Peer& peer, bool joining) {
  successor_.Begin(peer, joining, place_.epoch(), Now());
  SetGating(!joining);
  if (joining) return BeginTransferIfDue();
  for (const LogEntry& entry : commit_.uncommitted()) successor_->Append(entry);
}

// While no replica has to follow, all is committed that is here.
void Replica::SetGating(bool gating) {
  commit_.SetGating(gating, shard_.index());
  OnCommitted();
}

// Not before the joining server can be reached: from the beginning of a transfer on, what is pushed
// is kept for it.
void Replica::BeginTransferIfDue() {
  if (!successor_.MayBeginTransfer()) return;
  if (!context_->host->Reaches(successor_.peer())) return;
  successor_.BeginTransfer(shard_.ExportBegin(), shard_.Freeze());
  Pump();
}

// From here on the new replica counts: nothing is committed that it does not have. What has been
// committed before, it is sent before the end of the transfer.
void Replica::EndTransferIfDue() {
  if (!successor_.TransferIsSent()) return;
  if (shard_.HoldsUnkept()) return;
  successor_.EndTransfer(shard_.index());
  SetGating(true);
  Pump();
}

// ---- from the predecessor ----

void Replica::OnEntry(const Peer& sender, van::PeerId connection, LogEntry entry) {
  const std::uint64_t stream = entry.header.stream;
  const std::uint64_t number = entry.header.entry;
  proto::ReplicateAck ack{.shard = shard_.id(), .stream = stream};
  switch (predecessor_.Judge(sender, connection, entry.header, leads_)) {
    case PredecessorLink::Verdict::kIgnore:
      return;
    case PredecessorLink::Verdict::kRepeatedHandoverEnd:
      ack.entry = number;
      return context_->replies->SendBack(connection, ack);
    case PredecessorLink::Verdict::kUnknownStream:
      ack.since = predecessor_.since();
      return context_->replies->SendBack(connection, ack);
    case PredecessorLink::Verdict::kNothingHandedOver:
      received_.ForgetHandedOver();
      return EndHandover();
    case PredecessorLink::Verdict::kAcknowledge:
      break;
    case PredecessorLink::Verdict::kTake:
      if (stream != predecessor_.stream()) received_.OnNewStream();
      if (absl::Status taken = TakeReceived(std::move(entry)); !taken.ok()) {
        runtime::LogWarning("shard ", shard_.id(), ": what server ", sender.place.server_rank,
                            " sent is not taken: ", taken.message());
        return;  // it will be sent again
      }
      predecessor_.NoteTaken(stream, number);
  }
  context_->host->AcknowledgeSoon(shard_.id());
}

absl::Status Replica::TakeReceived(LogEntry entry) {
  using Kind = proto::LogEntryKind;
  switch (entry.header.kind) {
    case Kind::kTransferBegin:
      return received_.BeginTransfer(entry, place_.is_joining());
    case Kind::kTransferPiece:
    case Kind::kAnswer:
    case Kind::kPublishedBlock:
    case Kind::kPublishedAsIs:
      return received_.TakePiece(entry);
    case Kind::kTransferEnd:
      received_.EndTransfer();
      return absl::OkStatus();
    case Kind::kHeld:
    case Kind::kHandoverEnd:
      if (!awaits_handover()) return absl::OkStatus();
      received_.TakeHandedOver(entry);
      if (entry.header.kind == Kind::kHandoverEnd) EndHandover();
      return absl::OkStatus();
    case Kind::kUpdate:
    case Kind::kEffect:
      received_.TakeUpdate(std::move(entry));
      return absl::OkStatus();
    case Kind::kPush:
    case Kind::kClose:
    case Kind::kEnter:
    case Kind::kVersion:
    case Kind::kRefusal:
    case Kind::kConfirm:
    case Kind::kCollected:
    case Kind::kCall:
    case Kind::kPublish:
      return TakeEntry(std::move(entry));
  }
  return absl::InvalidArgumentError("an unknown kind of entry");
}

absl::Status Replica::TakeEntry(LogEntry entry) {
  std::vector<LogEntry> updates;
  ReceivedLog::Outcome outcome = ReceivedLog::Outcome::kNothing;
  absl::Status taken = received_.TakeEntry(entry, place_.is_joining(), &updates, &outcome);
  if (outcome == ReceivedLog::Outcome::kBroken) {
    context_->host->OnBroken(absl::DataLossError(absl::StrCat(
        "the replica of shard ", shard_.id(), " could not apply entry ", entry.header.index,
        " of the log, which its head had applied: ", taken.message())));
  }
  if (outcome != ReceivedLog::Outcome::kApplied) return taken;
  if (has_follower()) {
    for (LogEntry& update : updates) Log(std::move(update));
    Log(std::move(entry));
  }
  if (!commit_.gating()) OnCommitted();
  return absl::OkStatus();
}

// The connection that the entries came over may have broken since. The predecessor may have nothing
// to send that would make another: all entries taken, and it waits for this word of what is
// committed.
void Replica::Acknowledge() {
  if (predecessor_.peer() == nullptr || predecessor_.stream() == 0) return;
  const proto::ReplicateAck ack{.shard = shard_.id(),
                                .stream = predecessor_.stream(),
                                .entry = predecessor_.received(),
                                .committed = committed()};
  if (predecessor_.connection() != 0) {
    context_->replies->SendBack(predecessor_.connection(), ack);
  } else {
    context_->host->SendTo(*predecessor_.peer(), ack, {});
  }
}

// ---- from the successor ----

void Replica::OnAck(const Peer& sender, van::PeerId connection, const proto::ReplicateAck& ack) {
  const bool mine = successor_.IsServer(sender);
  if (mine) successor_.NoteHeard(Now());
  if (ack.stream == 0) return TakeHandoverRequest(sender, connection);
  if (!mine) return;
  ReplicationSender& stream = successor_->sender();
  if (ack.stream != stream.stream()) return;
  // The successor has had other predecessors since this stream began, and forgotten what it had of
  // it. That it has not seen the beginning does not say so: it may have seen it since.
  if (ack.entry == 0 && ack.since > successor_.since() && stream.acked() > 0 &&
      !successor_.handing_over()) {
    BeginSuccessor(Peer(successor_.peer()), successor_.joining());
    return Pump();
  }
  const absl::Time now = Now();
  if (stream.TakeAck(ack.entry, ack.committed, now) == ReplicationSender::Outcome::kProgress) {
    successor_.NoteTaken(now);
  }
  if (successor_.HandoverIsOver()) {
    successor_.EndHandover();
    successor_.End();
    return CheckSuccessor();
  }
  const std::uint64_t committed = std::min(ack.committed, shard_.index());
  if (commit_.Advance(committed)) OnCommitted();
  Pump();
}

// A new head asks for the handover.
void Replica::TakeHandoverRequest(const Peer& sender, van::PeerId connection) {
  if (successor_.IsServer(sender) && successor_.handing_over()) {
    successor_->sender().Rewind();
    return Pump();
  }
  const bool asks_rightly = place_.head().has_value() && place_.head()->server() == sender.server();
  if (leads_ || !asks_rightly) return;
  proto::Replicate nothing{.shard = shard_.id(), .epoch = place_.epoch(), .stream = 0, .entry = 1};
  nothing.kind = proto::LogEntryKind::kHandoverEnd;
  context_->replies->SendBack(connection, nothing);
}

// ---- sending ----

void Replica::Pump() {
  if (!successor_.exists() || successor_.transfer_waits()) return;
  const Peer to = successor_.peer();
  successor_->Pump(Now(), [this, &to](LogEntry* entry) {
    entry->header.shard = shard_.id();
    entry->header.epoch = place_.epoch();
    return context_->host->SendTo(to, entry->header, entry->payload);
  });
  if (due() != absl::InfiniteFuture()) context_->host->ResendAt(due());
  EndTransferIfDue();
}

void Replica::ResendIfDue(absl::Time now) {
  waiting_.RefuseOverdue(now, [&]() -> std::string {
    if (!successor_.exists()) return "its next replica";
    const absl::Duration ago = absl::Trunc(now - successor_.heard(), absl::Milliseconds(1));
    return absl::StrCat("server ", successor_.peer().place.server_rank, ", last heard ",
                        runtime::FormatDuration(ago), " ago");
  });
  if (successor_.exists() && successor_->sender().RewindIfDue(now)) Pump();
}

absl::Time Replica::due() const {
  return successor_.exists() ? std::min(waiting_.first_deadline(), successor_->sender().due())
                             : waiting_.first_deadline();
}

void Replica::OnLinkUp(const proto::ShardOwner& place) {
  if (awaits_handover() && predecessor_.awaited()->place == place) Nudge();
  if (!successor_.exists() || !(successor_.peer().place == place)) return;
  successor_->sender().Rewind();
  BeginTransferIfDue();
  Pump();
}

void Replica::OnPeerDown(van::PeerId connection) {
  shard_.DropPeer(connection);
  waiting_.DropReader(connection);
  predecessor_.OnPeerDown(connection);
}

void Replica::Nudge() {
  if (awaits_handover()) {
    context_->host->SendTo(*predecessor_.awaited(), proto::ReplicateAck{.shard = shard_.id()}, {});
  }
  BeginTransferIfDue();
}

}  // namespace leeway::ps
