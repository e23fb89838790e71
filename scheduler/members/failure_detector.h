// The deadlines of the nodes: each is put off whenever its node is heard. Lives on the scheduler's
// loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_FAILURE_DETECTOR_H_
#define LEEWAY_SCHEDULER_MEMBERS_FAILURE_DETECTOR_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace leeway::scheduler {

class FailureDetector {
 public:
  // `interval`: how often Silent is called.
  FailureDetector(absl::Duration timeout, absl::Duration interval)
      : timeout_(timeout), interval_(interval) {}

  // Nodes are watched from the first time they are heard until they are forgotten.
  void Heard(std::uint32_t node, absl::Time now);
  void Forget(std::uint32_t node) { heard_.erase(node); }

  // Nodes not heard for the timeout, by id. Time in which this was not called does not count: the
  // scheduler itself was stopped or starved then, and the messages it missed wait in its queues.
  std::vector<std::uint32_t> Silent(absl::Time now);

  // The time since the node was heard; zero for a node that is not watched.
  absl::Duration SilentFor(std::uint32_t node, absl::Time now) const;

 private:
  const absl::Duration timeout_, interval_;
  std::map<std::uint32_t, absl::Time> heard_;
  absl::Time asked_ = absl::InfinitePast();
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_FAILURE_DETECTOR_H_
