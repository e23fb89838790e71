// The queue of requests to one shard that are not settled, in the order of their numbers, and of
// those that wait for a number.
//
// A server admits the requests to a shard in the order of their numbers, apart for each of two
// classes: requests to BSP tables, whose pushes are held until their clock closes, and all others.
// A numbered request delays all later ones of its class. Therefore a request gets its number as
// late as possible: when it is first sent, or when the worker's clock ends, because a tick names
// the requests of a clock by number. Until then a more urgent request may overtake it, but not one
// to the same element.
//
// The requests that are to be sent also stand in the queue of the link to the shard's head
// (Link::queue), which has those of all shards of that head by urgency. ShardQueue keeps the two
// consistent. Lives on the core's loop, in ShardQueues.
#ifndef LEEWAY_WORKER_REQUESTS_SHARD_QUEUE_H_
#define LEEWAY_WORKER_REQUESTS_SHARD_QUEUE_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "worker/links/link.h"
#include "worker/operations/request.h"

namespace leeway::worker {

// The sums over the requests of all shards: pushes that are unanswered, bytes that the worker
// keeps, and counters for statistics. The queues report a request when it comes to one of them and
// when it leaves it for good; in between it is reported when it is retained or abandoned.
class RequestTotals {
 public:
  void OnSubmitted(const Request& request) {
    if (!proto::HasPush(request.op)) return;
    ++unanswered_pushes_;
    if (request.filled) OnFilled(request);
  }
  // Its payload has been made.
  void OnFilled(const Request& request) { pushed_bytes_ += request.piece.payload.back().size(); }
  // Sets Request::retained; ends that it is abandoned.
  void OnRetained(Request* request) {
    request->retained = true;
    --unanswered_pushes_;
    ++retained_pushes_;
    retained_bytes_ += request->bytes;
    if (std::exchange(request->abandoned, false)) abandoned_bytes_ -= request->bytes;
  }
  // Sets Request::abandoned.
  void OnAbandoned(Request* request) {
    request->abandoned = true;
    abandoned_bytes_ += request->bytes;
  }
  void OnResent() { ++resends_; }
  void OnEnded(const Request& request) {
    if (request.retained) {
      --retained_pushes_;
      retained_bytes_ -= request.bytes;
    } else if (proto::HasPush(request.op)) {
      --unanswered_pushes_;
    }
    if (request.abandoned) abandoned_bytes_ -= request.bytes;
  }

  std::size_t unanswered_pushes() const { return unanswered_pushes_; }
  std::size_t retained_pushes() const { return retained_pushes_; }
  std::uint64_t retained_bytes() const { return retained_bytes_; }
  std::uint64_t abandoned_bytes() const { return abandoned_bytes_; }
  std::uint64_t resends() const { return resends_; }
  std::uint64_t pushed_bytes() const { return pushed_bytes_; }  // values frames, as they are sent

 private:
  std::size_t unanswered_pushes_ = 0;
  std::size_t retained_pushes_ = 0;
  std::uint64_t retained_bytes_ = 0;
  std::uint64_t abandoned_bytes_ = 0;
  std::uint64_t resends_ = 0;
  std::uint64_t pushed_bytes_ = 0;
};

class ShardQueue {
 public:
  // `next_order`, the next value of Request::order, and `totals` are shared by all queues of a
  // worker and outlive this.
  ShardQueue(std::uint64_t* next_order, RequestTotals* totals)
      : next_order_(next_order), totals_(totals) {}
  ShardQueue(ShardQueue&&) = default;
  ShardQueue& operator=(ShardQueue&&) = delete;

  // ---- The head of the shard ----

  // To the head, null if there is none; of a lost shard to the last one, null if there was none.
  Link* link() const { return link_; }
  // All servers that held the shard are gone.
  bool lost() const { return lost_; }
  // Whether `head` (may be null) is the head already, and the same process as before.
  bool IsLedBy(const Link* head) const;
  // `head` (may be null) is the head from here on; first withdraws all requests, which must have
  // numbers.
  void SetHead(Link* head);
  void SetLost() { lost_ = true; }
  // The last head of a shard that is lost already when this worker hears of it.
  void SetLastHead(Link* link) { link_ = link; }

  // ---- Order ----

  // Takes a new request, and gives it the next number.
  Request* Number(std::unique_ptr<Request> owned);
  // Gives a queued request without a number the next one. True if others must be sent before it.
  bool NumberQueued(Request* request);
  // Takes a new request, and queues it without a number, behind all that it may not overtake.
  void EnqueueNew(std::unique_ptr<Request> owned);
  // Queues a numbered request to be sent, or sent again, as soon as the order allows.
  void Enqueue(Request* request);
  // Enqueues the numbered requests that are not queued and that `which(Request&)` picks. From the
  // newest to the oldest, so that each finds the urgency of those after it.
  template <class Which>
  void EnqueueAll(Which&& which);
  // Takes a request out of its link's queue and of the bytes in flight; it waits from here on.
  void Withdraw(Request* request);

  // ---- The requests ----

  // Null if the request is settled or there is none.
  Request* Find(std::uint64_t sequence) const;
  // Settles a numbered request: takes it out for good.
  std::unique_ptr<Request> TakeOut(std::uint64_t sequence);
  // Takes all numbered requests out, oldest first.
  std::vector<std::unique_ptr<Request>> TakeAll();
  // Drops the requests without a number that `which(const Request&)` picks.
  template <class Which>
  void DropUnnumbered(Which&& which);
  // The number of the last unsettled push of a class before `clock`; 0: there is none.
  std::uint64_t LastPushBefore(std::uint64_t clock, bool held) const;
  // Whether a retained push of a clock below `clock` is here.
  bool RetainsBefore(std::uint64_t clock) const;
  // How many numbers there are from the oldest unsettled request on.
  std::size_t numbers() const { return open_.size(); }

  // Calls `f(Request&)` for each, by number; then, in ForEach, for those without one.
  template <class F>
  void ForEachNumbered(F&& f) const;
  template <class F>
  void ForEach(F&& f) const;

 private:
  // Requests to the same element lie side by side, in the order of submission.
  struct UnnumberedKey {
    std::uint32_t table = 0;
    std::uint64_t block = 0;  // 0 where every request may touch any element
    std::uint64_t order = 0;
    friend auto operator<=>(const UnnumberedKey&, const UnnumberedKey&) = default;
  };

  static UnnumberedKey UnnumberedKeyOf(const Request& request);
  Request* GiveNumber(std::unique_ptr<Request> owned);
  void Raise(Request* request, int priority);
  bool RaiseEarlier(const Request& request);

  std::uint64_t* next_order_;
  RequestTotals* totals_;
  Link* link_ = nullptr;
  std::uint64_t generation_ = 0;  // the link's, when it became the head
  bool lost_ = false;
  std::uint64_t next_ = 1;
  // Numbers next_ − size … next_ − 1; null where settled. The front is never null.
  std::deque<std::unique_ptr<Request>> open_;
  std::array<Request*, 2> last_ = {};  // by class; linked with those before
  std::map<UnnumberedKey, std::unique_ptr<Request>> unnumbered_;  // all are in the link's queue
};

template <class F>
void ShardQueue::ForEachNumbered(F&& f) const {
  for (const std::unique_ptr<Request>& request : open_) {
    if (request != nullptr) f(*request);
  }
}

template <class F>
void ShardQueue::ForEach(F&& f) const {
  ForEachNumbered(f);
  for (const auto& [key, request] : unnumbered_) f(*request);
}

template <class Which>
void ShardQueue::EnqueueAll(Which&& which) {
  for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
    Request* request = it->get();
    if (request == nullptr || request->state == Request::State::kQueued || !which(*request)) {
      continue;
    }
    Enqueue(request);
  }
}

template <class Which>
void ShardQueue::DropUnnumbered(Which&& which) {
  for (auto it = unnumbered_.begin(); it != unnumbered_.end();) {
    Request* const request = it->second.get();
    if (!which(*request)) {
      ++it;
      continue;
    }
    Withdraw(request);
    totals_->OnEnded(*request);
    it = unnumbered_.erase(it);
  }
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_SHARD_QUEUE_H_
