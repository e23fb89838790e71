// Requests to shards: numbered, queued by priority, sent within limits, resent until answered.
//
// Each shard has a lane: its requests in the order of their numbers, from the oldest unanswered
// one on. Servers admit a shard's requests strictly in that order, so a number once given is asked
// for until it is answered or its server is dead; nothing here ever skips one.
#ifndef LEEWAY_WORKER_REQUESTS_H_
#define LEEWAY_WORKER_REQUESTS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages.h"
#include "runtime/loop.h"
#include "worker/alarm.h"
#include "worker/request.h"
#include "worker/servers.h"

namespace leeway::worker {

class Requests {
 public:
  struct Self {
    std::uint64_t incarnation = 0;
    std::uint32_t rank = 0;
  };
  // A request of an operation was answered for good. Its payload is let go of already.
  using OnAnswer = std::function<void(Request& request, const Link& link, const proto::Reply& reply,
                                      std::span<runtime::Buffer> payload)>;

  Requests(const Config& config, runtime::Loop* loop, Servers* servers, Self self,
           OnAnswer on_answer);

  // Takes the shards' owners from the map; Servers has followed it already.
  void Follow(const proto::ClusterMap& map);

  // Whether every piece has a living server to go to, and memory to wait in.
  absl::Status Admit(const std::vector<Piece>& pieces) const;
  // Numbers the pieces and sends what may be sent. Admit said yes.
  void Submit(const std::shared_ptr<Operation>& operation, std::vector<Piece> pieces,
              std::optional<double> learning_rate, int priority);
  // The operation ends without its answers; its memory is not used from here on.
  void Abandon(const Operation& operation);
  // Forgets what was asked of a dead server, whose operations are returned, oldest first.
  std::vector<std::shared_ptr<Operation>> DropServer(std::uint32_t server_rank);
  // Forgets everything.
  void Clear();

  void OnLinkUp(Link* link);
  void OnLinkDown(Link* link);
  void OnReply(Link* link, const proto::Reply& reply, std::span<runtime::Buffer> payload);

  std::uint64_t LastSequence(std::uint32_t shard) const { return lanes_[shard].next - 1; }
  std::size_t unanswered_pushes() const { return unanswered_pushes_; }
  std::uint64_t resends() const { return resends_; }
  // "3 of 8 requests are unanswered; waited for server 1 thread 0 (…) …"
  std::string DescribeWait(const Operation& operation) const;

 private:
  struct Lane {
    Link* link = nullptr;
    std::uint64_t next = 1;
    // Numbers next − size … next − 1; null where answered. The front is never null.
    std::deque<std::unique_ptr<Request>> open;
  };

  void Enqueue(Lane& lane, Request* request);
  void Withdraw(Lane& lane, Request* request);
  void Pump(Link* link);
  void SendNow(Link* link, Request* request);
  van::SendDone Tracked(Link* link);
  proto::Request MessageFor(const Request& request) const;
  void TryLater(Request* request);
  void ResendDue();
  std::unique_ptr<Request> TakeOut(Lane& lane, std::uint64_t sequence);
  void Retire(const Request& request);
  template <class F>
  void ForEachOpen(F&& f);

  const absl::Duration resend_interval_;
  const std::uint64_t window_bytes_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  const Self self_;
  const OnAnswer on_answer_;
  std::uint64_t epoch_ = 0;
  std::vector<Lane> lanes_;  // by shard
  std::uint64_t next_order_ = 1;
  std::uint64_t resends_ = 0;
  std::size_t unanswered_pushes_ = 0;
  std::uint64_t abandoned_bytes_ = 0;
  Alarm resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_H_
