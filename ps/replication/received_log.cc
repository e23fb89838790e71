#include "ps/replication/received_log.h"

#include "absl/strings/str_cat.h"

namespace leeway::ps {

void ReceivedLog::TakeUpdate(LogEntry update) {
  if (update.header.index == shard_->index() + 1) updates_.push_back(std::move(update));
}

absl::Status ReceivedLog::TakeEntry(const LogEntry& entry, bool joining,
                                    std::vector<LogEntry>* updates, Outcome* outcome) {
  *outcome = Outcome::kNothing;
  const std::uint64_t index = entry.header.index;
  if (joining && !transfer_begun_) {
    return absl::FailedPreconditionError("an entry of the log before the state");
  }
  if (index <= shard_->index()) return absl::OkStatus();
  if (broken_ || index != shard_->index() + 1) {
    return absl::InternalError(
        absl::StrCat("entry ", index, " of the log cannot follow entry ", shard_->index()));
  }
  *updates = std::exchange(updates_, {});
  absl::Status followed = shard_->Follow(*updates, entry);
  if (followed.ok()) {
    *outcome = Outcome::kApplied;
  } else if (absl::IsFailedPrecondition(followed)) {
    updates_ = std::move(*updates);
  } else {
    broken_ = true;
    *outcome = Outcome::kBroken;
  }
  return followed;
}

absl::Status ReceivedLog::BeginTransfer(const LogEntry& begin, bool joining) {
  if (!joining) return absl::FailedPreconditionError("no state transfer is due");
  shard_->ImportBegin(begin);
  transfer_begun_ = true;
  broken_ = false;
  has_state_ = false;
  return absl::OkStatus();
}

absl::Status ReceivedLog::TakePiece(const LogEntry& piece) {
  if (!transfer_begun_)
    return absl::FailedPreconditionError("a piece of a state transfer without its begin");
  return shard_->LoadPiece(piece);
}

void ReceivedLog::EndTransfer() { has_state_ = transfer_begun_; }

void ReceivedLog::OnNewPredecessor() {
  updates_.clear();
  handed_over_.clear();
  transfer_begun_ = has_state_ = false;
}

}  // namespace leeway::ps
