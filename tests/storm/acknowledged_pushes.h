// What the workers of a storm have told, and whether their counters bear it out.
#ifndef LEEWAY_TESTS_STORM_ACKNOWLEDGED_PUSHES_H_
#define LEEWAY_TESTS_STORM_ACKNOWLEDGED_PUSHES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/storm/worker_reports.h"

namespace leeway::storm {

// How a storm ended for the pushes that were acknowledged.
struct Verdict {
  std::uint64_t pushes = 0;         // acknowledged
  std::uint64_t lost = 0;           // of them: not in the tables, or not in all of their elements
  std::uint64_t applied_twice = 0;  // likewise: more than once
  std::uint64_t tallies = 0;        // looked at; none: nobody has told
  std::string first_mistake;        // in words

  bool good() const { return lost == 0 && applied_twice == 0 && tallies > 0; }
};

class AcknowledgedPushes {
 public:
  // One process that worked.
  struct Life {
    std::uint32_t rank = 0;
    std::uint64_t began = 0;
    std::optional<std::uint64_t> last_step;  // it has ended
    bool was_killed = false;
    std::optional<Finished> finished;
    std::vector<Step> steps;
    std::vector<absl::Time> acknowledged;
  };

  // A process has started; what it says is to be told with this number.
  std::size_t NewLife(std::uint32_t rank);
  void OnLine(std::size_t life, absl::string_view line);
  void Killed(std::size_t life) { lives_[life].was_killed = true; }

  const std::vector<Life>& lives() const { return lives_; }
  std::optional<double> accuracy() const { return accuracy_; }
  // The slowest living worker's.
  std::uint64_t StepsDone() const;
  // The longest that any worker waited in a step that was under way in this time.
  absl::Duration LongestWait(absl::Time from, absl::Time to) const;
  // The first acknowledgement of a push to all shards that any worker had after that, and the first
  // that the last of them had. Infinite future: none yet.
  absl::Time FirstAcknowledgement(absl::Time after) const;
  absl::Time LastFirstAcknowledgement(absl::Time after) const;
  Finished Totals() const;

  Verdict Judge() const;

 private:
  void Judge(const Tally& tally, Verdict* verdict) const;

  std::vector<Life> lives_;
  std::vector<Tally> tallies_;
  std::optional<double> accuracy_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_ACKNOWLEDGED_PUSHES_H_
