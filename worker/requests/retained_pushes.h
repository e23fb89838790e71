// The pushes that servers have accepted provisionally, and that the worker retains until their
// clock is stable.
//
// Until its clock closes such a push is only at the head of its shard and here. Its operation has
// completed, so its data is copied out of the user's memory. The worker's ticks name it by number
// (watermarks); it is sent again where it may be missing, and freed once all replicas of its shard
// have it.
//
// The requests themselves stay in their shard's queue, in state kRetained or, to be sent again, in
// any other. Lives on the core's loop, in Requests.
#ifndef LEEWAY_WORKER_REQUESTS_RETAINED_PUSHES_H_
#define LEEWAY_WORKER_REQUESTS_RETAINED_PUSHES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "worker/links/servers.h"
#include "worker/operations/request.h"
#include "worker/requests/request_sender.h"
#include "worker/requests/shard_queues.h"

namespace leeway::worker {

class RetainedPushes {
 public:
  // All pointers outlive this.
  RetainedPushes(Servers* servers, ShardQueues* queues, RequestSender* sender,
                 RequestTotals* totals)
      : servers_(servers), queues_(queues), sender_(sender), totals_(totals) {}

  // Retains a withdrawn push that its server has accepted provisionally. True if that was new and
  // its operation, if it has one, is to be answered.
  bool Retain(Request* request);
  // The last unsettled push before `clock` to each shard that the link leads to, by class.
  std::vector<proto::ShardWatermark> WatermarksFor(const Link& link, std::uint64_t clock) const;
  // Clocks below `stable` have closed on all replicas of the shards that the link leads to: frees
  // their pushes.
  void OnStable(const Link& link, std::uint64_t stable);
  // Whether pushes of clocks below `clock` are retained for that link, or for any.
  bool HasBefore(std::uint64_t clock, const Link& link) const;
  bool HasBefore(std::uint64_t clock) const;
  // Sends again what is retained for the link: its server seems not to have got it.
  void Resend(Link* link);

  // A later head has refused a push that had been accepted.
  void OnRefused(const Request& request, const Link& link, const absl::Status& why);
  // The first refusal since the last call, DATA_LOSS.
  absl::Status TakeRefusal() { return std::exchange(refusal_, absl::OkStatus()); }

 private:
  Servers* const servers_;
  ShardQueues* const queues_;
  RequestSender* const sender_;
  RequestTotals* const totals_;
  absl::Status refusal_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_RETAINED_PUSHES_H_
