// The log as a replica receives it: gathers what belongs together (the updates of a Close, the
// pieces of a state transfer, the entries of a handover), and applies it to the shard in order.
//
// Owned by its Replica, which has judged the sender (PredecessorLink).
#ifndef LEEWAY_PS_REPLICATION_RECEIVED_LOG_H_
#define LEEWAY_PS_REPLICATION_RECEIVED_LOG_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ps/replication/log/log_entry.h"
#include "ps/shard/shard.h"

namespace leeway::ps {

class ReceivedLog {
 public:
  // `shard` outlives this.
  explicit ReceivedLog(Shard* shard) : shard_(shard) {}

  // ---- entries ----

  // An update of the Close that is to come.
  void TakeUpdate(LogEntry update);
  enum class Outcome {
    kNothing,  // it was applied before, or cannot be applied now: nothing has changed
    kApplied,
    kBroken,  // it could not be applied though its head has done so: the replica is broken now
  };
  // Applies the next entry. `joining`: the state has to come first. `updates`: those that were
  // applied with the entry. On an error the entry counts as not taken.
  absl::Status TakeEntry(const LogEntry& entry, bool joining, std::vector<LogEntry>* updates,
                         Outcome* outcome);

  // ---- a state transfer ----

  absl::Status BeginTransfer(const LogEntry& begin, bool joining);
  absl::Status TakePiece(const LogEntry& piece);
  void EndTransfer();
  // All of the state has come.
  bool has_state() const { return has_state_; }

  // ---- a handover ----

  void TakeHandedOver(const LogEntry& entry) { handed_over_.push_back(entry); }
  void ForgetHandedOver() { handed_over_.clear(); }
  std::vector<LogEntry> ReleaseHandedOver() { return std::exchange(handed_over_, {}); }

  // The replica has differed from its head, or may have: of no use until a transfer begins.
  void Break() { broken_ = true; }
  bool broken() const { return broken_; }

  // A new stream begins with whole entries.
  void OnNewStream() { updates_.clear(); }
  void OnNewPredecessor();

 private:
  Shard* const shard_;
  std::vector<LogEntry> updates_;  // of the Close that is to come
  bool transfer_begun_ = false;
  bool has_state_ = false;
  bool broken_ = false;
  std::vector<LogEntry> handed_over_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_RECEIVED_LOG_H_
