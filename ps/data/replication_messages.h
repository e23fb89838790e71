// The messages of other servers as a data thread takes them: log entries and acknowledgements,
// which it hands to the replica concerned, and news of the scheduler.
//
// Lives on the thread's loop. A peer that is not what it claims is dropped; what comes from a
// server that the newest map does not show as living is ignored, and sent again by one that still
// has reason to.
#ifndef LEEWAY_PS_DATA_REPLICATION_MESSAGES_H_
#define LEEWAY_PS_DATA_REPLICATION_MESSAGES_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/data/scheduler_reports.h"
#include "ps/data/state/thread_state.h"
#include "van/van.h"

namespace leeway::ps {

class ReplicationMessages {
 public:
  // Both outlive this. `failure_timeout`: a server that has heard nobody for so long is isolated.
  ReplicationMessages(ThreadState* state, SchedulerReports* reports, absl::Duration failure_timeout)
      : state_(state),
        reports_(reports),
        failure_timeout_(failure_timeout),
        replica_heard_(state->loop->Now()) {}

  void OnReplicate(van::PeerId peer, const van::Identity& sender, proto::Replicate header,
                   Payload payload);
  void OnReplicateAck(van::PeerId peer, const van::Identity& sender,
                      const proto::ReplicateAck& ack);

  // Whether the scheduler has been heard lately.
  void SetSchedulerHeard(bool heard) {
    scheduler_heard_ = heard;
    CheckIsolation();
  }
  // Notes in the replicas' context whether neither the scheduler nor another replica is heard: then
  // another server may lead the shards by now, and what is read here may be old.
  void CheckIsolation();

 private:
  absl::StatusOr<Peer> ServerFrom(const van::Identity& sender) const;
  void AnswerForeignRequest(const Peer& server, van::PeerId peer, const proto::ReplicateAck& ack);

  ThreadState* const state_;
  SchedulerReports* const reports_;
  const absl::Duration failure_timeout_;
  bool scheduler_heard_ = true;
  absl::Time replica_heard_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_REPLICATION_MESSAGES_H_
