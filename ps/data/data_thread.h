// A server's data thread: takes what workers, readers and other servers send to its endpoint, and
// hands it to the shard concerned. docs/protocol.md has the rules.
//
// Lives on one loop: constructed, used and destroyed there (or while the loop does not turn). It
// connects the van and the replicas with the classes that do the work, which share a ThreadState:
// Connections (sending), ThreadReplicas (the shards), Requests, Ticks, ReplicationMessages and
// SchedulerReports.
#ifndef LEEWAY_PS_DATA_DATA_THREAD_H_
#define LEEWAY_PS_DATA_DATA_THREAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "ps/data/calls/calls.h"
#include "ps/data/rates.h"
#include "ps/data/replication_messages.h"
#include "ps/data/requests.h"
#include "ps/data/scheduler_reports.h"
#include "ps/data/state/thread_state.h"
#include "ps/data/stragglers.h"
#include "ps/data/ticks.h"
#include "ps/replication/replica.h"
#include "ps/table/counters.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "runtime/memory/byte_budget.h"
#include "van/van.h"

namespace leeway::ps {

// Switches for tests; a user has no way to them.
struct DataOptions {
  bool test_only_never_hold = false;  // ShardContext
};

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
    // Passes messages on to the scheduler. Optional.
    std::function<void(proto::AnyMessage)> tell_scheduler;
    // The scheduler is to be found elsewhere. Optional.
    std::function<void(const proto::SchedulerMoved&)> scheduler_moved;
    // This server is of no more use, and others should take its place. Optional.
    std::function<void(const absl::Status&)> give_up;
    // Of all data threads of the server. Optional.
    std::shared_ptr<StragglerLines> straggler_lines = {};
    // Likewise: what waits to be sent. Null: the thread has one of LEEWAY_SEND_QUEUE_BYTES_MAX.
    std::shared_ptr<runtime::SharedByteBudget> send_queue = {};
  };

  explicit DataThread(const Setup& setup);
  ~DataThread() override;

  // Returns the address workers connect to.
  absl::StatusOr<std::string> Listen(absl::string_view address);

  // The rank and place that the scheduler has given this server. Before the first map.
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
  absl::Status CheckTableSettings(std::uint32_t id, const TableSpec& spec, const Updater& updater);
  void ForgetTable(std::uint32_t id) { tables().Forget(id); }
  Tables& tables() { return state_.replicas.shards().tables; }
  // The lease: until then the scheduler gives what this thread leads to no other. Without a call it
  // has no end.
  void SetLease(absl::Time until) { state_.replicas.context().lease_until = until; }
  void OnLeadNow(const proto::LeadNow& lead);
  // Whether the scheduler has been heard lately.
  void SetSchedulerHeard(bool heard) { replication_.SetSchedulerHeard(heard); }

  // ---- checkpoints ----

  // No push of a later clock has been applied to the shards that this thread heads.
  std::uint64_t NewestClock() const { return state_.replicas.NewestClock(); }
  // Takes a cut of each of those shards at the order's clock; `done` is called for each, once what
  // it has is on every replica. Returns how many. OUT_OF_RANGE: the clock has passed; ABORTED: not
  // now; `done` may be called all the same.
  absl::StatusOr<std::uint32_t> BeginCuts(const CutOrder& order, const ShardCut::Done& done) {
    return state_.replicas.BeginCuts(order, done);
  }
  void AbandonCuts(const absl::Status& why) { state_.replicas.AbandonCuts(why); }
  // Has the tables of each of those shards frozen, as for BeginCuts.
  absl::StatusOr<std::uint32_t> BeginPublications(const proto::Publish& publish,
                                                  const Publications::Done& done) {
    return state_.replicas.BeginPublications(publish, done);
  }
  // PublishedTables::Keep, in each replica.
  void KeepPublications(const std::set<std::uint64_t>& kept) {
    state_.replicas.KeepPublications(kept);
  }
  // For the copies of what changes while a checkpoint is written.
  BlockPool* block_pool() { return &state_.replicas.shards().pool; }

  std::uint32_t num_shards() const { return state_.replicas.shards().num_shards; }
  // The shards that have a replica here.
  std::vector<std::uint32_t> Shards() const { return state_.replicas.Shards(); }
  // Before anything has come from workers.
  absl::Status Restore(const ShardContent& content) { return state_.replicas.Restore(content); }

  const Counters& counters() const { return state_.counters; }
  std::string StatusJson() const;
  // The amounts that are charged to budgets for requests, log entries and state transfers that are
  // under way: "held bytes 120, transfers 1". Empty where nothing is.
  std::string UnderWay() const { return state_.replicas.UnderWay(); }
  // Null where the thread has no replica of the shard.
  Replica* FindReplica(std::uint32_t shard) const { return state_.replicas.Find(shard); }

 private:
  // van::Handler
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;
  std::string NameOf(van::PeerId peer, const van::Identity& identity) const override;
  bool IsMember(const van::Identity& identity) const;
  void AdmitMembers();
  static bool MayAskForStatus(const van::Identity& sender);
  void Guarded(absl::FunctionRef<void()> work);
  void Dispatch(van::PeerId peer, const van::Identity& sender, proto::AnyMessage* any,
                Payload payload);
  void OnSchedulerMoved(van::PeerId peer, const van::Identity& sender,
                        const proto::SchedulerMoved& moved);

  // ReplicaHost
  bool Reaches(const Peer& to) override { return state_.links.To(to).has_value(); }
  bool SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) override;
  void AcknowledgeSoon(std::uint32_t shard) override { state_.replicas.AcknowledgeSoon(shard); }
  void ConfirmSoon(std::uint32_t shard) override { state_.replicas.ConfirmSoon(shard); }
  void ResendAt(absl::Time time) override { state_.replicas.ResendAt(time); }
  void StableHasGrown() override { ticks_.OnStableGrown(); }
  void OnBroken(const absl::Status& why) override;

  absl::Status CheckMemoryFor(const TableSpec& spec) const;
  void FollowTableSettings();
  void SayTakenIfSo();
  void OnHousekeeping();

  const Setup setup_;
  const van::Limits limits_;
  ThreadState state_;
  SchedulerReports reports_;
  Ticks ticks_;
  Requests requests_;
  Calls calls_;
  ReplicationMessages replication_;
  Rates rates_;
  std::set<van::PeerId> unknown_;  // peers that are in no map so far, without readers
  absl::AnyInvocable<void()> map_taken_;
  std::optional<proto::SchedulerMoved> scheduler_moved_;  // the newest news of it
  runtime::Timer housekeeping_;
  std::unique_ptr<van::Van> van_;  // last: it may call nothing of the above when it goes
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_DATA_THREAD_H_
