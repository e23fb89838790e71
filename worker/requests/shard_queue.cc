#include "worker/requests/shard_queue.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace leeway::worker {
namespace {

std::uint64_t GenerationOf(const Link* link) { return link == nullptr ? 0 : link->generation; }

}  // namespace

bool ShardQueue::IsLedBy(const Link* head) const {
  return head == link_ && GenerationOf(head) == generation_ && !lost_;
}

void ShardQueue::SetHead(Link* head) {
  ForEachNumbered([this](Request& request) { Withdraw(&request); });
  link_ = head;
  generation_ = GenerationOf(head);
  lost_ = false;
}

ShardQueue::UnnumberedKey ShardQueue::UnnumberedKeyOf(const Request& request) {
  const bool dense = request.table->spec.kind == TableKind::kDense;
  return {request.table->id, dense ? request.piece.block : 0, request.order};
}

Request* ShardQueue::Number(std::unique_ptr<Request> owned) {
  totals_->OnSubmitted(*owned);
  return GiveNumber(std::move(owned));
}

// From here on its number decides its place in the link's queue, so that requests of one priority
// are sent in the order of their numbers.
Request* ShardQueue::GiveNumber(std::unique_ptr<Request> owned) {
  Request* const request = owned.get();
  Request*& last = last_[request->held() ? 1 : 0];
  request->sequence = next_++;
  request->order = (*next_order_)++;
  request->earlier = last;
  if (last != nullptr) last->later = request;
  last = request;
  open_.push_back(std::move(owned));
  return request;
}

bool ShardQueue::NumberQueued(Request* request) {
  link_->queue.erase(request);
  GiveNumber(std::move(unnumbered_.extract(UnnumberedKeyOf(*request)).mapped()));
  link_->queue.insert(request);
  return RaiseEarlier(*request);
}

void ShardQueue::Raise(Request* request, int priority) {
  link_->queue.erase(request);
  request->priority = priority;
  link_->queue.insert(request);
}

// Requests with smaller numbers become at least as urgent. True if there were any to raise.
bool ShardQueue::RaiseEarlier(const Request& request) {
  bool any = false;
  for (Request* earlier = request.earlier;
       earlier != nullptr && earlier->state == Request::State::kQueued &&
       earlier->priority < request.priority;
       earlier = earlier->earlier) {
    Raise(earlier, request.priority);
    any = true;
  }
  return any;
}

void ShardQueue::Enqueue(Request* request) {
  for (const Request* later = request->later; later != nullptr; later = later->later) {
    if (later->state != Request::State::kQueued) continue;
    request->priority = std::max(request->priority, later->priority);
    break;
  }
  RaiseEarlier(*request);
  if (request->in_flight) {
    request->in_flight = false;
    link_->in_flight_bytes -= request->bytes;
  }
  request->state = Request::State::kQueued;
  link_->queue.insert(request);
}

// Earlier requests to the same element are sent first. Requests of the same or a higher priority
// are anyway, so from the newest on only those of a lower priority are raised.
void ShardQueue::EnqueueNew(std::unique_ptr<Request> owned) {
  Request* const request = owned.get();
  totals_->OnSubmitted(*request);
  const UnnumberedKey key = UnnumberedKeyOf(*request);
  for (auto it = unnumbered_.lower_bound(key); it != unnumbered_.begin();) {
    const auto& [before, earlier] = *--it;
    if (before.table != key.table || before.block != key.block) break;
    if (earlier->priority >= request->priority) break;
    Raise(earlier.get(), request->priority);
  }
  request->state = Request::State::kQueued;
  link_->queue.insert(request);
  unnumbered_.emplace(key, std::move(owned));
}

void ShardQueue::Withdraw(Request* request) {
  if (link_ != nullptr) {
    if (request->state == Request::State::kQueued) link_->queue.erase(request);
    if (request->in_flight) link_->in_flight_bytes -= request->bytes;
  }
  request->in_flight = false;
  request->state = Request::State::kWaiting;
  request->due = absl::InfiniteFuture();
}

Request* ShardQueue::Find(std::uint64_t sequence) const {
  const std::uint64_t first = next_ - open_.size();
  if (sequence < first || sequence >= next_) return nullptr;
  return open_[sequence - first].get();
}

std::unique_ptr<Request> ShardQueue::TakeOut(std::uint64_t sequence) {
  const std::uint64_t first = next_ - open_.size();
  std::unique_ptr<Request> request = std::move(open_[sequence - first]);
  Withdraw(request.get());
  Request*& last = last_[request->held() ? 1 : 0];
  (request->later == nullptr ? last : request->later->earlier) = request->earlier;
  if (request->earlier != nullptr) request->earlier->later = request->later;
  while (!open_.empty() && open_.front() == nullptr) open_.pop_front();
  totals_->OnEnded(*request);
  return request;
}

std::vector<std::unique_ptr<Request>> ShardQueue::TakeAll() {
  std::vector<std::unique_ptr<Request>> all;
  for (std::unique_ptr<Request>& request : open_) {
    if (request == nullptr) continue;
    Withdraw(request.get());
    totals_->OnEnded(*request);
    all.push_back(std::move(request));
  }
  open_.clear();
  last_ = {};
  return all;
}

std::uint64_t ShardQueue::LastPushBefore(std::uint64_t clock, bool held) const {
  const Request* request = last_[held ? 1 : 0];
  while (request != nullptr && (request->clock >= clock || !proto::HasPush(request->op))) {
    request = request->earlier;
  }
  return request == nullptr ? 0 : request->sequence;
}

bool ShardQueue::RetainsBefore(std::uint64_t clock) const {
  return std::any_of(open_.begin(), open_.end(), [clock](const std::unique_ptr<Request>& request) {
    return request != nullptr && request->retained && request->clock < clock;
  });
}

}  // namespace leeway::worker
