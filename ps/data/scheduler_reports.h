// The reports of one data thread to the scheduler, and to the operator's log: which replicas are
// ready, which links take nothing, how much each shard holds, and which workers hold up pulls.
//
// Lives on the thread's loop; DataThread calls it once a heartbeat interval. Reports are repeated
// until the map shows what they lead to, so that one that is lost does no harm.
#ifndef LEEWAY_PS_DATA_SCHEDULER_REPORTS_H_
#define LEEWAY_PS_DATA_SCHEDULER_REPORTS_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/data/state/thread_state.h"
#include "ps/data/stragglers.h"

namespace leeway::ps {

class SchedulerReports {
 public:
  // `tell` (may be null) passes a message on to the scheduler. `lines`: shared by the threads of a
  // server; null: this thread's own.
  SchedulerReports(ThreadState* state, std::function<void(proto::AnyMessage)> tell,
                   std::shared_ptr<StragglerLines> lines)
      : state_(state),
        tell_(std::move(tell)),
        straggler_lines_(lines != nullptr ? std::move(lines) : std::make_shared<StragglerLines>()) {
  }

  // A link that takes nothing for so long is reported.
  void SetLinkPatience(absl::Duration patience) { link_patience_ = patience; }

  // The replica has all of its shard's state.
  void SayReady(const Replica& replica);
  void ReportLinks();
  void ReportLoad();
  void LogStragglers();

 private:
  ThreadState* const state_;
  const std::function<void(proto::AnyMessage)> tell_;
  const std::shared_ptr<StragglerLines> straggler_lines_;
  absl::Duration link_patience_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_SCHEDULER_REPORTS_H_
