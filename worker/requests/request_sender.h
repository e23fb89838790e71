// The sender of requests: sends them to the heads of their shards by priority and within two
// limits, and sends them again until they are answered.
//
// The limits hold for each link. The push window (LEEWAY_PUSH_WINDOW_BYTES) bounds the bytes of
// pushes that the server has not answered; pulls and push-pulls do not count, because a server may
// hold them for long and must not stop the pushes behind them. The send pacer (van/send_pacer.h)
// bounds the bytes that the transport has taken and not sent, where nothing urgent can overtake
// them any more. Resends ignore the window: requests in flight may wait for their numbers.
//
// Lives on the core's loop, in Requests.
#ifndef LEEWAY_WORKER_REQUESTS_REQUEST_SENDER_H_
#define LEEWAY_WORKER_REQUESTS_REQUEST_SENDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "van/van.h"
#include "worker/links/servers.h"
#include "worker/operations/request.h"
#include "worker/requests/shard_queues.h"

namespace leeway::worker {

// The names by which servers know a worker.
struct WorkerId {
  std::uint64_t incarnation = 0;
  std::uint32_t rank = 0;
};

class RequestSender {
 public:
  // All pointers outlive this.
  RequestSender(const Config& config, runtime::Loop* loop, Servers* servers, ShardQueues* queues,
                RequestTotals* totals, WorkerId self);

  // Of the newest map; 0: there is none yet.
  std::uint64_t epoch() const { return epoch_; }
  void SetEpoch(std::uint64_t epoch) { epoch_ = epoch; }

  // Sends a new request to the head of its shard, or queues it there.
  void Submit(ShardQueue* queue, std::unique_ptr<Request> owned, absl::Time now);
  // Sends from the link's queue what the limits let be sent.
  void Pump(Link* link);
  void PumpAll();

  // The server refused the request for now (ABORTED, UNAVAILABLE): sends it at once if it was sent
  // in an older epoch, or after a back-off.
  void SendAgain(ShardQueue* queue, Request* request);
  absl::Duration resend_interval() const { return resend_interval_; }
  // Sends what waited for a decision on its table's codec or settings.
  void SendUndecided();
  void OnLinkUp(Link* link);
  void OnLinkDown(Link* link);
  // Ends resends.
  void Stop() { resend_.Clear(); }

  // Makes the payload, once.
  void Fill(Request* request);
  // Whether the scheduler is deciding on the codec or the settings that hold in the request's
  // clock. Such a request waits.
  static bool IsUndecided(const Request& request);

 private:
  // Whether the limits let the request be sent now.
  bool MaySend(Link* link, const Request& request) const;
  // Sends a numbered request that is in no queue.
  void SendNow(Link* link, Request* request, absl::Time now);
  proto::Request MessageFor(const Request& request, absl::Time now) const;
  absl::Status HandOver(Link* link, Request* request, absl::Time now);
  void PostReceive(const Link& link, Request* request);
  van::SendDone ReportTo(Link* link, std::uint64_t bytes);
  void TryLater(Request* request);
  bool IsDue(const Link& link, Request* request, absl::Time now, absl::Time* next);
  void ResendDue();

  const absl::Duration resend_interval_;
  const std::uint64_t window_bytes_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  ShardQueues* const queues_;
  RequestTotals* const totals_;
  const WorkerId self_;
  std::uint64_t epoch_ = 0;
  runtime::Timer resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_REQUEST_SENDER_H_
