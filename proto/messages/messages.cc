#include "proto/messages/messages.h"

#include <utility>

namespace leeway::proto {

AnyMessage::AnyMessage() = default;
AnyMessage::AnyMessage(const AnyMessage&) = default;
AnyMessage::AnyMessage(AnyMessage&&) noexcept = default;
AnyMessage& AnyMessage::operator=(const AnyMessage&) = default;
AnyMessage& AnyMessage::operator=(AnyMessage&&) noexcept = default;
AnyMessage::~AnyMessage() = default;

template <class M>
requires kIsMessage<M> AnyMessage::AnyMessage(M message)
    : MessageVariant(std::in_place_type<M>, std::move(message)) {}

// One for each type.
template AnyMessage::AnyMessage(std::monostate);
template AnyMessage::AnyMessage(Hello);
template AnyMessage::AnyMessage(Reject);
template AnyMessage::AnyMessage(Goodbye);
template AnyMessage::AnyMessage(Join);
template AnyMessage::AnyMessage(Welcome);
template AnyMessage::AnyMessage(Refused);
template AnyMessage::AnyMessage(ClusterMap);
template AnyMessage::AnyMessage(MapAck);
template AnyMessage::AnyMessage(Heartbeat);
template AnyMessage::AnyMessage(HeartbeatAck);
template AnyMessage::AnyMessage(NodeDown);
template AnyMessage::AnyMessage(Leave);
template AnyMessage::AnyMessage(LeaveAck);
template AnyMessage::AnyMessage(Shutdown);
template AnyMessage::AnyMessage(BarrierEnter);
template AnyMessage::AnyMessage(BarrierRelease);
template AnyMessage::AnyMessage(CreateTable);
template AnyMessage::AnyMessage(OpenTable);
template AnyMessage::AnyMessage(TableReply);
template AnyMessage::AnyMessage(InstallTable);
template AnyMessage::AnyMessage(InstallTableReply);
template AnyMessage::AnyMessage(Request);
template AnyMessage::AnyMessage(Reply);
template AnyMessage::AnyMessage(ClockTick);
template AnyMessage::AnyMessage(ClockAck);
template AnyMessage::AnyMessage(Call);
template AnyMessage::AnyMessage(CallReply);
template AnyMessage::AnyMessage(StatusRequest);
template AnyMessage::AnyMessage(StatusReply);
template AnyMessage::AnyMessage(EnterClock);
template AnyMessage::AnyMessage(EnterClockReply);
template AnyMessage::AnyMessage(Replicate);
template AnyMessage::AnyMessage(ReplicateAck);
template AnyMessage::AnyMessage(ReplicaReady);
template AnyMessage::AnyMessage(LoadReport);
template AnyMessage::AnyMessage(Admin);
template AnyMessage::AnyMessage(AdminReply);
template AnyMessage::AnyMessage(CheckpointPrepare);
template AnyMessage::AnyMessage(CheckpointPrepared);
template AnyMessage::AnyMessage(CheckpointCut);
template AnyMessage::AnyMessage(CheckpointWritten);
template AnyMessage::AnyMessage(RestoreShards);
template AnyMessage::AnyMessage(RestoreShardsReply);
template AnyMessage::AnyMessage(SchedulerMoved);
template AnyMessage::AnyMessage(PushBatch);
template AnyMessage::AnyMessage(PushAcks);
template AnyMessage::AnyMessage(CodecReport);
template AnyMessage::AnyMessage(LinkReport);
template AnyMessage::AnyMessage(LeadNow);
template AnyMessage::AnyMessage(Publish);
template AnyMessage::AnyMessage(PublishReply);
template AnyMessage::AnyMessage(Published);

}  // namespace leeway::proto
