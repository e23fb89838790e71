#include "scheduler/chains/unreachable_pairs.h"

#include <algorithm>

namespace leeway::scheduler {

absl::Duration ApartPairs::Note(std::uint32_t one, std::uint32_t other, absl::Time now) {
  const Pair pair = Of(one, other);
  if (apart_.contains(pair)) return absl::ZeroDuration();
  if (!entries_.contains(pair) && entries_.size() >= kApartPairsMax) {
    const auto first = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
    apart_.erase(first->first);
    entries_.erase(first);
  }
  const auto [entry, is_new] = entries_.try_emplace(pair, Entry{.span = first_, .until = now});
  if (!is_new) entry->second.span = std::min(2 * entry->second.span, longest_);
  entry->second.until = now + entry->second.span;
  apart_.insert(pair);
  return entry->second.span;
}

void ApartPairs::Forget(std::uint32_t rank) {
  const auto of_it = [rank](const Pair& pair) { return pair.first == rank || pair.second == rank; };
  std::erase_if(entries_, [&](const auto& entry) { return of_it(entry.first); });
  std::erase_if(apart_, of_it);
}

// A pair that was apart is remembered for as long again, to be kept longer the next time.
bool ApartPairs::Expire(absl::Time now) {
  const std::size_t before = apart_.size();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (now >= entry.until) apart_.erase(it->first);
    it = now >= entry.until + entry.span ? entries_.erase(it) : std::next(it);
  }
  return apart_.size() < before;
}

}  // namespace leeway::scheduler
