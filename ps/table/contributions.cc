#include "ps/table/contributions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ps/table/inbound.h"

namespace leeway::ps {

// Copies before it charges anything, since there may be no memory for that.
void Contributions::Add(std::uint64_t clock, const Target& target, Contribution contribution) {
  EnsureOwned(&contribution.push);
  bytes_ += contribution.bytes;
  budget_->bytes += contribution.bytes;
  clocks_[clock][target].push_back(std::move(contribution));
}

void Contributions::Release(const Contribution& contribution) {
  bytes_ -= contribution.bytes;
  budget_->bytes -= contribution.bytes;
}

std::optional<std::uint64_t> Contributions::FirstClock() const {
  if (clocks_.empty()) return std::nullopt;
  return clocks_.begin()->first;
}

ClosedClock Contributions::Take(std::uint64_t clock) {
  auto node = clocks_.extract(clock);
  if (node.empty()) return {};
  ClosedClock closed = std::move(node.mapped());
  for (auto& [target, list] : closed) {
    for (const Contribution& contribution : list) Release(contribution);
    std::sort(list.begin(), list.end(), [](const Contribution& a, const Contribution& b) {
      return std::tie(a.rank, a.incarnation, a.sequence) <
             std::tie(b.rank, b.incarnation, b.sequence);
    });
  }
  return closed;
}

void Contributions::Clear() {
  clocks_.clear();
  budget_->bytes -= std::exchange(bytes_, 0);
}

std::uint64_t Contributions::Discard(std::uint32_t rank, std::uint64_t incarnation,
                                     std::uint64_t clock) {
  std::uint64_t discarded = 0;
  for (auto it = clocks_.lower_bound(clock); it != clocks_.end();) {
    for (auto entry = it->second.begin(); entry != it->second.end();) {
      discarded += std::erase_if(entry->second, [&](const Contribution& contribution) {
        const bool its = contribution.rank == rank && contribution.incarnation == incarnation;
        if (its) Release(contribution);
        return its;
      });
      entry = entry->second.empty() ? it->second.erase(entry) : std::next(entry);
    }
    it = it->second.empty() ? clocks_.erase(it) : std::next(it);
  }
  return discarded;
}

}  // namespace leeway::ps
