// The workers as one data thread knows them: who they are by the newest map, which of their
// requests have been admitted, and the tick that still waits for some.
#ifndef LEEWAY_PS_WORKERS_H_
#define LEEWAY_PS_WORKERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages.h"
#include "ps/stream.h"
#include "van/van.h"

namespace leeway::ps {

// The newest tick that cannot count yet. Ticks are cumulative, so one a worker is enough.
struct PendingTick {
  van::PeerId peer = 0;
  std::uint64_t clock = 0;
  std::vector<proto::ShardMark> unmet;
};

struct WorkerRecord {
  proto::WorkerEntry entry;
  std::map<std::uint32_t, Stream> streams;  // by shard
  std::optional<PendingTick> tick;

  Stream& StreamOf(std::uint32_t shard, EarlyBudget* budget) {
    return streams.try_emplace(shard, budget).first->second;
  }
  // Strikes off the marks that have been reached; true once there are none left.
  bool TickIsDue();
};

class Workers {
 public:
  // What a map changes, in the order to be told: of a rank that starts anew, first the death of
  // who had it before.
  std::vector<proto::WorkerEntry> TakeMap(const proto::ClusterMap& map);

  // The living worker that a peer is.
  // PERMISSION_DENIED: the peer is not what it claims, and has to go. UNAVAILABLE: this server
  // has not (or no longer) heard of it as living, and may have another view with the next map.
  absl::StatusOr<WorkerRecord*> Find(const van::Identity& peer, std::uint64_t cluster);
  absl::StatusOr<WorkerRecord*> Find(const van::Identity& peer, std::uint64_t cluster,
                                     std::uint32_t claimed_rank, std::uint64_t claimed_incarnation);

  // Requests that wait and were sent by a peer that is gone: it will send them again.
  void DropPeer(van::PeerId peer);
  // All requests that wait, by worker, shard and number; and all ticks, dropped.
  std::vector<Inbound> TakeWaiting();

  EarlyBudget* budget() { return &budget_; }

 private:
  EarlyBudget budget_;  // before the streams that point to it
  std::map<std::uint32_t, WorkerRecord> by_rank_;
  std::map<std::uint32_t, std::uint32_t> rank_of_node_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_WORKERS_H_
