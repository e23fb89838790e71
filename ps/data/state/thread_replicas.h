// The replicas of one data thread: one for each shard that the newest map has here, or that is
// still being handed over to another server.
//
// Lives on the thread's loop. Calls back into replicas at the times that they ask for, and does for
// all shards what is asked of the thread as a whole: clocks, checkpoints.
#ifndef LEEWAY_PS_DATA_STATE_THREAD_REPLICAS_H_
#define LEEWAY_PS_DATA_STATE_THREAD_REPLICAS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/replication/replica.h"
#include "ps/shard/state/shard_context.h"
#include "ps/table/counters.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"

namespace leeway::ps {

class ThreadReplicas {
 public:
  using ByShard = std::map<std::uint32_t, std::unique_ptr<Replica>>;

  // All of them outlive this.
  ThreadReplicas(runtime::Loop* loop, Counters* counters, ReplicaHost* host, ReplySink* replies);

  // The state that all shards share, and all replicas. Settings are set before the first map.
  ShardContext& shards() { return shards_; }
  const ShardContext& shards() const { return shards_; }
  ReplicaContext& context() { return context_; }
  const ReplicaContext& context() const { return context_; }

  // Replicas that the map has here come, those that nothing holds here go.
  void TakeMap(const proto::ClusterMap& map);
  // Null where the thread has no replica of the shard.
  Replica* Find(std::uint32_t shard) const;
  void Erase(std::uint32_t shard) { replicas_.erase(shard); }
  const ByShard& all() const { return replicas_; }
  std::vector<const Replica*> List() const;
  std::vector<std::uint32_t> Shards() const;

  // Some shard awaits the handover of its old head.
  bool AwaitHandover() const;
  // The clock that all shards count of a worker, and the one below which all clocks are stable.
  std::uint64_t ClockOf(std::uint32_t rank) const;
  std::uint64_t Stable() const;

  // ---- calls that replicas ask for (ReplicaHost) ----

  void AcknowledgeSoon(std::uint32_t shard) {
    CallSoon(&Replica::Acknowledge, shard, &to_acknowledge_);
  }
  void ConfirmSoon(std::uint32_t shard) { CallSoon(&Replica::Confirm, shard, &to_confirm_); }
  void ResendAt(absl::Time time) { resend_.SetBy(time); }

  // ---- checkpoints ----

  std::uint64_t NewestClock() const;
  absl::StatusOr<std::uint32_t> BeginCuts(const CutOrder& order, const ShardCut::Done& done);
  void AbandonCuts(const absl::Status& why);
  // Has each shard that this thread heads frozen for the publication; `done` as for a cut. Returns
  // how many those are.
  absl::StatusOr<std::uint32_t> BeginPublications(const proto::Publish& publish,
                                                  const Publications::Done& done);
  void KeepPublications(const std::set<std::uint64_t>& kept);
  absl::Status Restore(const ShardContent& content);

  // DataThread::UnderWay.
  std::string UnderWay() const;

 private:
  // Calls `begin` for each replica that is a head; how many those are.
  template <class Begin>
  absl::StatusOr<std::uint32_t> BeginAtHeads(const Begin& begin);
  void CallSoon(void (Replica::*call)(), std::uint32_t shard, std::set<std::uint32_t>* shards);
  void OnResendTimer();

  runtime::Loop* const loop_;
  ShardContext shards_;
  ReplicaContext context_;
  ByShard replicas_;
  std::set<std::uint32_t> to_acknowledge_;  // shards
  std::set<std::uint32_t> to_confirm_;      // shards
  runtime::Timer resend_;
  runtime::Lifetime lifetime_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATE_THREAD_REPLICAS_H_
