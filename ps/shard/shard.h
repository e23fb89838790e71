// One shard: its part of every table, and all that decides what happens to them: which requests of
// each worker have been admitted, how far the workers are, the pushes that wait for their clock to
// close and the pulls that wait for slow workers. Knows no other shard and no network: what it
// does goes to a ShardEffects.
//
// It is a state machine that the head of its chain drives with what workers say, and that the
// other replicas drive with what the head has logged (shard_replica.cc): then all are equal.
#ifndef LEEWAY_PS_SHARD_SHARD_H_
#define LEEWAY_PS_SHARD_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/consistency/worker_clocks.h"
#include "ps/replication/log/log_entry.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/shard/pending_pulls.h"
#include "ps/shard/request_order.h"
#include "ps/shard/shard_context.h"
#include "ps/shard/shard_cut.h"
#include "ps/table/contributions.h"
#include "ps/table/inbound.h"

namespace leeway::ps {

// Requests to tables whose pushes are held (BSP) and to all others are ordered apart: only then is
// what is in the state of the shard, of either, all up to one number.
enum RequestClass : std::size_t { kAtOnce = 0, kHeld = 1, kRequestClasses = 2 };

class Shard {
 public:
  Shard(std::uint32_t id, ShardContext* context, ShardEffects* effects);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // What the map says of a worker; to every replica. Settle() after the last of a row, as head.
  void SetWorker(const proto::WorkerEntry& entry);

  // ---- as head: requests (shard_requests.cc) ----

  // A request of a worker that the newest map shows as living: admitted when its turn comes, and
  // answered, now or later. True if that made a tick count which had waited for it.
  bool TakeRequest(Inbound inbound);
  // A pull of a reader: answered as the table is now, held by nobody, in no order.
  void Read(Inbound inbound);
  // What a connection that is gone had asked for: it will be asked again.
  void DropPeer(van::PeerId peer);
  // Answers what waits for its predecessors with an error, and forgets ticks that do not count yet.
  void RefuseEarly(const absl::Status& why);

  // ---- as head: clocks (shard.cc) ----

  struct Watermarks {
    std::uint64_t by_class[kRequestClasses] = {0, 0};
  };
  // The worker has ended its iterations up to `clock`. Counts once its requests up to the
  // watermarks have been admitted. Ticks are cumulative, so one that waits gives way to a later
  // one. It takes part in those from `since` on.
  void TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                std::uint64_t since, const Watermarks& watermarks);
  // A worker that came late counts from now on. Returns its clock.
  std::uint64_t Enter(std::uint32_t rank, std::uint64_t incarnation);
  // Logs that nothing has changed: an entry for others to wait for.
  void LogConfirm();
  // Closes the clocks that everyone has ended and answers the pulls that waited for that.
  void Settle();

  // ---- changes of the chain, and as a replica (shard_replica.cc) ----

  // `inherited`: another replica was the head before.
  void BecomeHead(bool inherited);
  // Another replica is the head now. Answers what waits with `why`, forgets what is not in the log
  // and returns it, for the new head: Held entries and a HandoverEnd.
  std::vector<LogEntry> StepDown(const absl::Status& why);
  // What StepDown of the old head returned.
  void TakeOver(const std::vector<LogEntry>& entries);

  // The next entry of the log: its updates, if it is a Close, and the entry itself. An error if it
  // cannot be applied here (now); then nothing has changed.
  absl::Status Follow(const std::vector<LogEntry>& updates, const LogEntry& entry);

  // The whole state: BeginFill, LoadPiece for each piece; the log goes on after it.
  LogEntry FillBegin() const;
  std::vector<LogEntry> Freeze();
  void BeginFill(const LogEntry& begin);
  absl::Status LoadPiece(const LogEntry& piece);

  // ---- checkpoints (shard_checkpoint.cc) ----

  // As head: no push of a later clock has been applied.
  std::uint64_t newest_clock() const;
  // Takes the state of a clock when that has come. OUT_OF_RANGE: it has passed. ABORTED: it cannot
  // be told yet.
  absl::Status BeginCut(const CutOrder& order, ShardCut::Done done);
  void AbandonCut(const absl::Status& why);
  // Before anything has come from workers: takes what belongs here from a checkpoint's shard.
  // Returns how many rows and blocks that were.
  absl::StatusOr<std::uint64_t> Restore(const ShardContent& content);

  // ---- what there is ----

  std::uint32_t id() const { return id_; }
  std::uint64_t index() const { return index_; }    // of the last log entry that was applied
  std::uint64_t closed() const { return closed_; }  // clocks below it have closed, for good
  // Whether pushes are held that their workers do not keep as well.
  bool HoldsFirmly() const;
  const WorkerClocks& progress() const { return clocks_; }
  const std::map<std::uint32_t, std::unique_ptr<ShardStore>>& stores() const { return stores_; }
  const PendingPulls& held() const { return held_; }
  std::uint64_t requests() const { return requests_; }
  // Of all that the state machine is, but not of what only a head has.
  std::uint64_t Digest();

 private:
  using WorkerKey = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation

  // What is known of one start of a worker's process.
  struct ClientSession {
    explicit ClientSession(runtime::ByteBudget* early) : streams{Stream(early), Stream(early)} {}

    bool Reached(const Watermarks& watermarks) const;

    Stream streams[kRequestClasses];
    // Of the held class: the highest number that is in the state, since its clock has closed.
    std::uint64_t in_state = 0;
    // Up to these numbers an earlier head admitted.
    std::uint64_t inherited[kRequestClasses] = {0, 0};
    // By the log; WorkerClocks knows it too, of workers that the map shows.
    std::uint64_t clock = 0;
    std::uint64_t since = WorkerClocks::kNotEntered;
    bool restored = false;  // of a worker of another cluster, as a checkpoint knows it
    // The newest tick that cannot count yet; clock 0: none.
    std::uint64_t tick_clock = 0;
    Watermarks tick_watermarks;
  };

  ClientSession& SessionOf(const WorkerKey& worker);
  // Another process has its rank: what a head that has not heard of that says of it is passed over.
  bool IsReplaced(const WorkerKey& worker) const;
  RequestClass ClassOf(const proto::Request& request) const;
  void AdmitNext(ClientSession* session, RequestClass kind, Inbound inbound);
  absl::Status Admit(Inbound inbound);
  void AnswerAgain(const ClientSession& session, RequestClass kind, Inbound inbound);
  void Refuse(const Inbound& inbound, const absl::Status& why);
  void RefusePull(const Inbound& inbound, const absl::Status& why);
  void Acknowledge(const Inbound& inbound, bool held);

  absl::StatusOr<const Table*> TableFor(const proto::Request& request) const;
  ShardStore* StoreOf(const Table& table);
  // To be updated by those settings.
  ShardStore* StoreOf(const Table& table, const HeldSettings& settings);
  const HeldSettings& SettingsFor(const Table& table, std::uint64_t clock) const;
  absl::Status ChargeHeld(std::uint64_t bytes) const;
  absl::Status ChargePushPull(const Table& table, const Inbound& inbound) const;
  absl::Status CheckFinite(const Table& table, const proto::Request& request, const PushView& push);
  absl::Status TakePush(const Table& table, Inbound* inbound, bool* held);
  absl::Status TakePush(const Table& table, Inbound* inbound, bool* held, bool* begun);
  absl::Status OutOfMemory(const Table& table, const Inbound& inbound, bool begun);
  static absl::StatusOr<PullResult> PullFrom(ShardStore* store, const PullView& view);
  std::uint64_t ClockOfContent(const Table& table) const;
  void ServeOrHold(const Table& table, Inbound inbound);
  void Serve(const Table& table, const Inbound& inbound, std::uint64_t needed,
             std::uint64_t effective);
  void Hold(const Table& table, Inbound inbound, const PullDecision& decision);
  void ArmTimer();
  void OnTimer();
  absl::Time DeadlineOf(const Inbound& inbound) const;
  absl::Status DeadlineExceeded(const PendingPull& pull) const;

  void BeginsAt(const WorkerKey& worker, std::uint64_t since);
  bool CountTickIfDue(const WorkerKey& worker, ClientSession* session);
  void Close(std::uint64_t clock);
  void CloseTarget(std::uint64_t clock, const Target& target, std::vector<Contribution> list);
  void DropMisfits(const Table& table, std::uint64_t clock, std::span<const Contribution> list,
                   std::vector<PushView>* pushes);
  absl::Status ApplyAndLog(const Table& table, std::uint64_t clock,
                           const std::vector<PushView>& pushes, std::uint32_t contributors);
  void ServeNeeding(std::uint64_t needed);
  void AppendToLog(LogEntry entry);
  void LoseFeedback();
  void ForgetSlowest();
  void FinishCutIfDue();
  void FinishCut();
  std::vector<proto::ClientSession> Windows(bool with_held) const;
  void TakeSessions(const std::vector<proto::ClientSession>& sessions);
  std::vector<proto::Refusal> Refusals() const;
  void TakeRefusals(const std::vector<proto::Refusal>& refusals);
  void EnterSession(const WorkerKey& worker, std::uint64_t clock, std::uint64_t since);

  const std::uint32_t id_;
  ShardContext* const context_;
  ShardEffects* const effects_;

  // The state that is replicated; of the sessions, not what waits in them.
  std::map<std::uint32_t, std::unique_ptr<ShardStore>> stores_;  // by table
  std::map<std::uint32_t, std::uint32_t> settings_;  // by table: which the store uses; none: 0
  std::map<WorkerKey, ClientSession> sessions_;
  std::map<std::uint32_t, std::uint64_t> replaced_;  // by rank: the incarnation before this one
  // Those whose sessions keep, or have kept, what has come early: when one of many connections goes
  // only these are looked at.
  std::set<WorkerKey> early_from_;
  WorkerClocks clocks_;
  std::uint64_t closed_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t pushed_until_ = 0;  // pushes that were applied at once are of clocks below it

  // The head's own.
  Contributions contributions_;
  std::uint64_t firm_ = 0;  // contributions to clocks below it may be here alone
  PendingPulls held_;
  absl::Time grace_until_ = absl::InfinitePast();
  std::uint64_t requests_ = 0;
  runtime::TimerId timer_ = runtime::TimerId::kNone;
  absl::Time timer_at_ = absl::InfiniteFuture();
  SavedGenerations saved_;
  std::unique_ptr<ShardCut> cut_;  // null: no checkpoint is being taken
};

// The answer to a request as far as the request itself says it.
proto::Reply ReplyTo(const proto::Request& request);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_SHARD_H_
