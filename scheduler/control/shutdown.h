// Who still has to be told that the cluster is over. Connections may lose the word, so it is said
// again until everyone has gone, or a short grace has passed.
#ifndef LEEWAY_SCHEDULER_CONTROL_SHUTDOWN_H_
#define LEEWAY_SCHEDULER_CONTROL_SHUTDOWN_H_

#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace leeway::scheduler {

inline constexpr absl::Duration kEndingGrace = absl::Seconds(5);
inline constexpr absl::Duration kEndingResendInterval = absl::Milliseconds(500);

class Ending {
 public:
  // `word`: what the nodes are told. `result`: what the scheduler's owner is told.
  Ending(absl::Status word, absl::Status result)
      : word_(std::move(word)), result_(std::move(result)) {}

  void Await(std::uint32_t node) { awaited_.insert(node); }
  void Gone(std::uint32_t node) { awaited_.erase(node); }
  bool over() const { return awaited_.empty(); }

  const std::set<std::uint32_t>& awaited() const { return awaited_; }
  const absl::Status& word() const { return word_; }
  const absl::Status& result() const { return result_; }

 private:
  const absl::Status word_, result_;
  std::set<std::uint32_t> awaited_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_SHUTDOWN_H_
