// Pushes that were accepted, but are nowhere but at the head of their shard and here until their
// clock has closed: kept, told of in ticks, sent again where they may be missing, let go of.
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

// The user's data is the user's again once the operation has its answer.
void Requests::Retain(Request& request, const Link& link, const proto::Reply& reply) {
  request.state = Request::State::kKept;
  if (request.retained) return;
  request.retained = true;
  --unanswered_pushes_;
  ++retained_;
  retained_bytes_ += request.bytes;
  if (std::exchange(request.abandoned, false)) abandoned_bytes_ -= request.bytes;
  if (request.operation == nullptr) return;
  if (request.piece.refundable != nullptr) request.piece.refundable->given = {};
  if (request.operation->memory && !runtime::Planted<"user-memory-kept">()) {
    for (runtime::Buffer& frame : request.piece.payload) frame = retained_memory_.CopyOf(frame);
  }
  on_answer_(request, link, reply, {});
}

std::vector<proto::ShardWatermark> Requests::WatermarksFor(const Link& link,
                                                           std::uint64_t clock) const {
  std::vector<proto::ShardWatermark> watermarks;
  for (const std::uint32_t shard : link.shards) {
    for (const bool held : {false, true}) {
      if (!held && runtime::Planted<"watermarks-of-held-alone">()) continue;
      const Request* request = queues_[shard].last[held ? 1 : 0];
      while (
          request != nullptr &&
          (request->clock >= clock + (runtime::Planted<"watermarks-of-the-open-clock">() ? 1 : 0) ||
           !proto::HasPush(request->op))) {
        request = request->earlier;
      }
      if (request == nullptr) continue;
      watermarks.push_back({.sequence = request->sequence, .shard = shard, .held = held});
    }
  }
  return watermarks;
}

void Requests::OnStable(const Link* link, std::uint64_t stable) {
  if (retained_ == 0 || runtime::Planted<"kept-for-ever">()) return;
  std::vector<std::uint64_t> closed;
  for (const std::uint32_t shard : link->shards) {
    ShardQueue& queue = queues_[shard];
    closed.clear();
    for (const std::unique_ptr<Request>& request : queue.open) {
      if (request == nullptr || !request->retained ||
          request->clock >= stable + (runtime::Planted<"let-go-a-clock-early">() ? 1 : 0)) {
        continue;
      }
      closed.push_back(request->sequence);
    }
    for (const std::uint64_t sequence : closed) TakeOut(queue, sequence);
  }
}

bool Requests::RetainsBefore(std::uint64_t clock, const Link& link) const {
  if (retained_ == 0) return false;
  for (const std::uint32_t shard : link.shards) {
    for (const std::unique_ptr<Request>& request : queues_[shard].open) {
      if (request != nullptr && request->retained && request->clock < clock) return true;
    }
  }
  return false;
}

bool Requests::RetainsBefore(std::uint64_t clock) const {
  for (const auto& [place, link] : servers_->links()) {
    if (RetainsBefore(clock, *link)) return true;
  }
  return false;
}

void Requests::ResendRetained(Link* link) {
  if (retained_ == 0 || runtime::Planted<"kept-not-sent-again">()) return;
  for (const std::uint32_t shard : link->shards) {
    EnqueueAll(queues_[shard], [this](const Request& request) {
      const bool kept = request.state == Request::State::kKept;
      resends_ += kept ? 1 : 0;
      return kept;
    });
  }
  Pump(link);
}

void Requests::Refused(const Request& request, const Link& link, const absl::Status& why) {
  runtime::LogError("a push to table '", request.table->spec.name,
                    "' that had been accepted was refused by ", link.Describe(), ": ",
                    why.message());
  if (!refusal_.ok() || runtime::Planted<"late-refusal-untold">()) return;
  refusal_ = absl::DataLossError(absl::StrCat(
      "a push to table '", request.table->spec.name, "' of clock ", request.clock,
      " that had been accepted was refused by ", link.Describe(), ": ", why.message()));
}

}  // namespace leeway::worker
