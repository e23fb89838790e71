#include "worker/core/staleness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway::worker {

absl::Status StalenessLedger::Check(const Consistency& bound, std::uint64_t clock,
                                    const proto::Reply& reply) {
  // Computed from the worker's own clock: a server cannot make a reply look fresher than it is.
  const std::uint64_t computed = clock > reply.slowest_clock ? clock - reply.slowest_clock : 0;
  const std::uint64_t staleness = std::max(computed, reply.staleness);
  ++histogram_[staleness];
  const bool contradicts = reply.staleness != computed || reply.clock != clock;
  if (staleness <= bound.staleness && !contradicts) return absl::OkStatus();
  ++violations_;
  return absl::InternalError(absl::StrCat(
      "staleness bound violated: the values are ", staleness, " clocks old (asked at clock ", clock,
      ", slowest worker at clock ", reply.slowest_clock, ") where ", bound.ToString(), " holds",
      contradicts
          ? absl::StrCat("; the reply says clock ", reply.clock, ", staleness ", reply.staleness)
          : ""));
}

}  // namespace leeway::worker
