#include "ps/data/replication_messages.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/chain.h"

namespace leeway::ps {

// PERMISSION_DENIED: it is not what it claims. UNAVAILABLE: the newest map here does not have it.
absl::StatusOr<Peer> ReplicationMessages::ServerFrom(const van::Identity& sender) const {
  if (sender.role != Role::kServer || sender.cluster != state_->cluster) {
    return absl::PermissionDeniedError(
        absl::StrCat("only servers of this cluster replicate shards; this peer is a ",
                     Name(sender.role), " of cluster ", sender.cluster));
  }
  if (const std::optional<Peer> server = state_->links.ServerOf(sender)) return *server;
  return absl::UnavailableError(
      absl::StrCat("node ", sender.node, " is no living server that this one knows"));
}

void ReplicationMessages::OnReplicate(van::PeerId peer, const van::Identity& sender,
                                      proto::Replicate header, Payload payload) {
  absl::StatusOr<Peer> server = ServerFrom(sender);
  if (absl::IsPermissionDenied(server.status())) {
    return state_->connections.Violation(peer, server.status());
  }
  Replica* replica = state_->replicas.Find(header.shard);
  if (!server.ok() || replica == nullptr) return;
  replica_heard_ = state_->loop->Now();
  const bool ready = replica->ready();
  EnsureOwned(&payload);
  replica->OnEntry(*server, peer, {std::move(header), std::move(payload)});
  if (!ready && replica->ready()) reports_->SayReady(*replica);
}

void ReplicationMessages::OnReplicateAck(van::PeerId peer, const van::Identity& sender,
                                         const proto::ReplicateAck& ack) {
  absl::StatusOr<Peer> server = ServerFrom(sender);
  if (absl::IsPermissionDenied(server.status())) {
    return state_->connections.Violation(peer, server.status());
  }
  if (!server.ok()) return;
  replica_heard_ = state_->loop->Now();
  Replica* const replica = state_->replicas.Find(ack.shard);
  if (replica == nullptr) return AnswerForeignRequest(*server, peer, ack);
  const std::uint32_t transfers = state_->replicas.context().transfers;
  replica->OnAck(*server, peer, ack);
  if (replica->gone()) state_->replicas.Erase(ack.shard);
  if (state_->replicas.context().transfers >= transfers) return;
  for (auto& [id, other] : state_->replicas.all()) other->Nudge();  // a transfer may begin
}

// A new head asks for the handover of a shard that has been handed over, or has never been here.
void ReplicationMessages::AnswerForeignRequest(const Peer& server, van::PeerId peer,
                                               const proto::ReplicateAck& ack) {
  if (ack.stream != 0) return;
  const proto::Chain chain = proto::ChainOf(*state_->map, ack.shard);
  if (chain.members.empty() || chain.members[0].server_rank != server.place.server_rank) return;
  proto::Replicate nothing{
      .shard = ack.shard, .epoch = state_->map->epoch, .stream = 0, .entry = 1};
  nothing.kind = proto::LogEntryKind::kHandoverEnd;
  state_->connections.Send(peer, nothing).IgnoreError();
}

void ReplicationMessages::CheckIsolation() {
  state_->replicas.context().isolated =
      !scheduler_heard_ && state_->loop->Now() - replica_heard_ > failure_timeout_;
}

}  // namespace leeway::ps
