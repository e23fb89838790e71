// What becomes of requests when the head of their shard changes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

std::vector<Requests::Lost> Requests::Follow(const proto::ClusterMap& map) {
  if (map.epoch == 0) return {};
  // What happened in an epoch that this worker never saw is not known: a shard may have gone to
  // another head and back, and that one may have died with what it held.
  const bool skipped =
      epoch_ != 0 && map.epoch > epoch_ + 1 && !runtime::Planted<"skipped-epoch-unseen">();
  epoch_ = map.epoch;
  if (queues_.empty()) queues_ = std::vector<ShardQueue>(map.owners.size());
  for (const auto& [place, link] : servers_->links()) link->shards.clear();
  std::vector<std::pair<std::uint64_t, Lost>> lost;  // by the order of submission
  for (std::uint32_t shard = 0; shard < queues_.size() && shard < map.owners.size(); ++shard) {
    const proto::ShardOwner& owner = map.owners[shard];
    Link* head = servers_->Find(owner.server_rank, owner.thread);
    if (owner.server_rank == proto::kNoServer || (head != nullptr && !head->alive)) {
      if (queues_[shard].link == nullptr) queues_[shard].link = head;
      Lose(shard, queues_[shard], &lost);
      continue;
    }
    if (head != nullptr) head->shards.push_back(shard);
    Lead(shard, queues_[shard], head, skipped);
  }
  for (ShardQueue& queue : queues_) {
    if (queue.link == nullptr || queue.lost) continue;
    EnqueueAll(queue, [this](const Request& request) {
      if (runtime::Planted<"kept-not-for-the-next-head">() && request.retained) return false;
      return request.state == Request::State::kWaiting && request.epoch_sent < epoch_;
    });
  }
  for (const auto& [place, link] : servers_->links()) Pump(link.get());

  std::stable_sort(lost.begin(), lost.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Lost> operations;
  operations.reserve(lost.size());
  for (auto& [order, one] : lost) operations.push_back(std::move(one));
  return operations;
}

// The next head has what was settled. It is sent the rest, which for BSP is what no clock has
// closed over yet, in the order of the numbers.
void Requests::Lead(std::uint32_t shard, ShardQueue& queue, Link* head, bool anew) {
  const std::uint64_t generation = head == nullptr ? 0 : head->generation;
  const bool same =
      head == queue.link &&
      (generation == queue.generation || runtime::Planted<"successor-on-a-rank-unseen">()) &&
      !queue.lost;
  if (same && !anew) return;
  NumberAll(queue.link);
  for (const std::unique_ptr<Request>& request : queue.open) {
    if (request != nullptr) Withdraw(queue, request.get());
  }
  queue.link = head;
  queue.generation = generation;
  queue.lost = false;
  if (head == nullptr) return;
  if (!queue.open.empty()) {
    runtime::LogDebug("shard ", shard, " is led by ", head->Describe(), "; ", queue.open.size(),
                      " requests at most go there");
  }
  EnqueueAll(queue, [this](const Request& request) {
    if (runtime::Planted<"kept-not-for-the-next-head">() && request.retained) return false;
    if (request.times_sent > 0) ++resends_;
    return true;
  });
}

void Requests::Lose(std::uint32_t shard, ShardQueue& queue,
                    std::vector<std::pair<std::uint64_t, Lost>>* lost) {
  NumberAll(queue.link);
  std::uint64_t accepted = 0;
  for (const std::unique_ptr<Request>& request : queue.open) {
    if (request == nullptr) continue;
    Withdraw(queue, request.get());
    Retire(*request);
    accepted += request->retained ? 1 : 0;
    if (request->operation == nullptr) continue;
    // What nobody holds any more has it no more than what was never sent.
    if (proto::HasPush(request->op) && request->times_sent > 0 &&
        !runtime::Planted<"lost-may-be-applied">())
      --request->operation->pushes_out;
    lost->emplace_back(request->order, Lost{std::move(request->operation), shard});
  }
  queue.open.clear();
  queue.last = {};
  queue.lost = true;
  if (accepted > 0)
    runtime::LogError(accepted, " accepted pushes are lost: ", LossOf(shard).message());
}

absl::Status Requests::LossOf(std::uint32_t shard) const {
  const Link* last = queues_[shard].link;
  std::string text = absl::StrCat("all servers that held shard ", shard, " are gone");
  if (last != nullptr) {
    absl::StrAppend(&text, ", the last of them server ", last->server_rank, " (", last->address,
                    ")", last->death.empty() ? "" : ": ", last->death);
  }
  return absl::UnavailableError(absl::StrCat(
      text, "; start again: with LEEWAY_REPLICATION=2 or more a shard outlives a server"));
}

}  // namespace leeway::worker
