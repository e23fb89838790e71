#include "ps/shard/state/request_order.h"

#include <utility>

namespace leeway::ps {

RequestOrder::~RequestOrder() {
  for (const auto& [sequence, kept] : early_) Release(kept);
}

RequestOrder::Verdict RequestOrder::Judge(std::uint64_t sequence, std::uint64_t after) const {
  if (sequence <= admitted_) return Verdict::kSeen;
  return after <= admitted_ ? Verdict::kNext : Verdict::kEarly;
}

void RequestOrder::Restart(std::uint64_t admitted) {
  TakeAll();
  admitted_ = admitted;
}

bool RequestOrder::Keep(Inbound early) {
  const std::uint64_t sequence = early.request.id.sequence;
  if (auto it = early_.find(sequence); it != early_.end()) {
    Release(it->second);
    early_.erase(it);
  }
  const std::uint64_t bytes = early.bytes();
  const bool room = budget_->HasRoom(bytes);
  if (early_.size() >= kEarlyRequestsMax || !room) {
    return false;
  }
  budget_->bytes += bytes;
  EnsureOwned(&early.payload);
  early_.emplace(sequence, std::move(early));
  return true;
}

std::optional<Inbound> RequestOrder::TakeNext() {
  // Requests that have been passed over were settled: their worker no longer waits for them.
  while (!early_.empty() && early_.begin()->first <= admitted_) {
    Release(early_.begin()->second);
    early_.erase(early_.begin());
  }
  auto it = early_.begin();
  if (it == early_.end()) return std::nullopt;
  const bool early = it->second.request.after > admitted_;
  if (early) return std::nullopt;
  Release(it->second);
  std::optional<Inbound> next(std::move(it->second));
  early_.erase(it);
  return next;
}

std::vector<Inbound> RequestOrder::TakeAll() {
  std::vector<Inbound> all;
  all.reserve(early_.size());
  for (auto& [sequence, kept] : early_) {
    Release(kept);
    all.push_back(std::move(kept));
  }
  early_.clear();
  return all;
}

void RequestOrder::DropPeer(van::PeerId peer) {
  for (auto it = early_.begin(); it != early_.end();) {
    if (it->second.peer == peer) {
      Release(it->second);
      it = early_.erase(it);
    } else {
      ++it;
    }
  }
}

void RequestOrder::RememberFailure(std::uint64_t sequence, absl::Status failure) {
  failures_.insert_or_assign(sequence, std::move(failure));
  if (failures_.size() > kFailuresRememberedMax) {
    forgotten_ = failures_.begin()->first;
    failures_.erase(failures_.begin());
  }
}

absl::Status RequestOrder::OutcomeOf(std::uint64_t sequence) const {
  if (auto it = failures_.find(sequence); it != failures_.end()) return it->second;
  if (sequence <= forgotten_) {
    return absl::UnknownError("this request was answered so long ago that the answer is forgotten");
  }
  return absl::OkStatus();
}

}  // namespace leeway::ps
