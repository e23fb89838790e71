// The counters of a data thread and of its tables, for operators and tests.
#ifndef LEEWAY_PS_TABLE_COUNTERS_H_
#define LEEWAY_PS_TABLE_COUNTERS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace leeway::ps {

// Of one data thread.
struct Counters {
  std::uint64_t requests = 0;             // that came in, all of them
  std::uint64_t pushes_applied = 0;       // each counted once, when it reached the table
  std::uint64_t pushes_followed = 0;      // applied because the head of the chain had
  std::uint64_t pulls_served = 0;         // with values
  std::uint64_t reads_served = 0;         // of those: to readers
  std::uint64_t publications_served = 0;  // blocks and rows of published versions
  std::uint64_t duplicates = 0;           // requests seen before
  std::uint64_t early = 0;                // requests that waited for their predecessors
  std::uint64_t early_dropped = 0;        // beyond the limits of the reorder buffer
  std::uint64_t stale_epoch = 0;          // answered ABORTED
  std::uint64_t unavailable = 0;          // answered UNAVAILABLE
  std::uint64_t refused = 0;              // answered with a final error
  std::uint64_t deadlines = 0;            // pending pulls answered DEADLINE_EXCEEDED
  std::uint64_t nonfinite_pushes = 0;     // with NaN or infinity, refused ones included
  // Updates that left 16-bit values NaN or infinite, or wrapped integers around, and pushes that
  // were refused since they would have.
  std::uint64_t overflows = 0;
  std::uint64_t clocks_closed = 0;        // BSP: with contributions
  std::uint64_t clocks_closed_short = 0;  // by fewer workers than the table's policy counts
  std::uint64_t late_pushes = 0;          // counted in a later clock than their own
  std::uint64_t late_dropped = 0;         // dropped: too late for their clock, or too stale
  std::uint64_t pushes_collected = 0;     // added up, to be applied with others
  std::uint64_t uncompensated = 0;        // gradients of which it was not known what they came from
  std::uint64_t pushes_discarded = 0;     // BSP: of iterations their dead worker had not ended
  std::uint64_t apply_failures = 0;       // BSP: accepted, but no longer fitting when applied
  std::uint64_t ticks = 0;
  std::uint64_t calls = 0;
  std::uint64_t replies_unsent = 0;  // the van would not take them; the worker asks again
  std::uint64_t malformed = 0;       // messages that did not decode
  std::uint64_t violations = 0;      // peers dropped for what they said
};

// The staleness of the replies, or pushes, of one table, counted by the data thread that had them.
class StalenessCounts {
 public:
  // Those that were staler than this count together.
  static constexpr std::size_t kMax = 64;

  void Count(std::uint64_t staleness) { ++counts_[std::min<std::uint64_t>(staleness, kMax)]; }
  // By clocks (of pushes: updates); the last: kMax or more.
  const std::array<std::uint64_t, kMax + 1>& counts() const { return counts_; }

 private:
  std::array<std::uint64_t, kMax + 1> counts_ = {};
};

// Counts an answer that is an error by what it says.
inline void CountRefusal(const absl::Status& why, Counters* counters) {
  ++(absl::IsAborted(why)            ? counters->stale_epoch
     : absl::IsUnavailable(why)      ? counters->unavailable
     : absl::IsDeadlineExceeded(why) ? counters->deadlines
                                     : counters->refused);
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_COUNTERS_H_
