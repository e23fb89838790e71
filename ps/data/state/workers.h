// The workers as one data thread knows them from the newest map, and the tick of each that has not
// been acknowledged. Lives on the thread's loop.
#ifndef LEEWAY_PS_DATA_STATE_WORKERS_H_
#define LEEWAY_PS_DATA_STATE_WORKERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::ps {

// The roles that pull from servers.
constexpr bool IsClient(Role role) { return role == Role::kWorker || role == Role::kReader; }

struct WorkerRecord {
  proto::WorkerEntry entry;
  // The newest tick that has not been acknowledged, since not all shards count it yet; 0: none.
  std::uint64_t tick_clock = 0;
  van::PeerId tick_peer = 0;
};

class Workers {
 public:
  // Takes a map. Returns the entries that have changed, in the order in which shards take them: of
  // a rank that starts anew, first the death of the process that had it before.
  std::vector<proto::WorkerEntry> TakeMap(const proto::ClusterMap& map);

  // The living worker that a peer is.
  // PERMISSION_DENIED: the peer is not what it claims, and has to go. UNAVAILABLE: this server
  // has not (or no longer) heard of it as living, and may have another view with the next map.
  absl::StatusOr<WorkerRecord*> Find(const van::Identity& peer, std::uint64_t cluster);
  absl::StatusOr<WorkerRecord*> Find(const van::Identity& peer, std::uint64_t cluster,
                                     std::uint32_t claimed_rank, std::uint64_t claimed_incarnation);

  // Their ticks are to be sent again.
  void ForgetTicks();

 private:
  std::map<std::uint32_t, WorkerRecord> by_rank_;
  std::map<std::uint32_t, std::uint32_t> rank_of_node_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATE_WORKERS_H_
