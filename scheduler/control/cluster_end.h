// The end of the cluster: begins it when the last worker has left or something fails, tells the
// nodes until they have gone, and then the scheduler's owner.
//
// A worker that died may come back: it is given the failure timeout. With
// LEEWAY_CHECKPOINT_AT_END a checkpoint is saved first. Connections may lose Shutdown, so it is
// sent again until every node has gone, for kEndingGrace at most. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CONTROL_CLUSTER_END_H_
#define LEEWAY_SCHEDULER_CONTROL_CLUSTER_END_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/loop/timer.h"
#include "scheduler/control/services.h"

namespace leeway::scheduler {

inline constexpr absl::Duration kEndingGrace = absl::Seconds(5);
inline constexpr absl::Duration kEndingResendInterval = absl::Milliseconds(500);

class ClusterEnd {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  explicit ClusterEnd(const Services* services);

  // The scheduler has started; `done` is called once, at the end, and may destroy the scheduler.
  void SetDone(Done done) { done_ = std::move(done); }

  // A worker has left or died, or the scheduler was restarted: ends the cluster if no worker is
  // left, at once or, if the last one `died`, when it does not come back.
  void EndIfDone(bool died);
  // A worker has joined late.
  void WorkerCame() { return_timer_.Clear(); }
  // Ends the cluster. The nodes are told `word`, the owner `result`.
  void End(const absl::Status& word, const absl::Status& result);
  // Ends the scheduler without a word to the nodes, and leaves the state on disk.
  void EndSilently(const absl::Status& why);
  // The node knows that the cluster is over, while it ends.
  void Gone(std::uint32_t node);

  bool running() const { return !ending_.has_value(); }
  // Nothing is left to do; before SetDone, too.
  bool over() const { return done_ == nullptr; }
  // The status that nodes are told, once the cluster ends.
  const absl::Status& word() const { return ending_->word; }

 private:
  struct Ending {
    absl::Status word, result;
    std::set<std::uint32_t> awaited;  // nodes that have not gone
  };

  void SaveAndEnd();
  void EndInOrder(const absl::Status& saved);
  void SendShutdown();
  void FinishIfAllGone();
  void Finish();

  const Services* const s_;
  Done done_;
  std::optional<Ending> ending_;
  bool saves_at_end_ = false;  // the last worker has left, a checkpoint is being saved
  runtime::Timer return_timer_, resend_timer_, grace_timer_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_CLUSTER_END_H_
