#include "ps/data/state/workers.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

std::vector<proto::WorkerEntry> Workers::TakeMap(const proto::ClusterMap& map) {
  std::vector<proto::WorkerEntry> changes;
  for (const proto::WorkerEntry& entry : map.workers) {
    auto [it, is_new] = by_rank_.try_emplace(entry.rank);
    WorkerRecord& record = it->second;
    if (!is_new && record.entry == entry) continue;
    if (!is_new && record.entry.incarnation != entry.incarnation) {
      proto::WorkerEntry before = record.entry;
      if (before.state == proto::WorkerState::kAlive) {
        before.state = proto::WorkerState::kDead;
        changes.push_back(before);
      }
    }
    if (auto before = rank_of_node_.find(record.entry.node);
        before != rank_of_node_.end() && before->second == entry.rank) {
      rank_of_node_.erase(before);
    }
    rank_of_node_[entry.node] = entry.rank;
    record.entry = entry;
    record.tick_clock = 0;
    changes.push_back(entry);
  }
  return changes;
}

absl::StatusOr<WorkerRecord*> Workers::Find(const van::Identity& peer, std::uint64_t cluster) {
  if (peer.role != Role::kWorker) {
    return absl::PermissionDeniedError(
        absl::StrCat("only workers send requests to tables; this peer is a ", Name(peer.role)));
  }
  if (peer.cluster != cluster) {
    return absl::PermissionDeniedError(
        absl::StrCat("this worker belongs to another cluster: it says ", peer.cluster,
                     "; check LEEWAY_SCHEDULER"));
  }
  auto node = rank_of_node_.find(peer.node);
  if (node == rank_of_node_.end()) {
    return absl::UnavailableError(
        absl::StrCat("this server does not know node ", peer.node, " yet"));
  }
  WorkerRecord& record = by_rank_.find(node->second)->second;
  if (record.entry.incarnation != peer.incarnation) {
    return absl::UnavailableError(absl::StrCat("this server knows worker ", record.entry.rank,
                                               " from another start of its process"));
  }
  if (record.entry.state != proto::WorkerState::kAlive) {
    return absl::UnavailableError(absl::StrCat("worker ", record.entry.rank,
                                               record.entry.state == proto::WorkerState::kLeft
                                                   ? " has left the cluster"
                                                   : " was given up as dead"));
  }
  return &record;
}

absl::StatusOr<WorkerRecord*> Workers::Find(const van::Identity& peer, std::uint64_t cluster,
                                            std::uint32_t claimed_rank,
                                            std::uint64_t claimed_incarnation) {
  if (peer.role == Role::kWorker && claimed_incarnation != peer.incarnation) {
    return absl::PermissionDeniedError(
        "a request names another incarnation than the hello of its sender");
  }
  LEEWAY_ASSIGN_OR_RETURN(WorkerRecord * record, Find(peer, cluster));
  if (record->entry.rank != claimed_rank) {
    return absl::PermissionDeniedError(absl::StrCat(
        "worker ", record->entry.rank, " sent a request in the name of worker ", claimed_rank));
  }
  return record;
}

void Workers::ForgetTicks() {
  for (auto& [rank, record] : by_rank_) record.tick_clock = 0;
}

}  // namespace leeway::ps
