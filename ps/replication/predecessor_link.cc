#include "ps/replication/predecessor_link.h"

namespace leeway::ps {

PredecessorLink::Verdict PredecessorLink::Judge(const Peer& sender, van::PeerId connection,
                                                const proto::Replicate& header, bool leads) {
  const bool mine = predecessor_.has_value() && predecessor_->peer.server() == sender.server();
  const bool late = header.epoch < (mine ? predecessor_->since : 0);
  if (!mine || late) {
    if (!mine) stray_ = Stray{sender.server(), connection, header.stream};
    // One without a stream says that there is nothing to hand over; to acknowledge it would be to
    // ask for the handover.
    const bool repeated =
        leads && header.kind == proto::LogEntryKind::kHandoverEnd && header.stream != 0;
    return repeated ? Verdict::kRepeatedHandoverEnd : Verdict::kIgnore;
  }
  predecessor_->connection = connection;
  const bool of_handover =
      header.kind == proto::LogEntryKind::kHeld || header.kind == proto::LogEntryKind::kHandoverEnd;
  // The old head has heard of the handover first. It is asked for it when the map is here.
  if (of_handover && !leads && !awaited_.has_value()) {
    return Verdict::kIgnore;
  }
  if (header.stream == 0) {
    const bool awaited = awaited_.has_value() && header.kind == proto::LogEntryKind::kHandoverEnd;
    return awaited ? Verdict::kNothingHandedOver : Verdict::kIgnore;
  }
  switch (receiver_.Judge(header.stream, header.entry)) {
    case ReplicationReceiver::Verdict::kOld:
      return Verdict::kIgnore;
    case ReplicationReceiver::Verdict::kUnknown:
      return Verdict::kUnknownStream;
    case ReplicationReceiver::Verdict::kSeen:
    case ReplicationReceiver::Verdict::kGap:
      return Verdict::kAcknowledge;
    case ReplicationReceiver::Verdict::kNext:
      return Verdict::kTake;
  }
  return Verdict::kIgnore;
}

bool PredecessorLink::Set(const std::optional<Peer>& wanted, std::uint64_t epoch,
                          std::optional<Greeting>* greeting) {
  if (predecessor_.has_value() && wanted == predecessor_->peer) return false;
  if (!predecessor_.has_value() && !wanted.has_value()) return false;
  predecessor_.reset();
  receiver_.Forget();
  if (!wanted.has_value()) return true;
  predecessor_ = Predecessor{.peer = *wanted, .since = epoch};
  if (stray_.has_value() && stray_->sender == wanted->server()) {
    *greeting = Greeting{.connection = stray_->connection, .stream = stray_->stream};
  }
  stray_.reset();
  return true;
}

void PredecessorLink::OnPeerDown(van::PeerId connection) {
  if (predecessor_.has_value() && predecessor_->connection == connection)
    predecessor_->connection = 0;
  if (stray_.has_value() && stray_->connection == connection) stray_.reset();
}

bool PredecessorLink::IsAbout(const proto::LeadNow& lead) const {
  if (!awaited_.has_value()) return false;
  return awaited_->place.server_rank == lead.from && lead.epoch >= awaited_since_;
}

}  // namespace leeway::ps
