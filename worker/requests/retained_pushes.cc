#include "worker/requests/retained_pushes.h"

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"

namespace leeway::worker {

// The user may write the data again once the operation has its answer.
bool RetainedPushes::Retain(Request* request) {
  request->state = Request::State::kRetained;
  if (request->retained) return false;
  totals_->OnRetained(request);
  if (request->operation == nullptr) return false;
  if (request->piece.refundable != nullptr) request->piece.refundable->given = {};
  if (request->operation->memory) {
    request->CopyPayload();
  }
  return true;
}

std::vector<proto::ShardWatermark> RetainedPushes::WatermarksFor(const Link& link,
                                                                 std::uint64_t clock) const {
  const std::uint64_t end = clock;
  std::vector<proto::ShardWatermark> watermarks;
  for (const std::uint32_t shard : link.shards) {
    for (const bool held : {false, true}) {
      const std::uint64_t sequence = (*queues_)[shard].LastPushBefore(end, held);
      if (sequence == 0) continue;
      watermarks.push_back({.sequence = sequence, .shard = shard, .held = held});
    }
  }
  return watermarks;
}

void RetainedPushes::OnStable(const Link& link, std::uint64_t stable) {
  if (totals_->retained_pushes() == 0) return;
  const std::uint64_t end = stable;
  std::vector<std::uint64_t> closed;
  for (const std::uint32_t shard : link.shards) {
    ShardQueue& queue = (*queues_)[shard];
    closed.clear();
    queue.ForEachNumbered([&](const Request& request) {
      if (request.retained && request.clock < end) closed.push_back(request.sequence);
    });
    for (const std::uint64_t sequence : closed) queue.TakeOut(sequence);
  }
}

bool RetainedPushes::HasBefore(std::uint64_t clock, const Link& link) const {
  if (totals_->retained_pushes() == 0) return false;
  for (const std::uint32_t shard : link.shards) {
    if ((*queues_)[shard].RetainsBefore(clock)) return true;
  }
  return false;
}

bool RetainedPushes::HasBefore(std::uint64_t clock) const {
  for (const auto& [place, link] : servers_->links()) {
    if (HasBefore(clock, *link)) return true;
  }
  return false;
}

void RetainedPushes::Resend(Link* link) {
  if (totals_->retained_pushes() == 0) return;
  for (const std::uint32_t shard : link->shards) {
    (*queues_)[shard].EnqueueAll([this](const Request& request) {
      const bool kept = request.state == Request::State::kRetained;
      if (kept) totals_->OnResent();
      return kept;
    });
  }
  sender_->Pump(link);
}

void RetainedPushes::OnRefused(const Request& request, const Link& link, const absl::Status& why) {
  runtime::LogError("a push to table '", request.table->spec.name,
                    "' that had been accepted was refused by ", link.Describe(), ": ",
                    why.message());
  if (!refusal_.ok()) return;
  refusal_ = absl::DataLossError(absl::StrCat(
      "a push to table '", request.table->spec.name, "' of clock ", request.clock,
      " that had been accepted was refused by ", link.Describe(), ": ", why.message()));
}

}  // namespace leeway::worker
