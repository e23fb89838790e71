#include "ps/data/requests.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

void Requests::OnRequest(const van::Identity& sender, Inbound inbound) {
  ++state_->counters.requests;
  if (sender.role == Role::kReader) return OnRead(sender, std::move(inbound));
  const proto::RequestId& id = inbound.request.id;
  const absl::StatusOr<WorkerRecord*> worker =
      WorkerFor(sender, id.worker, id.incarnation, inbound.request.epoch);
  if (absl::IsPermissionDenied(worker.status()))
    return state_->connections.Violation(inbound.peer, worker.status());
  if (!worker.ok()) return state_->connections.Refuse(inbound, worker.status());
  TakeRequest(*worker, std::move(inbound));
}

// No map knows of readers, and each process that joins is told the cluster's id: what they may take
// of memory (Replies) and of time (ReaderTurns) is limited, as that of unknown peers.
absl::Status Requests::CheckReader(const van::Identity& reader,
                                   const proto::Request& request) const {
  if (reader.cluster != state_->cluster) {
    return absl::PermissionDeniedError(
        absl::StrCat("this reader belongs to another cluster: it says ", reader.cluster,
                     "; check LEEWAY_SCHEDULER"));
  }
  if (request.id.incarnation != reader.incarnation) {
    return absl::PermissionDeniedError(
        "a request names another incarnation than the hello of its sender");
  }
  if (request.op != proto::Op::kPull) {
    return absl::PermissionDeniedError("a reader (LEEWAY_READ_ONLY=1) has sent a push");
  }
  return absl::OkStatus();
}

void Requests::OnRead(const van::Identity& reader, Inbound inbound) {
  const absl::Status allowed = CheckReader(reader, inbound.request);
  if (!allowed.ok()) return state_->connections.Violation(inbound.peer, allowed);
  if (absl::Status room = reader_turns_.Check(inbound); !room.ok())
    return state_->connections.Refuse(inbound, room);
  reader_turns_.Add(std::move(inbound));
}

void Requests::ServeReader(Inbound inbound) {
  const absl::Status room = state_->connections.replies().CheckReader(inbound.peer);
  if (absl::IsPermissionDenied(room)) {
    reader_turns_.DropPeer(inbound.peer);
    return state_->connections.Violation(inbound.peer, room);
  }
  if (!room.ok()) return state_->connections.Refuse(inbound, room);
  if (absl::Status same = CheckEpoch(inbound.request.epoch); !same.ok()) {
    return state_->connections.Refuse(inbound, same);
  }
  const std::uint32_t shard = inbound.request.id.shard;
  Replica* const replica = state_->replicas.Find(shard);
  const bool there = replica != nullptr && replica->is_head();
  if (!there) return state_->connections.Refuse(inbound, NotHere(shard));
  if (absl::Status ready = replica->CanTake(inbound.request); !ready.ok()) {
    return state_->connections.Refuse(inbound, ready);
  }
  replica->shard().Read(std::move(inbound));
}

void Requests::OnPushBatch(van::PeerId peer, const van::Identity& sender,
                           const proto::PushBatch& batch, const runtime::Buffer& values) {
  state_->counters.requests += batch.pushes.size();
  const absl::StatusOr<WorkerRecord*> worker =
      WorkerFor(sender, batch.worker, batch.incarnation, batch.epoch);
  if (absl::IsPermissionDenied(worker.status()))
    return state_->connections.Violation(peer, worker.status());
  ForEachPush(peer, batch, values, [&](Inbound inbound) {
    worker.ok() ? TakeRequest(*worker, std::move(inbound))
                : state_->connections.Refuse(inbound, worker.status());
  });
}

// The worker that a request is of, if its requests may be admitted at all.
absl::StatusOr<WorkerRecord*> Requests::WorkerFor(const van::Identity& sender, std::uint32_t rank,
                                                  std::uint64_t incarnation, std::uint64_t epoch) {
  absl::StatusOr<WorkerRecord*> worker =
      state_->workers.Find(sender, state_->cluster, rank, incarnation);
  if (!worker.ok()) return worker;
  LEEWAY_RETURN_IF_ERROR(CheckEpoch(epoch));
  return worker;
}

void Requests::TakeRequest(WorkerRecord* worker, Inbound inbound) {
  const proto::RequestId& id = inbound.request.id;
  Replica* replica = state_->replicas.Find(id.shard);
  if (replica == nullptr || !replica->is_head())
    return state_->connections.Refuse(inbound, NotHere(id.shard));
  if (absl::Status ready = replica->CanTake(inbound.request); !ready.ok()) {
    return state_->connections.Refuse(inbound, ready);
  }
  if (replica->shard().TakeRequest(std::move(inbound))) {
    ticks_->AcknowledgeIfDue(worker);
    replica->UpdateStable();
  }
}

absl::Status Requests::NotHere(std::uint32_t shard) const {
  if (shard < state_->map->owners.size() &&
      state_->map->owners[shard].server_rank == proto::kNoServer) {
    return absl::UnavailableError(
        absl::StrCat("shard ", shard,
                     " is lost: all servers that held it are gone; what it held can come from "
                     "a checkpoint only (LEEWAY_REPLICATION keeps more than one replica)"));
  }
  return absl::InvalidArgumentError(absl::StrCat("shard ", shard, " does not belong to thread ",
                                                 state_->thread, " of server ", state_->server_rank,
                                                 " in epoch ", state_->map->epoch));
}

absl::Status Requests::CheckEpoch(std::uint64_t epoch) const {
  if (state_->map->epoch == 0) {
    return absl::UnavailableError("this server does not serve before the cluster is complete");
  }
  if (epoch == state_->map->epoch) {
    return absl::OkStatus();
  }
  const std::string text = absl::StrCat("the request is of epoch ", epoch,
                                        ", this server is in epoch ", state_->map->epoch);
  return epoch < state_->map->epoch ? absl::AbortedError(text) : absl::UnavailableError(text);
}

}  // namespace leeway::ps
