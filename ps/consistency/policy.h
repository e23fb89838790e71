// The consistency policy of a table, for BSP, SSP and ASP alike: it decides whether a push is
// applied or held, and whether a pull is answered or waits, given how far the workers are. A value
// without state; knows no network, no tables and no memory. docs/consistency.md has the
// definitions.
#ifndef LEEWAY_PS_CONSISTENCY_POLICY_H_
#define LEEWAY_PS_CONSISTENCY_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "leeway/consistency.h"
#include "proto/messages/messages.h"

namespace leeway::ps {

// Clocks are below it, so that sums of them do not overflow; a request of a later one is refused.
inline constexpr std::uint64_t kClockMax = std::uint64_t{1} << 62;

struct PushDecision {
  bool hold = false;        // until `clock` closes; otherwise it is applied now
  std::uint64_t clock = 0;  // the clock it counts in
};

struct PullDecision {
  bool hold = false;  // until the slowest worker has reached `needed`
  std::uint64_t needed = 0;
  std::uint64_t effective = 0;  // the clock whose view of the table the reader asks for
};

class Policy {
 public:
  explicit Policy(const Consistency& consistency) : consistency_(consistency) {}

  // UNIMPLEMENTED for the values of `quorum`, `late` and `weight` that are not supported yet.
  static absl::Status Supports(const Consistency& consistency);

  // A push of an iteration `clock`, when all clocks before `closed` have closed. One that comes
  // too late for its own clock (its worker was taken for dead meanwhile) counts in the first open
  // one.
  PushDecision Push(std::uint64_t clock, std::uint64_t closed) const;

  // A pull (or the pull of a push-pull) of an iteration `clock`, when the slowest living worker has
  // ended `slowest` iterations.
  PullDecision Pull(proto::Op op, std::uint64_t clock, std::uint64_t slowest) const;

  // The number of clocks that the slowest worker is behind a reader of the view at `effective`.
  static std::uint64_t Staleness(std::uint64_t effective, std::uint64_t slowest);

  const Consistency& consistency() const { return consistency_; }

 private:
  Consistency consistency_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONSISTENCY_POLICY_H_
