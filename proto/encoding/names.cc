#include <iterator>
#include <variant>

#include "proto/encoding/encoding.h"

namespace leeway::proto {

absl::string_view NameOf(const AnyMessage& message) {
  static constexpr absl::string_view kNames[] = {"nothing",
                                                 "Hello",
                                                 "Reject",
                                                 "Goodbye",
                                                 "Join",
                                                 "Welcome",
                                                 "Refused",
                                                 "ClusterMap",
                                                 "MapAck",
                                                 "Heartbeat",
                                                 "HeartbeatAck",
                                                 "NodeDown",
                                                 "Leave",
                                                 "LeaveAck",
                                                 "Shutdown",
                                                 "BarrierEnter",
                                                 "BarrierRelease",
                                                 "CreateTable",
                                                 "OpenTable",
                                                 "TableReply",
                                                 "InstallTable",
                                                 "InstallTableReply",
                                                 "Request",
                                                 "Reply",
                                                 "ClockTick",
                                                 "ClockAck",
                                                 "Call",
                                                 "CallReply",
                                                 "StatusRequest",
                                                 "StatusReply",
                                                 "EnterClock",
                                                 "EnterClockReply",
                                                 "Replicate",
                                                 "ReplicateAck",
                                                 "ReplicaReady",
                                                 "LoadReport",
                                                 "Admin",
                                                 "AdminReply",
                                                 "CheckpointPrepare",
                                                 "CheckpointPrepared",
                                                 "CheckpointCut",
                                                 "CheckpointWritten",
                                                 "RestoreShards",
                                                 "RestoreShardsReply",
                                                 "SchedulerMoved",
                                                 "PushBatch",
                                                 "PushAcks",
                                                 "CodecReport",
                                                 "LinkReport",
                                                 "LeadNow"};
  static_assert(std::size(kNames) == std::variant_size_v<AnyMessage>);
  return message.valueless_by_exception() ? kNames[0] : kNames[message.index()];
}

}  // namespace leeway::proto
