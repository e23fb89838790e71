// AcknowledgedPushes collects the reports of a storm's workers, and checks their counters against
// them.
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

// The result of a storm for the acknowledged pushes.
struct Verdict {
  std::uint64_t pushes = 0;         // acknowledged
  std::uint64_t lost = 0;           // of them: missing in the tables, or in some elements
  std::uint64_t applied_twice = 0;  // of them: more than once
  std::uint64_t dropped = 0;        // of them: to one table, its worker was told so
  std::uint64_t tallies = 0;        // that were checked; 0: no worker has reported any
  std::string first_mistake;        // in words

  bool good() const { return lost == 0 && applied_twice == 0 && tallies > 0; }
};

class AcknowledgedPushes {
 public:
  // One process of a worker.
  struct Life {
    std::uint32_t rank = 0;
    std::uint64_t began = 0;
    std::optional<std::uint64_t> last_step;  // set when it has ended
    bool was_killed = false;
    std::optional<Finished> finished;
    std::vector<Step> steps;
    std::vector<absl::Time> acknowledged;
    std::map<std::string, std::set<std::uint64_t>> dropped;  // steps, by table
  };

  // A process has started; its reports are passed on with the returned number.
  std::size_t NewLife(std::uint32_t rank);
  void OnLine(std::size_t life, absl::string_view line);
  void Killed(std::size_t life) { lives_[life].was_killed = true; }

  const std::vector<Life>& lives() const { return lives_; }
  std::optional<double> accuracy() const { return accuracy_; }
  // The steps of the slowest living worker.
  std::uint64_t StepsDone() const;
  // The longest wait of any worker in a step that was under way in this time.
  absl::Duration LongestWait(absl::Time from, absl::Time to) const;
  // The first time after `after` at which a worker had an acknowledgement of a push to all shards;
  // and the first at which all had. Infinite future: not yet.
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
