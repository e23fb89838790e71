// What one data thread does with requests once they are admitted: its tables, how far the workers
// are, the pushes that wait for their clock to close and the pulls that wait for slow workers.
// Knows no van: answers go to a Replier.
#ifndef LEEWAY_PS_ENGINE_H_
#define LEEWAY_PS_ENGINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "ps/consistency/progress.h"
#include "ps/contributions.h"
#include "ps/counters.h"
#include "ps/held_pulls.h"
#include "ps/inbound.h"
#include "ps/table.h"
#include "runtime/loop.h"

namespace leeway::ps {

class Engine {
 public:
  class Replier {
   public:
    virtual ~Replier() = default;
    virtual void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) = 0;
  };

  struct Setup {
    runtime::Loop* loop = nullptr;
    Replier* replier = nullptr;    // outlives the engine
    Counters* counters = nullptr;  // likewise
    std::uint64_t held_bytes_max = 0;
    std::uint64_t message_bytes_max = 0;
    // Serves every pull at once, whatever its policy says: to show that the worker's own check of
    // the bound notices.
    bool test_only_never_hold = false;
  };

  explicit Engine(const Setup& setup) : setup_(setup) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // How the tables are cut; before the first request.
  void SetLayout(std::uint32_t num_shards, std::uint64_t block_bytes);

  // OK too where an equal table of that id is installed already.
  absl::Status Install(std::uint32_t id, const TableSpec& spec, std::unique_ptr<Updater> updater);
  // The table was not created after all: another server did not take it.
  void Forget(std::uint32_t id);

  // A request whose turn it is: takes its effect and answers it, now or later. The status is what
  // the same request is to be told should it be sent again.
  absl::Status Admit(Inbound inbound);
  // One that was admitted before, without failing: a push is acknowledged again, a pull answered.
  void AnswerAgain(Inbound inbound);
  // The answer to a request that is not admitted, or that failed.
  void Refuse(const Inbound& inbound, const absl::Status& why);

  // What the map says of a worker, and what a tick says. Settle() after the last of a row.
  void SetWorker(std::uint32_t rank, std::uint64_t incarnation, proto::WorkerState state);
  bool Advance(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock);
  // Closes the clocks that everyone has ended and answers the pulls that waited for that.
  void Settle();

  void DropPeer(van::PeerId peer) { held_.DropPeer(peer); }

  const Progress& progress() const { return progress_; }
  const std::map<std::uint32_t, std::unique_ptr<Table>>& tables() const { return tables_; }
  std::size_t held_pulls() const { return held_.size(); }
  std::uint64_t held_bytes() const { return held_.bytes() + contributions_.bytes(); }

 private:
  absl::StatusOr<Table*> TableFor(const proto::Request& request) const;
  ShardStore* StoreOf(Table* table, std::uint32_t shard);
  absl::Status ChargeHeld(std::uint64_t bytes) const;

  absl::Status TakePush(Table* table, const Inbound& inbound);
  void Acknowledge(const Inbound& inbound);
  void ServeOrHold(Table* table, Inbound inbound);
  void Serve(Table* table, const Inbound& inbound, std::uint64_t effective);
  void Hold(const Table& table, Inbound inbound, const PullDecision& decision);
  proto::Reply ReplyTo(const Inbound& inbound, std::uint64_t effective) const;

  void Close(std::uint64_t clock);
  void ServeNeeding(std::uint64_t needed);

  void ArmTimer();
  void OnTimer();
  absl::Status DeadlineExceeded(const HeldPull& pull) const;

  const Setup setup_;
  std::uint32_t num_shards_ = 0;
  std::uint64_t block_bytes_ = 0;
  std::map<std::uint32_t, std::unique_ptr<Table>> tables_;
  Progress progress_;
  std::uint64_t closed_ = 0;  // clocks below it have closed, for good
  Contributions contributions_;
  HeldPulls held_;
  runtime::TimerId timer_ = runtime::TimerId::kNone;
  absl::Time timer_at_ = absl::InfiniteFuture();
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_ENGINE_H_
