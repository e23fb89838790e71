#include "ps/consistency/policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace leeway::ps {

PushDecision Policy::Push(const PushFacts& facts) const {
  using Action = PushDecision::Action;
  if (consistency_.is_bsp()) {
    return {.action = Action::kHold, .clock = std::max(facts.clock, facts.closed)};
  }
  PushDecision decision{.clock = facts.clock};
  if (consistency_.is_weighted()) decision.weight = WeightOf(facts.tau);
  const bool too_stale = consistency_.weight == Consistency::Weight::kCutOff &&
                         static_cast<double>(facts.tau) > consistency_.b;
  const bool by_count = consistency_.rule == Consistency::Rule::kBackup;
  const bool late = by_count && facts.clock < facts.closed;
  if (too_stale || (late && consistency_.late == Consistency::Late::kDrop)) {
    decision.action = Action::kDrop;
  } else if (by_count && facts.clock > facts.closed) {
    decision.action = Action::kWait;
  } else if (consistency_.collects() && !late) {
    decision.action = Action::kCollect;
  }
  return decision;
}

PullDecision Policy::Pull(const PullFacts& facts) const {
  PullDecision decision;
  // Where pushes take effect when their clock closes, a push-pull returns the view of the next one.
  const bool next = consistency_.closes_clocks() && facts.op == proto::Op::kPushPull;
  decision.effective = next ? facts.clock + 1 : facts.clock;
  std::uint64_t bound = consistency_.staleness;
  switch (consistency_.rule) {
    case Consistency::Rule::kBackup:
      decision.reached = facts.closed;
      break;
    case Consistency::Rule::kSampled:
      decision.reached = facts.clocks->SlowestOfSample(facts.rank, facts.clock, consistency_.count);
      break;
    case Consistency::Rule::kDynamic:
      decision.reached = facts.clocks->slowest();
      bound = facts.dynamic->BoundFor(facts.rank, facts.clock, consistency_.count,
                                      consistency_.staleness, *facts.clocks, facts.now);
      break;
    default:
      decision.reached = facts.clocks->slowest();
  }
  // reached + bound ≥ effective, without the sum: it would overflow for ASP.
  decision.needed = decision.effective - std::min(bound, decision.effective);
  decision.hold = decision.reached < decision.needed;
  return decision;
}

std::uint32_t Policy::Enough(std::uint32_t living) const {
  switch (consistency_.rule) {
    case Consistency::Rule::kSoftsync:
      return std::max<std::uint32_t>(1, living / consistency_.count);
    case Consistency::Rule::kBuffered:
      return consistency_.count;
    default:
      return 0;
  }
}

std::uint32_t Policy::MeanOf(std::uint32_t living, std::uint32_t collected) const {
  const std::uint32_t pushed = std::max<std::uint32_t>(1, collected);
  if (consistency_.rule != Consistency::Rule::kBackup) return pushed;
  return std::max(pushed, std::min(consistency_.count, living));
}

bool Policy::IsShort(const WorkerClocks& clocks) const {
  return consistency_.rule == Consistency::Rule::kBackup && clocks.living() < consistency_.count;
}

std::uint64_t Policy::Closed(const WorkerClocks& clocks) const {
  const bool waits = IsShort(clocks) && consistency_.when_short == Consistency::Short::kWait;
  return waits ? 0 : clocks.ReachedBy(consistency_.count);
}

std::string Policy::WhyOpen(const WorkerClocks& clocks) const {
  if (!IsShort(clocks) || consistency_.when_short != Consistency::Short::kWait) return "";
  return absl::StrCat(clocks.living(), clocks.living() == 1 ? " worker is" : " workers are",
                      " living, and a clock closes when ", consistency_.count, " have ended it");
}

std::uint64_t Policy::Staleness(std::uint64_t effective, std::uint64_t slowest) {
  return effective > slowest ? effective - slowest : 0;
}

double Policy::WeightOf(std::uint64_t tau) const {
  const auto stale = static_cast<double>(tau);
  switch (consistency_.weight) {
    case Consistency::Weight::kOne:
    case Consistency::Weight::kCutOff:
      return 1;
    case Consistency::Weight::kInverse:
      return tau == 0 ? 1 : 1 / stale;
    case Consistency::Weight::kPolynomial:
      return std::pow(stale + 1, -consistency_.a);
    case Consistency::Weight::kHinge:
      return stale <= consistency_.b ? 1 : 1 / (consistency_.a * (stale - consistency_.b) + 1);
    case Consistency::Weight::kTable:
      break;
  }
  return consistency_.weights[std::min<std::uint64_t>(tau, consistency_.weights.size() - 1)];
}

}  // namespace leeway::ps
