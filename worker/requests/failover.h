// The failover of requests: when the head of a shard changes, its requests go to the next head;
// when no server has the shard any more, they are lost.
//
// The next head has all that was settled. It is sent the rest in the order of the numbers: in BSP
// that is everything of clocks that have not closed, retained pushes included.
//
// Lives on the core's loop, in Requests.
#ifndef LEEWAY_WORKER_REQUESTS_FAILOVER_H_
#define LEEWAY_WORKER_REQUESTS_FAILOVER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "worker/links/servers.h"
#include "worker/operations/operation.h"
#include "worker/requests/request_sender.h"
#include "worker/requests/shard_queues.h"

namespace leeway::worker {

class Failover {
 public:
  // An operation that had a request to a shard that is lost.
  struct Lost {
    std::shared_ptr<Operation> operation;
    std::uint32_t shard = 0;
  };

  // All pointers outlive this.
  Failover(Servers* servers, ShardQueues* queues, RequestSender* sender, RequestTotals* totals)
      : servers_(servers), queues_(queues), sender_(sender), totals_(totals) {}

  // Takes the heads of shards from a map that `servers` has followed already, and sends open and
  // retained requests to new heads. Drops the requests to shards that are lost, and returns their
  // operations, oldest first.
  std::vector<Lost> Follow(const proto::ClusterMap& map);
  // UNAVAILABLE, which names the last head of the lost shard and says what helps.
  absl::Status LossOf(std::uint32_t shard) const;

 private:
  void Lead(std::uint32_t shard, Link* head, bool anew);
  void Lose(std::uint32_t shard, std::vector<std::pair<std::uint64_t, Lost>>* lost);

  Servers* const servers_;
  ShardQueues* const queues_;
  RequestSender* const sender_;
  RequestTotals* const totals_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_FAILOVER_H_
