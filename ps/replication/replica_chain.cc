// The chain that a replica is in, and how it changes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replication/replica.h"
#include "runtime/base/mutants.h"

namespace leeway::ps {
namespace {

// Bytes per second: what is on its way may take as long as it does at that speed. One entry may be
// as large as a message.
constexpr double kSlowestLink = 4 << 20;

std::vector<Peer> PeersAt(const proto::ClusterMap& map,
                          const std::vector<proto::ShardOwner>& places) {
  std::vector<Peer> peers;
  for (const proto::ShardOwner& place : places) {
    Peer peer{.place = place};
    for (const proto::ServerEntry& server : map.servers) {
      if (server.rank == place.server_rank) peer.incarnation = server.incarnation;
    }
    peers.push_back(peer);
  }
  return peers;
}

bool IsAlive(const proto::ClusterMap& map, const Peer& peer) {
  return std::any_of(map.servers.begin(), map.servers.end(), [&](const auto& server) {
    return server.alive && server.rank == peer.place.server_rank &&
           server.incarnation == peer.incarnation;
  });
}

}  // namespace

void Replica::TakeMap(const proto::ClusterMap& map) {
  const proto::Chain chain = proto::ChainOf(map, shard_.id());
  const std::vector<Peer> members = PeersAt(map, chain.members);
  const std::vector<Peer> fillings = PeersAt(map, chain.filling);
  const bool changed = members != members_ || fillings != fillings_;
  const std::optional<Peer> old_head =
      members_.empty() ? std::nullopt : std::optional(members_.front());
  const Role before = role_;
  epoch_ = map.epoch;
  members_ = members;
  fillings_ = fillings;
  role_ = RoleInChain();
  if (before == Role::kFilling && is_member() && !filled_ &&
      !runtime::Planted<"membership-without-fill">()) {
    RefuseMembership();
  }
  was_replica_ = was_replica_ || role_ != Role::kHead;

  if (leads_ && role_ != Role::kHead &&
      !(runtime::Planted<"leads-on-off-the-chain">() && role_ == Role::kNone))
    StepDown();
  if (role_ != Role::kHead) {
    awaited_.reset();
  } else if (before != Role::kHead && old_head.has_value() &&
             !runtime::Planted<"handover-not-awaited">()) {
    awaited_ = old_head;
    awaited_since_ = epoch_;
  }
  if (awaited_.has_value() && !IsAlive(map, *awaited_) &&
      !runtime::Planted<"handover-of-the-dead-awaited">()) {
    awaited_.reset();
  }
  CheckPredecessor();
  CheckSuccessor();
  if (role_ == Role::kHead && !leads_ && !awaited_.has_value()) TakeLead();
  if (!changed) return;
  // What was sent before may have come to one who did not know yet from whom to take it.
  if (successor_ != nullptr && !runtime::Planted<"map-change-without-rewind">())
    successor_->sender().Rewind();
  Pump();
  Nudge();
}

// A replica is appended to its chain only after it has said that it is filled. Should a map say
// otherwise, what is here must be neither served nor handed on.
void Replica::RefuseMembership() {
  role_ = Role::kFilling;
  broken_ = true;
  context_->host->OnBroken(absl::DataLossError(absl::StrCat(
      "the map of epoch ", epoch_, " makes this server a member of the chain of shard ",
      shard_.id(), ", of which it has been given nothing or only a part")));
}

Replica::Role Replica::RoleInChain() const {
  const auto here = [this](const Peer& peer) { return peer.place == context_->place; };
  if (!members_.empty() && here(members_.front())) return Role::kHead;
  if (std::any_of(members_.begin(), members_.end(), here)) return Role::kFollower;
  if (std::any_of(fillings_.begin(), fillings_.end(), here)) return Role::kFilling;
  return Role::kNone;
}

// ---- the head ----

void Replica::TakeLead() {
  leads_ = true;
  stable_ = confirm_at_ = confirming_ = 0;
  closings_.clear();
  shard_.BecomeHead(/*inherited=*/was_replica_ &&
                    !runtime::Planted<"new-head-thinks-it-is-first">());
  if (!runtime::Planted<"handed-over-forgotten">()) shard_.TakeOver(std::exchange(handed_, {}));
  UpdateStable();
}

// What is not in the log goes to the new head behind what is. Nothing of it has been answered but
// provisionally, so that it is no loss if this replica does not live to hand it over.
void Replica::StepDown() {
  leads_ = false;
  if (!runtime::Planted<"answers-wait-on-after-step-down">()) ForgetWaiting();
  closings_.clear();
  std::vector<LogEntry> rest =
      shard_.StepDown(absl::AbortedError(absl::StrCat("epoch ", epoch_, " has begun")));
  if (members_.empty()) return;
  const Peer& head = members_.front();
  if (successor_ == nullptr || !(successor_->peer() == head)) {
    BeginSuccessor(head, /*to_filling=*/false);
  }
  for (LogEntry& entry : rest) successor_->Append(std::move(entry));
  handing_over_ = true;
  SetGating(false);
}

// The old head cannot be reached, but the scheduler has it from that one that it has stepped down.
// Then what it had left is no more missed than if it had died.
void Replica::OnLeadNow(const proto::LeadNow& lead) {
  if (!awaited_.has_value()) return;
  const bool other = awaited_->place.server_rank != lead.from;
  if (other && !runtime::Planted<"lead-now-of-another-server">()) return;
  if (lead.epoch < awaited_since_ && !runtime::Planted<"lead-now-of-another-handover">())
    return;  // of another handover
  awaited_.reset();
  CheckPredecessor();
  TakeLead();
}

// ---- neighbours ----

void Replica::CheckPredecessor() {
  std::optional<Peer> wanted = awaited_;
  if (role_ == Role::kFilling) {
    wanted = members_.empty() ? std::nullopt : std::optional(members_.back());
  } else if (role_ == Role::kFollower) {
    wanted = *std::prev(std::find_if(members_.begin(), members_.end(), [this](const Peer& peer) {
      return peer.place == context_->place;
    }));
  }
  if (predecessor_.has_value() && wanted == predecessor_->peer) return;
  if (!predecessor_.has_value() && !wanted.has_value()) return;
  predecessor_.reset();
  if (!runtime::Planted<"receiver-kept-for-new-predecessor">()) receiver_.Forget();
  if (!runtime::Planted<"updates-kept-for-new-predecessor">()) updates_.clear();
  if (!runtime::Planted<"handed-kept-for-new-predecessor">()) handed_.clear();
  if (!runtime::Planted<"filled-kept-for-new-predecessor">()) fill_begun_ = filled_ = false;
  if (!wanted.has_value()) return;
  predecessor_ = Predecessor{.peer = *wanted, .since = epoch_};
  if (stray_.has_value() && stray_->sender == wanted->server()) {
    context_->host->SendBack(
        stray_->connection,
        proto::ReplicateAck{.shard = shard_.id(), .stream = stray_->stream, .since = epoch_});
  }
  stray_.reset();
}

void Replica::CheckSuccessor() {
  if (handing_over_) {
    if (!members_.empty() && successor_->peer() == members_.front()) return;
    handing_over_ = false;  // it is head no more: nobody waits for that
    EndSuccessor();
  }
  std::optional<Peer> wanted;
  bool to_filling = false;
  const auto here = std::find_if(members_.begin(), members_.end(), [this](const Peer& peer) {
    return peer.place == context_->place;
  });
  if (here != members_.end()) {
    to_filling = std::next(here) == members_.end();
    if (!to_filling) wanted = *std::next(here);
    if (to_filling && !fillings_.empty()) wanted = fillings_.front();
  }
  if (successor_ != nullptr && wanted == successor_->peer() && (to_filling_ || !to_filling)) {
    if (to_filling_ && !to_filling) SetGating(true);
    to_filling_ = to_filling;
    return;
  }
  if (!wanted.has_value()) {
    EndSuccessor();
    SetGating(false);
  } else {
    BeginSuccessor(*wanted, to_filling);
  }
}

void Replica::BeginSuccessor(const Peer& peer, bool to_filling) {
  EndSuccessor();
  // Greater than any before it, of this start of the server.
  const std::uint64_t stream =
      (epoch_ << 24) +
      ((runtime::Planted<"stream-number-again">() ? 1 : ++context_->streams) & 0xffffff);
  successor_ = std::make_unique<Successor>(peer, stream, context_->limits, &context_->log);
  follower_heard_ = link_good_ = context_->shards->loop->Now();
  successor_since_ = epoch_;
  to_filling_ = fill_waits_ = to_filling;
  SetGating(!to_filling && !runtime::Planted<"new-follower-not-waited-for">());
  if (to_filling) return BeginFillIfDue();
  if (runtime::Planted<"uncommitted-not-sent-to-new-follower">()) return;
  for (const LogEntry& entry : uncommitted_.entries()) successor_->Append(entry);
}

void Replica::EndSuccessor() {
  if (std::exchange(filling_, false) && !runtime::Planted<"fills-not-given-back">())
    --context_->fills;
  fill_waits_ = to_filling_ = false;
  successor_.reset();
}

// It waits for nothing of the one behind; or others are filled first.
bool Replica::SendsNothing() const {
  if (successor_ == nullptr) return true;
  if (fill_waits_) return context_->fills >= kFillsAtOnce;
  return successor_->CaughtUp() && successor_->sender().all_acked();
}

std::optional<proto::LinkReport> Replica::LookAtLink(absl::Time now, absl::Duration patience) {
  if (SendsNothing() && !(successor_ != nullptr && runtime::Planted<"idle-link-is-dead">())) {
    link_good_ = now;
  }
  if (now - link_good_ <= patience) return std::nullopt;
  const auto on_its_way = static_cast<double>(successor_->sender().in_flight_bytes());
  if (now - link_good_ <= patience + absl::Seconds(on_its_way / kSlowestLink)) return std::nullopt;
  return proto::LinkReport{.epoch = epoch_,
                           .shard = shard_.id(),
                           .server = successor_->peer().place.server_rank,
                           .handover = handing_over_};
}

// As long as nobody has to follow, all is committed that is here.
void Replica::SetGating(bool gating) {
  if (gating && !gating_ && !runtime::Planted<"committed-goes-on-ungated">())
    committed_ = shard_.index();
  gating_ = gating;
  OnCommitted();
}

// ---- fills ----

// Not before the other one is there: from the beginning of a fill on, what is pushed is kept for
// it.
void Replica::BeginFillIfDue() {
  if (!fill_waits_ ||
      (context_->fills >= kFillsAtOnce && !runtime::Planted<"fills-at-once-unlimited">()))
    return;
  if (!context_->host->Reaches(successor_->peer())) return;
  fill_waits_ = false;
  filling_ = true;
  ++context_->fills;
  successor_->Fill(shard_.FillBegin(), shard_.Freeze());
  Pump();
}

// From here on the new replica counts: nothing is committed that it does not have. What has been
// committed before, it is sent before the end of the fill.
void Replica::EndFillIfDue() {
  if (!filling_ || !successor_->CaughtUp()) return;
  if (shard_.HoldsUnkept() && !runtime::Planted<"fill-ends-with-firm-pushes">()) return;
  filling_ = false;
  --context_->fills;
  LogEntry end;
  end.header.kind = proto::LogEntryKind::kFillEnd;
  end.header.index = shard_.index();
  successor_->Append(std::move(end));
  if (!runtime::Planted<"fill-not-waited-for">()) SetGating(true);
  Pump();
}

}  // namespace leeway::ps
