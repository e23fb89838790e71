// The pulls of one shard: each is answered with the values there are, or waits until the table's
// policy lets it go: until the slowest worker has come within the bound on staleness, as a rule.
//
// Used by the head alone, on the data thread's loop. Pulls that wait are charged to
// ShardContext::held and answered DEADLINE_EXCEEDED when their worker stops waiting. Readers' pulls
// (Read) never wait for workers.
#ifndef LEEWAY_PS_SHARD_PULLS_H_
#define LEEWAY_PS_SHARD_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/shard/delay_compensation.h"
#include "ps/shard/pending_pulls.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/inbound.h"
#include "ps/table/table.h"
#include "runtime/loop/timer.h"

namespace leeway::ps {

class Pulls {
 public:
  // Both outlive this.
  Pulls(ShardState* state, DelayCompensation* compensation)
      : state_(state),
        compensation_(compensation),
        pending_(&state->context->held),
        asking_(&state->context->held),
        timer_(state->context->loop, [this] { OnTimer(); }) {}

  // Answers the pull, or the pull of a push-pull, now or later.
  void ServeOrHold(const Table& table, Inbound inbound);
  // Answers a reader with the table as it is now, with all that has been applied, however slow a
  // worker is. Like an answer to a worker it leaves when no failure can undo what it says.
  void Read(const Table& table, const Inbound& inbound);
  // Answers with the table as it was frozen for the publication that the request names.
  void ServePublished(const Table& table, const Inbound& inbound, bool reader);
  // Whether the pull of a push-pull could wait if it has to; asked before its push is
  // applied.
  absl::Status CheckRoom(const Table& table, const Inbound& inbound);

  // The smallest clock that a pull waits for, and answers to those that wait for it.
  std::optional<std::uint64_t> FirstNeeded() const { return pending_.FirstNeeded(); }
  void ServeNeeding(std::uint64_t needed);
  // Clocks have gone on: answers the pulls that policies let go which do not go by the slowest
  // worker's clock.
  void ServeAsking();
  // A worker has ended its iterations below `clock`.
  void NoteTick(std::uint32_t rank, std::uint64_t clock);
  // After pulls have been answered or come: the timer is set to the first deadline.
  void ArmTimer();

  // A pull that waits was sent again: its answer goes to that connection. False: none such waits.
  bool Redirect(const proto::RequestId& id, van::PeerId peer) {
    return pending_.Redirect(id, peer) || asking_.Redirect(id, peer);
  }
  // Answers all that wait with an error.
  void RefuseAll(const absl::Status& why);
  void DropPeer(van::PeerId peer);
  void DropWorker(std::uint32_t rank);
  template <class F>
  void ForEachPending(const F& f) const {
    pending_.ForEach(f);
    asking_.ForEach(f);
  }
  std::size_t num_pending() const { return pending_.size() + asking_.size(); }

 private:
  PullDecision Decide(const Table& table, const proto::Request& request);
  void Serve(const Table& table, const Inbound& inbound, const PullDecision& decision);
  void NotePulled(const Table& table, std::uint32_t worker, PullView view, const PullResult& reply);
  void Hold(const Table& table, Inbound inbound, const PullDecision& decision);
  std::uint64_t ClockOfContent(const Table& table) const;
  void OnTimer();
  absl::Status DeadlineExceeded(const PendingPull& pull) const;

  ShardState* const state_;
  DelayCompensation* const compensation_;
  PendingPulls pending_;                           // until the slowest worker has reached a clock
  PendingPulls asking_;                            // of tables with other policies
  std::map<std::uint32_t, DynamicBound> dynamic_;  // by table
  runtime::Timer timer_;                           // rings at the first deadline, or earlier
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_PULLS_H_
