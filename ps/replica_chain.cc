// The chain that a replica is in, and how it changes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/replica.h"

namespace leeway::ps {
namespace {

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
  if (before == Role::kFilling && is_member() && !filled_) RefuseMembership();
  was_replica_ = was_replica_ || role_ != Role::kHead;

  if (leads_ && role_ != Role::kHead) StepDown();
  if (role_ != Role::kHead) {
    awaited_.reset();
  } else if (before != Role::kHead && old_head.has_value()) {
    awaited_ = old_head;
  }
  if (awaited_.has_value() && !IsAlive(map, *awaited_)) awaited_.reset();
  LookUpstream();
  LookDownstream();
  if (role_ == Role::kHead && !leads_ && !awaited_.has_value()) TakeLead();
  if (!changed) return;
  // What was sent before may have come to one who did not know yet from whom to take it.
  if (downstream_ != nullptr) downstream_->outbox().Rewind();
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
  stable_ = 0;
  closings_.clear();
  shard_.BecomeHead(/*inherited=*/was_replica_);
  shard_.TakeOver(std::exchange(handed_, {}));
  UpdateStable();
}

// What is not in the log goes to the new head behind what is. Nothing of it has been answered but
// provisionally, so that it is no loss if this replica does not live to hand it over.
void Replica::StepDown() {
  leads_ = false;
  ForgetWaiting();
  closings_.clear();
  std::vector<Item> rest =
      shard_.StepDown(absl::AbortedError(absl::StrCat("epoch ", epoch_, " has begun")));
  if (members_.empty()) return;
  const Peer& head = members_.front();
  if (downstream_ == nullptr || !(downstream_->peer() == head)) {
    BeginDownstream(head, /*to_filling=*/false);
  }
  for (Item& item : rest) downstream_->Append(std::move(item));
  handing_over_ = true;
  SetGating(false);
}

// ---- neighbours ----

void Replica::LookUpstream() {
  std::optional<Peer> wanted = awaited_;
  if (role_ == Role::kFilling) {
    wanted = members_.empty() ? std::nullopt : std::optional(members_.back());
  } else if (role_ == Role::kFollower) {
    wanted = *std::prev(std::find_if(members_.begin(), members_.end(), [this](const Peer& peer) {
      return peer.place == context_->place;
    }));
  }
  if (upstream_.has_value() && wanted == upstream_->peer) return;
  if (!upstream_.has_value() && !wanted.has_value()) return;
  upstream_.reset();
  inbox_.Forget();
  updates_.clear();
  handed_.clear();
  fill_begun_ = filled_ = false;
  if (!wanted.has_value()) return;
  upstream_ = Upstream{.peer = *wanted, .since = epoch_};
  if (stray_.has_value() && stray_->sender == wanted->server()) {
    context_->host->SendBack(
        stray_->connection,
        proto::ReplicateAck{.shard = shard_.id(), .stream = stray_->stream, .since = epoch_});
  }
  stray_.reset();
}

void Replica::LookDownstream() {
  if (handing_over_) {
    if (!members_.empty() && downstream_->peer() == members_.front()) return;
    handing_over_ = false;  // it is head no more: nobody waits for that
    EndDownstream();
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
  if (downstream_ != nullptr && wanted == downstream_->peer() && (to_filling_ || !to_filling)) {
    if (to_filling_ && !to_filling) SetGating(true);
    to_filling_ = to_filling;
    return;
  }
  if (!wanted.has_value()) {
    EndDownstream();
    SetGating(false);
  } else {
    BeginDownstream(*wanted, to_filling);
  }
}

void Replica::BeginDownstream(const Peer& peer, bool to_filling) {
  EndDownstream();
  // Greater than any before it, of this start of the server.
  const std::uint64_t stream = (epoch_ << 24) + (++context_->streams & 0xffffff);
  downstream_ = std::make_unique<Downstream>(peer, stream, context_->limits, &context_->log);
  follower_heard_ = context_->shards->loop->Now();
  downstream_since_ = epoch_;
  to_filling_ = fill_waits_ = to_filling;
  SetGating(!to_filling);
  if (to_filling) return BeginFillIfDue();
  for (const Item& item : uncommitted_.items()) downstream_->Append(item);
}

void Replica::EndDownstream() {
  if (std::exchange(filling_, false)) --context_->fills;
  fill_waits_ = to_filling_ = false;
  downstream_.reset();
}

// As long as nobody has to follow, all is committed that is here.
void Replica::SetGating(bool gating) {
  if (gating && !gating_) committed_ = shard_.index();
  gating_ = gating;
  OnCommitted();
}

// ---- fills ----

void Replica::BeginFillIfDue() {
  if (!fill_waits_ || context_->fills >= kFillsAtOnce) return;
  fill_waits_ = false;
  filling_ = true;
  ++context_->fills;
  downstream_->Fill(shard_.FillBegin(), shard_.Freeze());
  Pump();
}

// From here on the new replica counts: nothing is committed that it does not have. What has been
// committed before, it is sent before the end of the fill.
void Replica::EndFillIfDue() {
  if (!filling_ || !downstream_->CaughtUp() || shard_.HoldsFirmly()) return;
  filling_ = false;
  --context_->fills;
  Item end;
  end.header.kind = proto::ReplicaItem::kFillEnd;
  end.header.index = shard_.index();
  downstream_->Append(std::move(end));
  if (!Is(context_->shards->mutant, Mutant::kFillNotWaitedFor)) SetGating(true);
  Pump();
}

}  // namespace leeway::ps
