// The reports of a storm's worker to its parent, one a line.
#ifndef LEEWAY_TESTS_STORM_WORKER_REPORTS_H_
#define LEEWAY_TESTS_STORM_WORKER_REPORTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/storm/counters.h"

namespace leeway::storm {

struct Began {
  std::uint32_t rank = 0;
  std::uint64_t clock = 0;  // its first clock
};

struct Step {
  std::uint64_t step = 0;
  absl::Time end;
  absl::Duration waited;  // for servers and other workers, in this step
  // The times at which pushes to all shards were acknowledged, since the last report.
  std::vector<absl::Time> acknowledged;
};

struct Accuracy {
  double part = 0;  // 0 to 1
};

struct Finished {
  std::uint64_t resends = 0;
  std::uint64_t staleness_violations = 0;
  std::uint64_t max_staleness = 0;
};

using Entry = std::variant<Began, Step, Accuracy, Dropped, Tally, Finished>;

std::string ToLine(const Entry& entry);
// nullopt: the line is no report.
std::optional<Entry> Parse(absl::string_view line);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_WORKER_REPORTS_H_
