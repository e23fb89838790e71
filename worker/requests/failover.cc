#include "worker/requests/failover.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"

namespace leeway::worker {

std::vector<Failover::Lost> Failover::Follow(const proto::ClusterMap& map) {
  if (map.epoch == 0) return {};
  // In an epoch that this worker never saw, a shard may have gone to another head and back, and the
  // other head may have died with what it held.
  const std::uint64_t before = sender_->epoch();
  const bool skipped = before != 0 && map.epoch > before + 1;
  sender_->SetEpoch(map.epoch);
  if (queues_->size() == 0) queues_->Open(map.owners.size());
  for (const auto& [place, link] : servers_->links()) link->shards.clear();
  std::vector<std::pair<std::uint64_t, Lost>> lost;  // by the order of submission
  for (std::uint32_t shard = 0; shard < queues_->size() && shard < map.owners.size(); ++shard) {
    const proto::ShardOwner& owner = map.owners[shard];
    Link* head = servers_->Find(owner.server_rank, owner.thread);
    if (owner.server_rank == proto::kNoServer || (head != nullptr && !head->alive)) {
      ShardQueue& queue = (*queues_)[shard];
      if (queue.link() == nullptr) queue.SetLastHead(head);
      Lose(shard, &lost);
      continue;
    }
    if (head != nullptr) head->shards.push_back(shard);
    Lead(shard, head, skipped);
  }
  for (ShardQueue& queue : *queues_) {
    if (queue.link() == nullptr || queue.lost()) continue;
    queue.EnqueueAll([&map](const Request& request) {
      return request.state == Request::State::kWaiting && request.epoch_sent < map.epoch;
    });
  }
  sender_->PumpAll();

  std::stable_sort(lost.begin(), lost.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Lost> operations;
  operations.reserve(lost.size());
  for (auto& [order, one] : lost) operations.push_back(std::move(one));
  return operations;
}

// `anew`: sends everything again even if the head is the same as before.
void Failover::Lead(std::uint32_t shard, Link* head, bool anew) {
  ShardQueue& queue = (*queues_)[shard];
  if (queue.IsLedBy(head) && !anew) return;
  queues_->NumberAll(queue.link());
  queue.SetHead(head);
  if (head == nullptr) return;
  if (queue.numbers() > 0) {
    runtime::LogDebug("shard ", shard, " is led by ", head->Describe(), "; ", queue.numbers(),
                      " requests at most go there");
  }
  queue.EnqueueAll([this](const Request& request) {
    if (request.times_sent > 0) totals_->OnResent();
    return true;
  });
}

void Failover::Lose(std::uint32_t shard, std::vector<std::pair<std::uint64_t, Lost>>* lost) {
  ShardQueue& queue = (*queues_)[shard];
  queues_->NumberAll(queue.link());
  std::uint64_t accepted = 0;
  for (const std::unique_ptr<Request>& request : queue.TakeAll()) {
    accepted += request->retained ? 1 : 0;
    if (request->operation == nullptr) continue;
    // A push that no server has any more is as one that was never sent.
    if (proto::HasPush(request->op) && request->times_sent > 0) --request->operation->pushes_out;
    lost->emplace_back(request->order, Lost{std::move(request->operation), shard});
  }
  queue.SetLost();
  if (accepted > 0)
    runtime::LogError(accepted, " accepted pushes are lost: ", LossOf(shard).message());
}

absl::Status Failover::LossOf(std::uint32_t shard) const {
  const Link* last = (*queues_)[shard].link();
  std::string text = absl::StrCat("all servers that held shard ", shard, " are gone");
  if (last != nullptr) {
    absl::StrAppend(&text, ", the last of them server ", last->server_rank, " (", last->address,
                    ")", last->death.empty() ? "" : ": ", last->death);
  }
  return absl::UnavailableError(absl::StrCat(
      text, "; start again: with LEEWAY_REPLICATION=2 or more a shard outlives a server"));
}

}  // namespace leeway::worker
