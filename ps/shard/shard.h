// One shard: its part of every table, and the state machine that decides what happens to it. The
// head of its chain drives it with what workers ask; the other replicas drive it with what the head
// has logged, and then all are equal.
//
// Lives on the data thread's loop. Knows no other shard and no network: what it does goes to a
// ShardEffects and its answers to an AnswerSink, which outlive all calls of it. It puts together
// the classes that do the work: RequestAdmission, Pushes, Pulls, OpenClocks, ShardCuts, and the
// functions of log_follower.h and state_transfer.h; what they share is a ShardState. Clocks are its
// own work: which tick counts, which clock closes.
#ifndef LEEWAY_PS_SHARD_SHARD_H_
#define LEEWAY_PS_SHARD_SHARD_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/consistency/worker_clocks.h"
#include "ps/replication/log/answer_sink.h"
#include "ps/replication/log/log_entry.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/shard/delay_compensation.h"
#include "ps/shard/log_follower.h"
#include "ps/shard/open_clocks.h"
#include "ps/shard/publishing/publications.h"
#include "ps/shard/pulls.h"
#include "ps/shard/pushes.h"
#include "ps/shard/request_admission.h"
#include "ps/shard/shard_cut.h"
#include "ps/shard/state/answers.h"
#include "ps/shard/state/shard_state.h"
#include "ps/shard/state_transfer.h"
#include "ps/table/inbound.h"

namespace leeway::ps {

class Shard {
 public:
  using Watermarks = leeway::ps::Watermarks;

  Shard(std::uint32_t id, ShardContext* context, ShardEffects* effects, AnswerSink* answers);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // A worker as the map shows it; at every replica. The head calls CloseClocks() after the last
  // one.
  void SetWorker(const proto::WorkerEntry& entry);
  // All workers have been set as the map of that version shows them.
  void SeeMap(std::uint64_t version) { state_.sessions.SeeMap(version); }

  // ---- as head: requests ----

  // A request of a worker that the newest map shows as living: admitted when its turn comes, and
  // answered, now or later. True if a tick that had waited for the request counts now.
  bool TakeRequest(Inbound inbound);
  // A pull of a reader: answered with the table as it is now, in no order.
  void Read(Inbound inbound);
  // A connection is gone: what it had asked for will be asked again.
  void DropPeer(van::PeerId peer);
  // Answers requests that wait for their predecessors with an error, and forgets ticks that do not
  // count yet.
  void RefuseEarly(const absl::Status& why);

  // ---- as head: clocks ----

  // The worker has ended its iterations up to `clock`. Counts once its requests up to the
  // watermarks have been admitted. Ticks are cumulative, so one that waits gives way to a later
  // one. It takes part in those from `since` on.
  void TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                std::uint64_t since, const Watermarks& watermarks);
  // A worker that joins late counts from now on. Returns its clock.
  std::uint64_t Enter(std::uint32_t rank, std::uint64_t incarnation);
  // Logs an entry that changes nothing: once it is on every replica, this one led when it was
  // logged.
  void LogConfirm();
  // Closes the clocks that all workers have ended, and answers the pulls that waited for that.
  void CloseClocks();

  // ---- changes of the head ----

  // `inherited`: another replica was the head before.
  void BecomeHead(bool inherited);
  // Another replica is the head now. Answers what waits with `why`, forgets what is not in the log
  // and returns it, for the new head: Held entries and a HandoverEnd.
  std::vector<LogEntry> StepDown(const absl::Status& why);
  // Takes the entries that StepDown of the old head returned.
  void TakeOver(const std::vector<LogEntry>& entries);

  // ---- as another replica (log_follower.h, state_transfer.h) ----

  absl::Status Follow(const std::vector<LogEntry>& updates, const LogEntry& entry) {
    return FollowLog(updates, entry, &state_);
  }
  LogEntry ExportBegin() const { return ps::ExportBegin(state_); }
  std::vector<LogEntry> Freeze() { return ExportPieces(&state_); }
  void ImportBegin(const LogEntry& begin);
  absl::Status LoadPiece(const LogEntry& piece) { return ImportPiece(piece, &state_); }

  // ---- checkpoints (shard_cut.h, state_transfer.h) ----

  // As head: no push of a later clock has been applied.
  std::uint64_t newest_clock() const;
  absl::Status BeginCut(const CutOrder& order, ShardCut::Done done) {
    return cuts_.Begin(order, std::move(done));
  }
  void AbandonCut(const absl::Status& why) { cuts_.Abandon(why); }
  absl::StatusOr<std::uint64_t> Restore(const ShardContent& content) {
    return ps::Restore(content, &state_);
  }

  // ---- publications (publishing/publications.h) ----

  absl::Status BeginPublication(const proto::Publish& publish, Publications::Done done) {
    return publications_.Begin(publish, std::move(done));
  }
  // At every replica.
  void KeepPublications(const std::set<std::uint64_t>& kept) { state_.published.Keep(kept); }

  // ---- what there is ----

  std::uint32_t id() const { return state_.id; }
  std::uint64_t index() const { return state_.index; }
  std::uint64_t closed() const { return state_.closed; }
  const WorkerClocks& clocks() const { return state_.clocks; }
  const ShardStores::ByTable& stores() const { return state_.stores.all(); }
  const std::map<std::uint32_t, CollectedPushes>& collected() const {
    return state_.stores.collected();
  }
  template <class F>
  void ForEachPendingPull(const F& f) const {
    pulls_.ForEachPending(f);
  }
  std::size_t num_pending_pulls() const { return pulls_.num_pending(); }
  // Policy::WhyOpen of a table.
  std::string WhyOpen(std::uint32_t table) const {
    return state_.context->tables.Find(table)->newest_settings().policy.WhyOpen(state_.clocks);
  }
  // OpenClocks::HoldsUnkept.
  bool HoldsUnkept() const { return open_clocks_.HoldsUnkept(); }
  std::uint64_t requests() const { return requests_; }
  // A hash of what is in the stores, and of the index: the same at all replicas.
  std::uint64_t Digest() const { return state_.stores.Digest(state_.index); }

 private:
  void BeginsAt(const WorkerKey& worker, std::uint64_t since);
  bool AdvanceIfDue(const WorkerKey& worker, ClientSession* session);
  bool AdvanceToWaiting(const WorkerKey& worker, const ClientSession& session);
  bool CountTickIfDue(const WorkerKey& worker, ClientSession* session);
  void CloseInOrder();
  bool CloseByCount();
  void NoteShort(const Table& table);
  void ApplyEnough();
  bool AdmitWaiting();
  void DiscardOfTheDead(const std::vector<proto::ClientSession>& handed_over);

  ShardState state_;
  OpenClocks open_clocks_;
  ShardCuts cuts_;
  Publications publications_;
  DelayCompensation compensation_;
  Pushes pushes_;
  Pulls pulls_;
  RequestAdmission admission_;
  std::uint64_t requests_ = 0;
  std::set<std::uint32_t> short_;  // tables of which NoteShort has said it
  // What ApplyEnough has seen: the living workers, and Tables::settings_changes.
  std::optional<std::pair<std::uint32_t, std::uint64_t>> enough_for_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_SHARD_H_
