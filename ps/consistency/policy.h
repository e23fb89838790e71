// The consistency policy of a table: it decides when a push takes effect and with which weight, and
// whether a pull is answered or waits.
//
// A value without state, made of the table's Consistency; it knows no network, no stores and no
// log. A shard tells it what it knows (PushFacts, PullFacts) and carries its decisions out; other
// replicas are told the decisions. docs/consistency.md has the rules and their papers.
#ifndef LEEWAY_PS_CONSISTENCY_POLICY_H_
#define LEEWAY_PS_CONSISTENCY_POLICY_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "leeway/consistency.h"
#include "proto/messages/messages.h"
#include "ps/consistency/dynamic_bound.h"
#include "ps/consistency/worker_clocks.h"

namespace leeway::ps {

struct PushFacts {
  std::uint64_t clock = 0;   // of the push
  std::uint64_t closed = 0;  // the clocks of the table below it have closed
  std::uint64_t tau = 0;     // Consistency::Weight
};

struct PushDecision {
  enum class Action : std::uint8_t {
    kApply,    // now
    kHold,     // until `clock` closes; it counts in that clock
    kCollect,  // add it up; applied when the clock closes, or enough have come (Policy::Enough)
    kWait,     // its clock is not open yet: admitted once it is
    kDrop,     // its clock has closed, or it is too stale
  };
  Action action = Action::kApply;
  std::uint64_t clock = 0;
  double weight = 1;  // kApply, kCollect: what it is multiplied by
};

struct PullFacts {
  proto::Op op = proto::Op::kPull;
  std::uint32_t rank = 0;
  std::uint64_t clock = 0;   // of the pull
  std::uint64_t closed = 0;  // as above
  const WorkerClocks* clocks = nullptr;
  DynamicBound* dynamic = nullptr;  // of the table; null: its rule is not kDynamic
  absl::Time now = absl::InfinitePast();
};

struct PullDecision {
  bool hold = false;  // until `reached` is `needed`, at least
  std::uint64_t needed = 0;
  std::uint64_t effective = 0;  // the clock whose view of the table the reader asks for
  std::uint64_t reached = 0;    // all workers that count for the pull have ended the clocks below
};

class Policy {
 public:
  explicit Policy(const Consistency& consistency) : consistency_(consistency) {}

  PushDecision Push(const PushFacts& facts) const;
  PullDecision Pull(const PullFacts& facts) const;

  // Where pushes are collected, with so many living workers: how many of one target are applied
  // together; 0: those of a clock, when it closes.
  std::uint32_t Enough(std::uint32_t living) const;
  // What a mean of so many collected pushes divides by: their number. Where clocks close by a count
  // of workers, those of the count that have pushed nothing to the target count as zero.
  std::uint32_t MeanOf(std::uint32_t living, std::uint32_t collected) const;
  // The clocks below it have closed, where a count of workers closes them.
  std::uint64_t Closed(const WorkerClocks& clocks) const;
  // Why a clock stays open though all living workers have ended it; empty: it does not.
  std::string WhyOpen(const WorkerClocks& clocks) const;
  // Fewer workers are living than a clock's closing counts.
  bool IsShort(const WorkerClocks& clocks) const;

  // The number of clocks that `slowest` is behind a reader of the view at `effective`.
  static std::uint64_t Staleness(std::uint64_t effective, std::uint64_t slowest);

  const Consistency& consistency() const { return consistency_; }

 private:
  double WeightOf(std::uint64_t tau) const;

  Consistency consistency_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONSISTENCY_POLICY_H_
