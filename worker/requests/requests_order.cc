// In which order requests leave, and which number each of them gets.
//
// A server admits the requests to a shard in the order of their numbers, one class apart from the
// other, so what has a number hurries all before it along. That is why a request gets its number as
// late as it can: when it is first sent, or when the worker's clock ends, since the tick says by
// number what belongs to the clock. Until then it may be overtaken by what is more urgent, though
// not by what touches the same element.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/mutants.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

Requests::Place Requests::PlaceOf(const Request& request) {
  const bool dense = request.table->spec.kind == TableKind::kDense;
  return {request.table->id, dense ? request.piece.block : 0, request.order};
}

// It is in no queue: its place there follows from its number from now on, so that those of one
// priority leave in the order of their numbers.
Request* Requests::Number(ShardQueue& queue, std::unique_ptr<Request> owned) {
  Request* const request = owned.get();
  Request*& last = queue.last[request->held() ? 1 : 0];
  request->sequence = queue.next++;
  request->order = next_order_++;
  request->earlier = last;
  if (last != nullptr) last->later = request;
  last = request;
  queue.open.push_back(std::move(owned));
  return request;
}

// True if others have to be sent before it now.
bool Requests::NumberQueued(Request* request) {
  ShardQueue& queue = queues_[request->piece.shard];
  queue.link->queue.erase(request);
  Number(queue, std::move(queue.unnumbered.extract(PlaceOf(*request)).mapped()));
  queue.link->queue.insert(request);
  return Hurry(queue, *request);
}

void Requests::NumberAll() {
  for (const auto& [place, link] : servers_->links()) NumberAll(link.get());
}

void Requests::NumberAll(Link* link) {
  if (link == nullptr) return;
  std::vector<Request*> unnumbered;
  for (Request* request : link->queue) {
    if (request->sequence == 0) unnumbered.push_back(request);
  }
  for (Request* request : unnumbered) NumberQueued(request);
}

void Requests::Raise(ShardQueue& queue, Request* request, int priority) {
  queue.link->queue.erase(request);
  request->priority = priority;
  queue.link->queue.insert(request);
}

// Those with smaller numbers go at least as soon. True if there were any.
bool Requests::Hurry(ShardQueue& queue, const Request& request) {
  if (runtime::Planted<"earlier-numbers-wait">()) return false;
  bool any = false;
  for (Request* earlier = request.earlier;
       earlier != nullptr && earlier->state == Request::State::kQueued &&
       earlier->priority < request.priority;
       earlier = earlier->earlier) {
    Raise(queue, earlier, request.priority);
    any = true;
  }
  return any;
}

// Stands in its queue as soon as possible.
void Requests::Enqueue(ShardQueue& queue, Request* request) {
  for (const Request* later = request->later; later != nullptr; later = later->later) {
    if (later->state != Request::State::kQueued) continue;
    request->priority = std::max(request->priority, later->priority);
    break;
  }
  Hurry(queue, *request);
  if (request->in_flight) {
    request->in_flight = false;
    queue.link->in_flight_bytes -= request->bytes;
  }
  request->state = Request::State::kQueued;
  queue.link->queue.insert(request);
}

// What touches the same elements goes before it: those of higher priority do, so from the newest
// on there are only as many to raise as have a lower one.
void Requests::EnqueueNew(ShardQueue& queue, std::unique_ptr<Request> owned) {
  Request* const request = owned.get();
  const Place place = PlaceOf(*request);
  for (auto it = queue.unnumbered.lower_bound(place); it != queue.unnumbered.begin();) {
    const auto& [before, earlier] = *--it;
    if (before.table != place.table || before.block != place.block) break;
    if (earlier->priority >= request->priority || runtime::Planted<"same-element-overtaken">())
      break;
    Raise(queue, earlier.get(), request->priority);
  }
  request->state = Request::State::kQueued;
  queue.link->queue.insert(request);
  queue.unnumbered.emplace(place, std::move(owned));
}

}  // namespace leeway::worker
