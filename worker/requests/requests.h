// The requests of a worker to all shards, from the submission of their operation until they are
// settled.
//
// A request is settled when it has its final answer: its push is on every replica of the shard.
// ShardQueue keeps the requests of a shard in order and gives them numbers, RequestSender sends and
// resends them, RetainedPushes keeps those that were accepted provisionally, and Failover sends
// them to the next head of a shard. Requests itself admits and submits requests, takes answers, and
// ends requests early.
//
// Lives on the core's loop, in Core, from the welcome on.
#ifndef LEEWAY_WORKER_REQUESTS_REQUESTS_H_
#define LEEWAY_WORKER_REQUESTS_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/buffer.h"
#include "worker/links/servers.h"
#include "worker/operations/operation.h"
#include "worker/operations/request.h"
#include "worker/requests/failover.h"
#include "worker/requests/request_sender.h"
#include "worker/requests/retained_pushes.h"
#include "worker/requests/shard_queues.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

class Requests final : public Servers::ReplyListener {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // The answer to a request of an operation that has not ended. The request's payload is freed
    // already, or is a copy.
    virtual void OnAnswer(Request& request, const Link& link, const proto::Reply& reply,
                          std::span<runtime::Buffer> payload) = 0;
  };

  // All pointers outlive this.
  Requests(const Config& config, runtime::Loop* loop, Servers* servers, WorkerId self,
           Listener* listener);
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Failover::Follow and LossOf.
  std::vector<Failover::Lost> Follow(const proto::ClusterMap& map) { return failover_.Follow(map); }
  absl::Status LossOf(std::uint32_t shard) const { return failover_.LossOf(shard); }

  // Whether every piece has a shard to go to, and memory to wait in: UNAVAILABLE for a lost shard,
  // RESOURCE_EXHAUSTED where too many bytes are retained or abandoned.
  absl::Status Admit(const Sliced& sliced) const;
  // Queues the pieces and sends what may be sent. Admit has accepted them.
  void Submit(const std::shared_ptr<Operation>& operation, Pieces pieces,
              std::optional<double> learning_rate, int priority);
  // The operation ends without its answers; its memory is not read or written from here on. A push
  // of which nothing has a number yet is forgotten whole; all others are sent until they are
  // answered, because ticks and later requests may name their numbers.
  void Abandon(Operation& operation);
  // Forgets everything.
  void Clear();

  // Codecs or settings of tables have been decided on: sends what waited for that.
  void SendUndecided() { sender_.SendUndecided(); }

  void OnLinkUp(Link* link) { sender_.OnLinkUp(link); }
  void OnLinkDown(Link* link) { sender_.OnLinkDown(link); }
  void OnReply(Link* link, const proto::Reply& reply, std::span<runtime::Buffer> payload) override;
  void OnAcks(Link* link, const proto::PushAcks& acks) override;

  // Encodes all waiting pushes now, but for those of tables whose codec or settings are being
  // decided. The residuals of tables then account for every push that was submitted.
  void FillOpen();

  // Gives all waiting requests their numbers: the clock ends. Goes before WatermarksFor of the new
  // clock.
  void NumberAll() { queues_.NumberAll(); }
  std::vector<proto::ShardWatermark> WatermarksFor(const Link& link, std::uint64_t clock) const {
    return retained_.WatermarksFor(link, clock);
  }
  // As in RetainedPushes.
  void OnStable(const Link* link, std::uint64_t stable) { retained_.OnStable(*link, stable); }
  bool RetainsBefore(std::uint64_t clock, const Link& link) const {
    return retained_.HasBefore(clock, link);
  }
  bool RetainsBefore(std::uint64_t clock) const { return retained_.HasBefore(clock); }
  // The smallest clock of the requests that are not settled; the largest number where there is
  // none.
  std::uint64_t OldestClock() const;
  void ResendRetained(Link* link) { retained_.Resend(link); }
  absl::Status TakeRefusal() { return retained_.TakeRefusal(); }

  const RequestTotals& totals() const { return totals_; }
  // "3 of 8 requests are unanswered; waited for server 1 thread 0 (…) …"
  std::string DescribeWait(const Operation& operation) const;

 private:
  Request* Asked(const Link* link, const proto::RequestId& id);
  void OnFinalAnswer(ShardQueue* queue, const Link& link, const proto::Reply& reply,
                     std::span<runtime::Buffer> payload);
  void AskOn(ShardQueue* queue, Request* request, const Link& link, const proto::Reply& reply);
  void SetAside(Request* request, const Operation& operation);
  bool HasNumber(const Operation& operation) const;
  void Forget(const Operation& operation);
  std::string DescribeRequestWait(const ShardQueue& queue, const Request& request) const;

  const std::uint64_t retained_bytes_max_;
  // Abandoned pushes keep copies of their data; above this, new operations are refused.
  const std::uint64_t abandoned_bytes_max_;
  runtime::Loop* const loop_;
  const WorkerId self_;
  Listener* const listener_;
  RequestTotals totals_;  // before the queues, which use it
  ShardQueues queues_;
  RequestSender sender_;
  RetainedPushes retained_;
  Failover failover_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_REQUESTS_H_
