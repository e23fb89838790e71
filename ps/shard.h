// One shard: its part of every table, and all that decides what happens to them: which requests of
// each worker have been admitted, how far the workers are, the pushes that wait for their clock to
// close and the pulls that wait for slow workers. Knows no other shard and no network: answers go
// to a Replier.
#ifndef LEEWAY_PS_SHARD_H_
#define LEEWAY_PS_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/consistency/progress.h"
#include "ps/contributions.h"
#include "ps/held_pulls.h"
#include "ps/inbound.h"
#include "ps/shard_context.h"
#include "ps/stream.h"

namespace leeway::ps {

class Shard {
 public:
  Shard(std::uint32_t id, ShardContext* context);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // ---- requests (shard_requests.cc) ----

  // A request of a worker that the newest map shows as living: admitted when its turn comes, and
  // answered, now or later. True if that made a tick count which had waited for it.
  bool TakeRequest(Inbound inbound);
  // Answers what waits for its predecessors with an error.
  void RefuseEarly(const absl::Status& why);
  // What a connection that is gone had asked for: it will be asked again.
  void DropPeer(van::PeerId peer);

  // ---- clocks (shard.cc) ----

  // What the map says of a worker. Settle() after the last of a row.
  void SetWorker(const proto::WorkerEntry& entry);
  // The worker has ended its iterations up to `clock`. Counts once its request numbered `mark` has
  // been admitted. Ticks are cumulative, so one that waits gives way to a later one.
  void TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                std::uint64_t mark);
  // Closes the clocks that everyone has ended and answers the pulls that waited for that.
  void Settle();

  std::uint32_t id() const { return id_; }
  const Progress& progress() const { return progress_; }
  const std::map<std::uint32_t, std::unique_ptr<ShardStore>>& stores() const { return stores_; }
  std::size_t held_pulls() const { return held_.size(); }

 private:
  // What is known of one start of a worker's process.
  struct Window {
    explicit Window(ByteBudget* early) : stream(early) {}
    Stream stream;
    // The newest tick that cannot count yet; clock 0: none.
    std::uint64_t tick_clock = 0;
    std::uint64_t tick_mark = 0;
  };
  using WorkerKey = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation

  Window& WindowOf(const WorkerKey& worker);
  void AdmitNext(Window* window, Inbound inbound);
  absl::Status Admit(Inbound inbound);
  void AnswerAgain(Inbound inbound);
  void Refuse(const Inbound& inbound, const absl::Status& why);
  void Acknowledge(const Inbound& inbound);

  absl::StatusOr<const Table*> TableFor(const proto::Request& request) const;
  ShardStore* StoreOf(const Table& table);
  absl::Status ChargeHeld(std::uint64_t bytes) const;
  absl::Status TakePush(const Table& table, const Inbound& inbound);
  void ServeOrHold(const Table& table, Inbound inbound);
  void Serve(const Table& table, const Inbound& inbound, std::uint64_t effective);
  void Hold(const Table& table, Inbound inbound, const PullDecision& decision);
  void ArmTimer();
  void OnTimer();
  absl::Status DeadlineExceeded(const HeldPull& pull) const;

  bool CountTickIfDue(const WorkerKey& worker, Window* window);
  void Close(std::uint64_t clock);
  void ServeNeeding(std::uint64_t needed);

  const std::uint32_t id_;
  ShardContext* const context_;
  std::map<std::uint32_t, std::unique_ptr<ShardStore>> stores_;  // by table
  std::map<WorkerKey, Window> windows_;
  Progress progress_;
  std::uint64_t closed_ = 0;  // clocks below it have closed, for good
  Contributions contributions_;
  HeldPulls held_;
  runtime::TimerId timer_ = runtime::TimerId::kNone;
  absl::Time timer_at_ = absl::InfiniteFuture();
};

// The answer to a request as far as the request itself says it.
proto::Reply ReplyTo(const proto::Request& request);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_H_
