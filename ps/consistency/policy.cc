#include "ps/consistency/policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway::ps {

absl::Status Policy::Supports(const Consistency& consistency) {
  if (consistency.quorum != 0) {
    return absl::UnimplementedError(absl::StrCat("Consistency::quorum is ", consistency.quorum,
                                                 "; only 0 (all workers) is supported yet"));
  }
  if (consistency.late != Consistency::Late::kApply) {
    return absl::UnimplementedError("Consistency::late is kDrop; only kApply is supported yet");
  }
  if (consistency.weight != Consistency::Weight::kOne) {
    return absl::UnimplementedError(
        "Consistency::weight is kInverseStaleness; only kOne is supported yet");
  }
  return absl::OkStatus();
}

PushDecision Policy::Push(std::uint64_t clock, std::uint64_t closed) const {
  if (!consistency_.is_bsp()) return {.hold = false, .clock = clock};
  return {.hold = true, .clock = std::max(clock, closed)};
}

PullDecision Policy::Pull(proto::Op op, std::uint64_t clock, std::uint64_t slowest) const {
  PullDecision decision;
  // In BSP a push takes effect when its clock closes, so what a push-pull returns is the view of
  // the next clock.
  const bool next = consistency_.is_bsp() && op == proto::Op::kPushPull;
  decision.effective = next ? clock + 1 : clock;
  // slowest + staleness ≥ effective, without the sum: it would overflow for ASP.
  const std::uint64_t allowed = std::min(consistency_.staleness, decision.effective);
  decision.needed = decision.effective - allowed;
  decision.hold = slowest < decision.needed;
  return decision;
}

std::uint64_t Policy::Staleness(std::uint64_t effective, std::uint64_t slowest) {
  return effective > slowest ? effective - slowest : 0;
}

}  // namespace leeway::ps
