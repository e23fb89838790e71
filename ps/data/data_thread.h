// A server's data thread: takes what workers and other servers send to its endpoint, makes sure of
// who sent it and by which map, and hands it to the shard concerned (replica.h, shard.h).
// docs/architecture.md has the rules.
#ifndef LEEWAY_PS_DATA_DATA_THREAD_H_
#define LEEWAY_PS_DATA_DATA_THREAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "ps/data/rates.h"
#include "ps/data/reader_turns.h"
#include "ps/data/replies.h"
#include "ps/data/stragglers.h"
#include "ps/data/workers.h"
#include "ps/replication/replica.h"
#include "ps/replication/server_links.h"
#include "ps/shard/state/shard_context.h"
#include "ps/table/counters.h"
#include "runtime/loop/log_limiter.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::ps {

// Switches for tests; a user has no way to them.
struct DataOptions {
  bool test_only_never_hold = false;  // ShardContext
};

// Lives on one loop: constructed, used and destroyed there (or while the loop does not turn).
class DataThread final : private van::Handler, private ReplicaHost {
 public:
  struct Setup {
    Config config;
    std::uint32_t index = 0;        // among the server's data threads
    std::uint64_t incarnation = 0;  // the server's
    runtime::Loop* loop = nullptr;
    van::Factory* factory = nullptr;
    DataOptions options;
    TableMemory* table_memory = nullptr;  // the server's; outlives the thread. Optional.
    // Passes what this thread has to say on to the scheduler. Optional.
    std::function<void(proto::AnyMessage)> tell_scheduler;
    // The scheduler is to be found elsewhere. Optional.
    std::function<void(const proto::SchedulerMoved&)> scheduler_moved;
    // This server is of no more use, and others should take its place. Optional.
    std::function<void(const absl::Status&)> give_up;
    // Of all data threads of the server. Optional.
    std::shared_ptr<StragglerLines> straggler_lines = {};
  };

  explicit DataThread(const Setup& setup);
  ~DataThread() override;

  // Returns the address workers connect to.
  absl::StatusOr<std::string> Listen(absl::string_view address);

  // Where the scheduler has put this server. Before the first map.
  void SetPlace(const proto::Welcome& welcome);
  // A newer map; older ones are ignored. `taken` is called when the thread acts by it: at once, or
  // when the shards that it gives to this thread have been handed over. Not at all if another map
  // comes before.
  void TakeMap(std::shared_ptr<const proto::ClusterMap> map,
               absl::AnyInvocable<void()> taken = nullptr);
  absl::Status InstallTable(std::uint32_t id, const TableSpec& spec,
                            std::unique_ptr<Updater> updater);
  // Whether that table could have the settings of `spec`, by an updater made for them. UNAVAILABLE:
  // it is not here yet.
  absl::Status CheckSettings(std::uint32_t id, const TableSpec& spec, const Updater& updater);
  void ForgetTable(std::uint32_t id) { context_.tables.Forget(id); }
  // Until then the scheduler gives what this thread leads to nobody else; for ever, if it is not
  // told.
  void SetLease(absl::Time until) { replica_context_.lease_until = until; }
  void OnLeadNow(const proto::LeadNow& lead);
  // Whether the scheduler has been heard lately.
  void SetSchedulerHeard(bool heard);

  // ---- checkpoints (data_thread_checkpoints.cc) ----

  // No push of a later clock has been applied to the shards that this thread heads.
  std::uint64_t NewestClock() const;
  // Takes each of them at the order's clock; `done` is called for each, once what it has is on
  // every replica. Returns how many. OUT_OF_RANGE: the clock has passed; ABORTED: not now; `done`
  // may be called all the same.
  absl::StatusOr<std::uint32_t> BeginCuts(const CutOrder& order, const ShardCut::Done& done);
  void AbandonCuts(const absl::Status& why);
  // For the copies of what changes while a checkpoint is written.
  BlockPool* block_pool() { return &context_.spare; }

  std::uint32_t num_shards() const { return context_.num_shards; }
  // That have a replica here.
  std::vector<std::uint32_t> Shards() const;
  // Before anything has come from workers.
  absl::Status Restore(const ShardContent& content);

  const Counters& counters() const { return counters_; }
  std::string StatusJson() const;
  // What is charged to budgets for requests, log entries and fills that are under way: "held 120
  // bytes, fills 1". Empty where nothing is.
  std::string UnderWay() const;
  // Null where the thread has no replica of the shard.
  Replica* FindReplica(std::uint32_t shard) const;

 private:
  // van::Handler
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;
  std::string NameOf(van::PeerId peer, const van::Identity& identity) const override;
  void Guarded(absl::FunctionRef<void()> work);
  void Dispatch(van::PeerId peer, const van::Identity& sender, proto::AnyMessage* any,
                Payload payload);
  // ReplicaHost
  bool Reaches(const Peer& to) override { return links_.To(to).has_value(); }
  bool SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) override;
  void SendBack(van::PeerId connection, const proto::AnyMessage& message) override;
  void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) override;
  void DropSoon(van::PeerId peer, const absl::Status& why) override;
  void AcknowledgeSoon(std::uint32_t shard) override;
  void ConfirmSoon(std::uint32_t shard) override;
  void ResendAt(absl::Time time) override;
  void StableHasGrown() override;
  void OnBroken(const absl::Status& why) override;

  // Requests and calls (data_thread.cc).
  void OnRequest(const van::Identity& sender, Inbound inbound);
  void OnRead(const van::Identity& reader, Inbound inbound);
  void ServeReader(Inbound inbound);
  absl::Status CheckReader(const van::Identity& reader, const proto::Request& request) const;
  void OnPushBatch(van::PeerId peer, const van::Identity& sender, const proto::PushBatch& batch,
                   const runtime::Buffer& values);
  absl::StatusOr<WorkerRecord*> WorkerFor(const van::Identity& sender, std::uint32_t rank,
                                          std::uint64_t incarnation, std::uint64_t epoch);
  void TakeRequest(WorkerRecord* worker, Inbound inbound);
  void OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
              const Payload& payload);
  // The one reason not to admit a request now that leaves its number unused.
  absl::Status CheckEpoch(std::uint64_t epoch) const;
  absl::Status CheckMemoryFor(const TableSpec& spec) const;
  absl::Status NotHere(std::uint32_t shard) const;
  void FollowSettings();

  // Clocks (data_thread_clocks.cc).
  void OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick);
  void TellShards(const WorkerRecord& worker, proto::ClockTick* tick);
  void AcknowledgeTickIfDue(WorkerRecord* worker);
  void SendClockAck(van::PeerId peer, std::uint64_t clock);
  std::uint64_t ClockOf(std::uint32_t rank) const;
  void OnEnter(van::PeerId peer, const van::Identity& sender, const proto::EnterClock& enter);
  std::uint64_t Stable() const;
  void TellStable();

  // A scheduler that came back elsewhere, and other servers (data_thread_peers.cc).
  void OnSchedulerMoved(van::PeerId peer, const van::Identity& sender,
                        const proto::SchedulerMoved& moved);
  void OnReplicate(van::PeerId peer, const van::Identity& sender, proto::Replicate header,
                   Payload payload);
  void OnReplicateAck(van::PeerId peer, const van::Identity& sender,
                      const proto::ReplicateAck& ack);
  absl::StatusOr<Peer> ServerFrom(const van::Identity& sender) const;
  void TakeShards();
  void SayTakenIfSo();
  void CallSoon(void (Replica::*call)(), std::uint32_t shard, std::set<std::uint32_t>* shards);
  void OnResendTimer();
  void OnHousekeeping();
  void Report();
  void SayReady(const Replica& replica);
  void ReportLinks();
  void LookWhetherIsolated();
  void SayWhoHoldsUpWhom();
  std::vector<const Replica*> AllReplicas() const;

  void OnUnsent(van::PeerId peer, proto::Reply reply, const absl::Status& why);
  void Refuse(const Inbound& inbound, const absl::Status& why);
  void Violation(van::PeerId peer, const absl::Status& why);
  absl::Status Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload = {},
                    van::SendDone done = nullptr);

  const Setup setup_;
  runtime::LogLimiter log_;
  const std::shared_ptr<StragglerLines> straggler_lines_;
  Counters counters_;
  Rates rates_;
  std::uint64_t cluster_ = 0;
  std::uint32_t server_rank_ = 0;
  std::shared_ptr<const proto::ClusterMap> map_;  // never null
  absl::AnyInvocable<void()> map_taken_;
  std::map<van::PeerId, van::Identity> peers_;
  Workers workers_;
  Links links_;
  Replies replies_;
  ReaderTurns reader_turns_;
  ShardContext context_;
  ReplicaContext replica_context_;
  std::map<std::uint32_t, std::unique_ptr<Replica>> replicas_;  // by shard

  std::uint64_t stable_told_ = 0;
  bool stable_posted_ = false;
  std::set<std::uint32_t> to_acknowledge_;  // shards
  std::set<std::uint32_t> to_confirm_;      // shards
  absl::Duration link_patience_;            // after which a link that takes nothing is reported
  bool scheduler_heard_ = true;
  std::optional<proto::SchedulerMoved> scheduler_moved_;  // as last told
  absl::Time replica_heard_;
  runtime::TimerId resend_timer_ = runtime::TimerId::kNone;
  absl::Time resend_at_ = absl::InfiniteFuture();
  runtime::TimerId housekeeping_ = runtime::TimerId::kNone;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what was posted
  std::unique_ptr<van::Van> van_;  // last: it may call nothing of the above when it goes
  std::vector<std::pair<van::PeerId, absl::Status>> offenders_;  // to be dropped
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_DATA_THREAD_H_
