#include "ps/shard/pending_pulls.h"

#include <tuple>

namespace leeway::ps {

bool PendingPulls::IdLess::operator()(const proto::RequestId& a, const proto::RequestId& b) const {
  return std::tie(a.worker, a.shard, a.sequence, a.incarnation) <
         std::tie(b.worker, b.shard, b.sequence, b.incarnation);
}

void PendingPulls::Add(PendingPull pull) {
  const Key key{pull.decision.needed, arrivals_++};
  bytes_ += pull.inbound.bytes();
  budget_->bytes += pull.inbound.bytes();
  by_id_.emplace(pull.inbound.request.id, key);
  if (pull.deadline != absl::InfiniteFuture()) by_deadline_.emplace(pull.deadline, key);
  by_order_.emplace(key, std::move(pull));
}

bool PendingPulls::Redirect(const proto::RequestId& id, van::PeerId peer) {
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return false;
  by_order_.find(it->second)->second.inbound.peer = peer;
  return true;
}

std::optional<std::uint64_t> PendingPulls::FirstNeeded() const {
  if (by_order_.empty()) return std::nullopt;
  return by_order_.begin()->first.first;
}

std::vector<PendingPull> PendingPulls::TakeNeeding(std::uint64_t needed) {
  std::vector<PendingPull> taken;
  auto it = by_order_.lower_bound({needed, 0});
  while (it != by_order_.end() && it->first.first == needed) {
    it = Erase(it, &taken.emplace_back());
  }
  return taken;
}

std::optional<absl::Time> PendingPulls::FirstDeadline() const {
  if (by_deadline_.empty()) return std::nullopt;
  return by_deadline_.begin()->first;
}

std::vector<PendingPull> PendingPulls::TakeExpired(absl::Time now) {
  std::vector<PendingPull> taken;
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    Erase(by_order_.find(by_deadline_.begin()->second), &taken.emplace_back());
  }
  return taken;
}

std::vector<PendingPull> PendingPulls::TakeAll() {
  return TakeIf([](const PendingPull&) { return true; });
}

void PendingPulls::DropPeer(van::PeerId peer) {
  TakeIf([peer](const PendingPull& pull) { return pull.inbound.peer == peer; });
}

void PendingPulls::DropWorker(std::uint32_t rank) {
  TakeIf([rank](const PendingPull& pull) { return pull.inbound.request.id.worker == rank; });
}

std::map<PendingPulls::Key, PendingPull>::iterator PendingPulls::Erase(
    std::map<Key, PendingPull>::iterator it, PendingPull* taken) {
  PendingPull& pull = it->second;
  bytes_ -= pull.inbound.bytes();
  budget_->bytes -= pull.inbound.bytes();
  by_id_.erase(pull.inbound.request.id);
  by_deadline_.erase({pull.deadline, it->first});
  *taken = std::move(pull);
  return by_order_.erase(it);
}

}  // namespace leeway::ps
