// Requests to shards: numbered, queued by priority, sent within limits, resent until answered, and
// sent anew to the next head of a shard that has lost or given up its head.
//
// Each shard has a queue: its requests in the order of their numbers, from the oldest one on that
// is not settled, and those that wait for a number (requests_order.cc). A request is of one of two
// classes: of BSP tables, whose pushes are held until their clock closes, or of the others. A
// server admits the requests of each class in order; each one says which one before it is not
// settled (`after`), so that what was settled leaves no hole.
//
// Settled is a request that was answered for good: what it pushed is on every replica of its shard.
// A push that was answered provisionally is retained: its operation has completed, its data stays
// here until the shard's head says that its clock has closed, and goes to the next head if there
// is one before that.
#ifndef LEEWAY_WORKER_REQUESTS_REQUESTS_H_
#define LEEWAY_WORKER_REQUESTS_REQUESTS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "worker/requests/request.h"
#include "worker/requests/retained_memory.h"
#include "worker/requests/servers.h"

namespace leeway::worker {

class Requests {
 public:
  struct Self {
    std::uint64_t incarnation = 0;
    std::uint32_t rank = 0;
  };
  // The answer to a request of an operation. Its payload is let go of already, or is a copy.
  using OnAnswer = std::function<void(Request& request, const Link& link, const proto::Reply& reply,
                                      std::span<runtime::Buffer> payload)>;

  Requests(const Config& config, runtime::Loop* loop, Servers* servers, Self self,
           OnAnswer on_answer);

  // Takes the shards' heads from the map; Servers has followed it already. What is open or retained
  // goes to the new heads at once. Returned, oldest first, are operations that had requests to
  // shards which nobody holds any more: these requests are forgotten.
  struct Lost {
    std::shared_ptr<Operation> operation;
    std::uint32_t shard = 0;
  };
  std::vector<Lost> Follow(const proto::ClusterMap& map);
  // Why nothing can be asked of a shard that nobody holds.
  absl::Status LossOf(std::uint32_t shard) const;

  // Whether every piece has somewhere to go, and memory to wait in.
  absl::Status Admit(const Sliced& sliced) const;
  // Queues the pieces and sends what may be sent. Admit said yes.
  void Submit(const std::shared_ptr<Operation>& operation, Pieces pieces,
              std::optional<double> learning_rate, int priority);
  // The operation ends without its answers; its memory is not used from here on. A push of which
  // nothing has a number yet is forgotten whole; all others are sent until they are answered.
  void Abandon(Operation& operation);
  // Forgets everything.
  void Clear();

  // Codecs or settings of tables have been decided on: what waited for that is sent.
  void SendUndecided();

  void OnLinkUp(Link* link);
  void OnLinkDown(Link* link);
  void OnReply(Link* link, const proto::Reply& reply, std::span<runtime::Buffer> payload);
  void OnAcks(Link* link, const proto::PushAcks& acks);

  // Encodes all that waits, now, as if it left; what waits for a decision on its table is left as
  // it is. What is kept of tables then has to do with every push that was submitted.
  void FillOpen();

  // Gives all that waits its number: the clock ends. Before WatermarksFor of the new one.
  void NumberAll();
  // What a tick to `clock` has to say of the link's shards: the last push to each, by class, that
  // was made before it and is not settled.
  std::vector<proto::ShardWatermark> WatermarksFor(const Link& link, std::uint64_t clock) const;
  // Clocks below `stable` have closed on all replicas of the shards that the link leads to.
  void OnStable(const Link* link, std::uint64_t stable);
  // Whether pushes of clocks below `clock` are retained for that link, or for any.
  bool RetainsBefore(std::uint64_t clock, const Link& link) const;
  bool RetainsBefore(std::uint64_t clock) const;
  // The link's server seems not to have got what was retained for it.
  void ResendRetained(Link* link);
  // A push that was accepted provisionally was refused by a later head; told once.
  absl::Status TakeRefusal() { return std::exchange(refusal_, absl::OkStatus()); }

  std::size_t unanswered_pushes() const { return unanswered_pushes_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }
  std::uint64_t resends() const { return resends_; }
  std::uint64_t pushed_bytes() const { return pushed_bytes_; }  // values, as they leave
  // "3 of 8 requests are unanswered; waited for server 1 thread 0 (…) …"
  std::string DescribeWait(const Operation& operation);

 private:
  // What touches the same elements lies side by side, in the order of submission.
  struct Place {
    std::uint32_t table = 0;
    std::uint64_t block = 0;  // 0 where every request may touch any element
    std::uint64_t order = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct ShardQueue {
    Link* link = nullptr;  // to the head; where `lost`: to the last one there was
    std::uint64_t generation = 0;
    bool lost = false;
    std::uint64_t next = 1;
    // Numbers next − size … next − 1; null where settled. The front is never null.
    std::deque<std::unique_ptr<Request>> open;
    std::array<Request*, 2> last = {};  // by class; linked with those before
    // Not sent yet and without a number (requests_order.cc). All stand in the queue.
    std::map<Place, std::unique_ptr<Request>> unnumbered;
  };

  void Lead(std::uint32_t shard, ShardQueue& queue, Link* head, bool anew);
  void Lose(std::uint32_t shard, ShardQueue& queue,
            std::vector<std::pair<std::uint64_t, Lost>>* lost);
  // Order (requests_order.cc).
  Request* Number(ShardQueue& queue, std::unique_ptr<Request> owned);
  bool NumberQueued(Request* request);
  void NumberAll(Link* link);
  static Place PlaceOf(const Request& request);
  void Raise(ShardQueue& queue, Request* request, int priority);
  bool Hurry(ShardQueue& queue, const Request& request);
  void Enqueue(ShardQueue& queue, Request* request);
  void EnqueueNew(ShardQueue& queue, std::unique_ptr<Request> owned);
  // From the newest to the oldest, so that each finds the urgency of those after it.
  template <class Which>
  void EnqueueAll(ShardQueue& queue, Which&& which);
  void Withdraw(ShardQueue& queue, Request* request);
  bool MaySend(Link* link, const Request& request) const;
  void Pump(Link* link);
  void Fill(Request& request);
  static void TakeBack(Request* request);
  void FillAgain(Request& request);
  void SendNow(Link* link, Request* request, absl::Time now);
  static void NoteFirstSent(Request& request, absl::Time now);
  void PostReceive(const Link& link, Request& request);
  absl::Status HandOver(Link* link, Request& request, absl::Time now);
  van::SendDone Followed(Link* link, std::uint64_t bytes);
  proto::Request MessageFor(const Request& request, absl::Time now) const;
  static bool Undecided(const Request& request);
  void TryLater(Request* request);
  void ResendDue();
  Request* Find(ShardQueue& queue, std::uint64_t sequence) const;
  Request* Asked(const Link* link, const proto::RequestId& id);
  std::unique_ptr<Request> TakeOut(ShardQueue& queue, std::uint64_t sequence);
  void Retire(const Request& request);
  bool HasNumber(const Operation& operation) const;
  void Forget(const Operation& operation);
  void AskOn(ShardQueue& queue, Request& request, const Link& link, const proto::Reply& reply);
  void SetAside(Request& request, const Operation& operation);
  void Retain(Request& request, const Link& link, const proto::Reply& reply);
  void Refused(const Request& request, const Link& link, const absl::Status& why);
  std::string DescribeRequestWait(const ShardQueue& queue, const Request& request) const;
  template <class F>
  void ForEachOpen(F&& f);

  const absl::Duration resend_interval_;
  const std::uint64_t window_bytes_;
  const std::uint64_t retained_bytes_max_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  const Self self_;
  const OnAnswer on_answer_;
  RetainedMemory retained_memory_;  // before the queues that use it
  std::uint64_t epoch_ = 0;
  std::vector<ShardQueue> queues_;  // by shard
  std::uint64_t next_order_ = 1;
  std::uint64_t resends_ = 0;
  std::uint64_t pushed_bytes_ = 0;
  std::size_t unanswered_pushes_ = 0;
  std::size_t retained_ = 0;
  std::uint64_t retained_bytes_ = 0;
  std::uint64_t abandoned_bytes_ = 0;
  absl::Status refusal_;
  runtime::Timer resend_;
};

template <class F>
void Requests::ForEachOpen(F&& f) {
  for (ShardQueue& queue : queues_) {
    for (const std::unique_ptr<Request>& request : queue.open) {
      if (request != nullptr) f(queue, *request);
    }
    for (const auto& [place, request] : queue.unnumbered) f(queue, *request);
  }
}

template <class Which>
void Requests::EnqueueAll(ShardQueue& queue, Which&& which) {
  for (auto it = queue.open.rbegin(); it != queue.open.rend(); ++it) {
    Request* request = it->get();
    if (request == nullptr || request->state == Request::State::kQueued || !which(*request)) {
      continue;
    }
    Enqueue(queue, request);
  }
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_REQUESTS_H_
