#include "scheduler/members/failure_detector.h"

#include <algorithm>

namespace leeway::scheduler {

void FailureDetector::Heard(std::uint32_t node, absl::Time now) {
  absl::Time& heard = heard_.try_emplace(node, now).first->second;
  heard = std::max(heard, now);
}

std::vector<std::uint32_t> FailureDetector::Silent(absl::Time now) {
  const absl::Duration delay =
      asked_ == absl::InfinitePast() ? absl::ZeroDuration() : now - asked_ - interval_;
  asked_ = now;
  std::vector<std::uint32_t> silent;
  for (auto& [node, heard] : heard_) {
    if (delay > interval_) heard = std::min(now, heard + delay);
    if (now - heard > (timeout_)) silent.push_back(node);
  }
  return silent;
}

absl::Duration FailureDetector::SilentFor(std::uint32_t node, absl::Time now) const {
  const auto heard = heard_.find(node);
  return heard == heard_.end() ? absl::ZeroDuration() : now - heard->second;
}

}  // namespace leeway::scheduler
