#include "ps/replication/successor_link.h"

namespace leeway::ps {
namespace {

// Bytes per second: what is on its way may take as long as it does at that speed. One entry may be
// as large as a message.
constexpr double kSlowestLink = 4 << 20;

}  // namespace

void SuccessorLink::Begin(const Peer& peer, bool joining, std::uint64_t epoch, absl::Time now) {
  End();
  // Greater than any before it, of this start of the server.
  const std::uint64_t stream = (epoch << 24) + (++context_->streams & 0xffffff);
  successor_ = std::make_unique<Successor>(peer, stream, context_->limits, &context_->log);
  heard_ = now;
  link_good_ = now;
  since_ = epoch;
  joining_ = transfer_waits_ = joining;
}

void SuccessorLink::End() {
  if (std::exchange(transferring_, false)) --context_->transfers;
  transfer_waits_ = joining_ = false;
  successor_.reset();
}

bool SuccessorLink::TakesLog() const {
  return successor_ != nullptr && !handing_over_ && !transfer_waits_;
}

// ---- state transfer ----

bool SuccessorLink::MayBeginTransfer() const {
  return transfer_waits_ && context_->transfers < kTransfersAtOnce;
}

void SuccessorLink::BeginTransfer(LogEntry begin, std::vector<LogEntry> pieces) {
  transfer_waits_ = false;
  transferring_ = true;
  ++context_->transfers;
  successor_->BeginTransfer(std::move(begin), std::move(pieces));
}

void SuccessorLink::EndTransfer(std::uint64_t index) {
  transferring_ = false;
  --context_->transfers;
  LogEntry end;
  end.header.kind = proto::LogEntryKind::kTransferEnd;
  end.header.index = index;
  successor_->Append(std::move(end));
}

// ---- handing over ----

void SuccessorLink::BeginHandover(std::vector<LogEntry> rest) {
  for (LogEntry& entry : rest) successor_->Append(std::move(entry));
  handing_over_ = true;
}

bool SuccessorLink::HandoverIsOver() const {
  return handing_over_ && successor_->CaughtUp() && successor_->sender().all_acked();
}

// ---- the link ----

bool SuccessorLink::NothingToSend() const {
  if (successor_ == nullptr) return true;
  if (transfer_waits_) return context_->transfers >= kTransfersAtOnce;  // others come first
  return successor_->CaughtUp() && successor_->sender().all_acked();
}

std::optional<proto::LinkReport> SuccessorLink::Look(std::uint64_t epoch, absl::Time now,
                                                     absl::Duration patience) {
  if (NothingToSend()) {
    link_good_ = now;
  }
  if (now - link_good_ <= patience) return std::nullopt;
  const auto on_its_way = static_cast<double>(successor_->sender().in_flight_bytes());
  if (now - link_good_ <= patience + absl::Seconds(on_its_way / kSlowestLink)) return std::nullopt;
  return proto::LinkReport{.epoch = epoch,
                           .shard = shard_,
                           .server = successor_->peer().place.server_rank,
                           .handover = handing_over_};
}

}  // namespace leeway::ps
