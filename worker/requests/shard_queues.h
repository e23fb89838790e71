// The queues of requests of a worker, one for each shard of the cluster.
//
// Lives on the core's loop, in Requests. Empty before the first map with shards.
#ifndef LEEWAY_WORKER_REQUESTS_SHARD_QUEUES_H_
#define LEEWAY_WORKER_REQUESTS_SHARD_QUEUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/links/servers.h"
#include "worker/requests/shard_queue.h"

namespace leeway::worker {

class ShardQueues {
 public:
  ShardQueues(Servers* servers, RequestTotals* totals) : servers_(servers), totals_(totals) {}
  ShardQueues(const ShardQueues&) = delete;
  ShardQueues& operator=(const ShardQueues&) = delete;

  // Once: the number of shards never changes.
  void Open(std::size_t shards) {
    queues_.reserve(shards);
    for (std::size_t shard = 0; shard < shards; ++shard)
      queues_.emplace_back(&next_order_, totals_);
  }

  std::size_t size() const { return queues_.size(); }
  ShardQueue& operator[](std::uint32_t shard) { return queues_[shard]; }
  const ShardQueue& operator[](std::uint32_t shard) const { return queues_[shard]; }
  ShardQueue& Of(const Request& request) { return queues_[request.piece.shard]; }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }
  auto begin() const { return queues_.begin(); }
  auto end() const { return queues_.end(); }

  // For Request::order of a new request.
  std::uint64_t TakeOrder() { return next_order_++; }

  // Gives all requests in the link's queue (may be null) a number, in the order of that queue.
  void NumberAll(Link* link) {
    if (link == nullptr) return;
    std::vector<Request*> unnumbered;
    for (Request* request : link->queue) {
      if (request->sequence == 0) unnumbered.push_back(request);
    }
    for (Request* request : unnumbered) Of(*request).NumberQueued(request);
  }
  // The same for every link.
  void NumberAll() {
    for (const auto& [place, link] : servers_->links()) NumberAll(link.get());
  }

 private:
  Servers* const servers_;
  RequestTotals* const totals_;
  std::uint64_t next_order_ = 1;
  std::vector<ShardQueue> queues_;  // by shard
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_SHARD_QUEUES_H_
