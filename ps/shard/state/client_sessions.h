// The client sessions of one shard: for each incarnation of a worker, which of its requests were
// admitted, how the refused ones failed, and its newest tick.
//
// Lives on the data thread's loop, as part of a ShardState. Sessions come into being when they are
// first asked for, and end when their worker leaves or another process takes its rank. A follower
// learns of sessions from the log (Take), the head from requests.
#ifndef LEEWAY_PS_SHARD_STATE_CLIENT_SESSIONS_H_
#define LEEWAY_PS_SHARD_STATE_CLIENT_SESSIONS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/chain.h"
#include "ps/consistency/worker_clocks.h"
#include "ps/shard/state/request_order.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// The two orders that requests have: those to tables whose pushes are held (BSP), and all others.
// They are apart so that what is in the state of the shard, of either, is all up to one number.
enum RequestClass : std::size_t { kAtOnce = 0, kHeld = 1, kRequestClasses = 2 };

// The numbers of a worker's last pushes before a tick.
struct Watermarks {
  std::uint64_t by_class[kRequestClasses] = {0, 0};
};

// The answers of shard handlers to a worker's calls, until the worker has them: a call that is sent
// again gets the same. All replicas have them.
class KeptAnswers {
 public:
  // Whether another one of so many bytes may be kept. RESOURCE_EXHAUSTED names the limits.
  absl::Status CheckRoom(std::uint64_t bytes) const;
  void Keep(std::uint64_t sequence, const runtime::Buffer& answer);
  // The worker waits for none of the calls below that number.
  void ForgetBelow(std::uint64_t settled);
  const runtime::Buffer* Find(std::uint64_t sequence) const {
    const auto found = answers_.find(sequence);
    return found == answers_.end() ? nullptr : &found->second;
  }
  const std::map<std::uint64_t, runtime::Buffer>& all() const { return answers_; }

 private:
  std::map<std::uint64_t, runtime::Buffer> answers_;  // by number of the call
  std::uint64_t bytes_ = 0;
};

using WorkerKey = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation

// Blocks of a session whose updates are remembered (UpdatesSent).
inline constexpr std::size_t kUpdatesSentMax = 1 << 16;

// The updates that the values had which this head has sent a worker, by table with weights and
// block; of the first kUpdatesSentMax blocks.
class UpdatesSent {
 public:
  void Note(std::uint32_t table, std::uint64_t block, std::uint64_t updates) {
    const auto found = sent_.find({table, block});
    if (found != sent_.end()) {
      found->second = std::max(found->second, updates);
    } else if (sent_.size() < kUpdatesSentMax) {
      sent_.emplace(std::pair(table, block), updates);
    }
  }
  // nullopt: it is not known.
  std::optional<std::uint64_t> Of(std::uint32_t table, std::uint64_t block) const {
    const auto found = sent_.find({table, block});
    return found == sent_.end() ? std::nullopt : std::optional(found->second);
  }
  bool full() const { return sent_.size() == kUpdatesSentMax; }
  void Clear() { sent_.clear(); }

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> sent_;
};

// The session of one incarnation of a worker.
struct ClientSession {
  explicit ClientSession(runtime::ByteBudget* early)
      : orders{RequestOrder(early), RequestOrder(early)} {}

  // All requests up to the watermarks have been admitted.
  bool Reached(const Watermarks& watermarks) const {
    return Reached(watermarks, kAtOnce) && Reached(watermarks, kHeld);
  }
  bool Reached(const Watermarks& watermarks, RequestClass kind) const {
    return watermarks.by_class[kind] <= orders[kind].admitted();
  }

  RequestOrder orders[kRequestClasses];
  // Of the held class: the highest number that is in the state, since its clock has closed.
  std::uint64_t in_state = 0;
  // Up to these numbers an earlier head admitted.
  std::uint64_t inherited[kRequestClasses] = {0, 0};
  // As the log says; WorkerClocks has the same of workers that the map shows.
  std::uint64_t clock = 0;
  std::uint64_t since = WorkerClocks::kNotEntered;
  bool restored = false;   // of a worker of another cluster, read from a checkpoint
  std::uint64_t told = 0;  // the newest map of whoever spoke of it
  // The newest tick that cannot count yet; clock 0: none.
  std::uint64_t tick_clock = 0;
  Watermarks tick_watermarks;
  UpdatesSent updates_sent;
  KeptAnswers answers;
};

class ClientSessions {
 public:
  // `clocks` and `early`, the budget of requests that came early, outlive this.
  ClientSessions(WorkerClocks* clocks, runtime::ByteBudget* early)
      : clocks_(clocks), early_(early) {}

  // The session of that worker, made where there is none; and null where there is none.
  ClientSession& Of(const WorkerKey& worker) {
    return sessions_.try_emplace(worker, early_).first->second;
  }
  ClientSession* Find(const WorkerKey& worker);
  const ClientSession* Find(const WorkerKey& worker) const;
  // The updates that the newest values had which a worker was sent of a block; 0: none were.
  // nullopt: it is not known, since another replica was the head before, or there are too many
  // blocks.
  std::optional<std::uint64_t> UpdatesSentTo(const WorkerKey& worker, std::uint32_t table,
                                             std::uint64_t block) const;

  // ---- workers ----

  // Another process has the rank of that one now: its session ends.
  void Replace(const WorkerKey& before);
  // This replica has taken the map of that version, and knows of its workers.
  void SeeMap(std::uint64_t version);
  // The newest map that it, or whoever spoke of workers to it, has.
  std::uint64_t told() const { return told_; }
  // Notes that whoever tells of workers has a map of that version; 0, here and below: it may have
  // any, so that no worker counts as replaced.
  void NoteTold(std::uint64_t version) { told_ = std::max(told_, AtMost(version)); }
  // The session of a worker that somebody with a map of that version tells of. Null: the newest map
  // here, which is no older, shows another process under its rank, so it has been replaced.
  ClientSession* OfTold(const WorkerKey& worker, std::uint64_t version);
  // The cluster's own worker of that rank has come: sessions of a checkpoint's workers end.
  void DropRestored(const WorkerKey& worker);
  void Drop(const WorkerKey& worker) { sessions_.erase(worker); }
  // The worker takes part in the clocks from `since` on, and has reached `clock`.
  void Enter(const WorkerKey& worker, std::uint64_t clock, std::uint64_t since);

  // ---- requests that came early ----

  // The session keeps, or has just kept, an early request. When one of many connections goes, only
  // such sessions are looked at.
  void NoteEarly(const WorkerKey& worker) { early_from_.insert(worker); }
  // Sessions that may keep early requests.
  std::vector<WorkerKey> with_early() const { return {early_from_.begin(), early_from_.end()}; }
  // Drops what came early over that connection.
  void DropPeer(van::PeerId peer);
  // Forgets ticks that do not count yet, and calls `refuse(inbound)` for each request that came
  // early.
  template <class Refuse>
  void ForgetEarly(const Refuse& refuse) {
    for (auto& [worker, session] : sessions_) {
      session.tick_clock = 0;
      for (RequestOrder& order : session.orders) {
        for (const Inbound& inbound : order.TakeAll()) refuse(inbound);
      }
    }
  }

  // ---- changes of the head ----

  // This replica becomes the head: what is in the state has been admitted, nothing else.
  // `inherited`: another replica was the head before.
  void RestartAsHead(bool inherited = true);
  // This replica is head no more: it knows what the log says, of clocks up to `closed`.
  void RestartAsFollower(std::uint64_t closed);
  // Takes the sessions of the old head, held pushes included. `told`, here and below: of the entry.
  void TakeHandover(const std::vector<proto::ClientSession>& sessions, std::uint64_t told);

  // ---- the log, state transfers and checkpoints ----

  // The sessions for other replicas. `with_held`: for the one that gets the held pushes as well;
  // others may not believe that a worker has ended the clocks that it has held pushes of, as they
  // would close those clocks without them. It also gets the clocks of workers without sessions that
  // count in means. `closed`: clocks below it have closed.
  std::vector<proto::ClientSession> Export(std::uint64_t closed, bool with_held) const;
  // Takes the sessions of a log entry, or of the beginning of a state transfer.
  void Take(const std::vector<proto::ClientSession>& sessions, std::uint64_t told);
  // Takes the sessions of a checkpoint of this shard, but for those of workers whose rank another
  // process has in this cluster.
  void Restore(const std::vector<proto::ClientSession>& sessions);
  void Clear() { sessions_.clear(); }

  // How requests failed, by worker and class in the order of their numbers; of each the newest
  // where there are more than a message takes, and up to which number the others are.
  std::vector<proto::Refusal> Refusals() const;
  void TakeRefusals(const std::vector<proto::Refusal>& refusals, std::uint64_t told);

  const std::map<WorkerKey, ClientSession>& all() const { return sessions_; }
  // The highest number admitted of each worker, of the class that is applied at once.
  std::map<WorkerKey, std::uint64_t> AdmittedAtOnce() const;

 private:
  void AddGone(std::uint64_t closed, std::vector<proto::ClientSession>* all) const;
  static std::uint64_t AtMost(std::uint64_t version) {
    return version == 0 ? std::numeric_limits<std::uint64_t>::max() : version;
  }

  WorkerClocks* const clocks_;
  runtime::ByteBudget* const early_;
  std::map<WorkerKey, ClientSession> sessions_;
  std::uint64_t seen_ = 0, told_ = 0;  // versions of maps
  // Workers that were told of and that no map here has shown yet.
  std::set<WorkerKey> not_shown_;
  std::set<WorkerKey> early_from_;
  bool heads_before_ = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_CLIENT_SESSIONS_H_
