// A server's part in checkpoints: it has the data threads take cuts of their shards at a clock, and
// writes these into files on a thread of its own, so that no other thread waits for a disk. Lives
// on the server's control loop.
#ifndef LEEWAY_PS_CONTROL_SERVER_CHECKPOINTS_H_
#define LEEWAY_PS_CONTROL_SERVER_CHECKPOINTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "ps/data/data_thread.h"
#include "ps/shard/shard_cut.h"
#include "runtime/loop/loop.h"

namespace leeway::ps {

class RestoreJob;

class ServerCheckpoints {
 public:
  // Runs something on every data thread's loop, then `done` on the control loop.
  using OnEveryThread = std::function<void(
      std::function<void(DataThread*, std::uint32_t index)> task, absl::AnyInvocable<void()> done)>;
  struct Setup {
    runtime::Host* host = nullptr;
    runtime::Loop* loop = nullptr;  // the control loop
    OnEveryThread on_every_thread;
    std::function<void(proto::AnyMessage)> tell_scheduler;
  };

  explicit ServerCheckpoints(Setup setup);
  ~ServerCheckpoints();  // once the control loop and the data threads have stopped

  // From the scheduler; it says them again until it is answered. A later checkpoint takes the
  // place of an earlier one that is not finished.
  void On(const proto::CheckpointPrepare& prepare);
  void On(const proto::CheckpointCut& cut);
  void On(const proto::RestoreShards& restore);

 private:
  using Refillers = std::vector<BlockPool::Refiller>;

  // One checkpoint. Shared by the control loop and the writer's loop.
  struct Save {
    CutOrder order;
    Refillers refillers;
    std::atomic<bool> given_up = false;
    // The rest: on the control loop.
    proto::CheckpointWritten report;
    std::uint32_t shards = 0;  // that there are to be written
    std::uint32_t written = 0;
    bool begun = false;     // on all threads: `shards` is known
    bool reported = false;  // to be said again if it is asked again
  };

  void GiveUp(const absl::Status& why);
  void MakeReady(std::uint64_t checkpoint);
  void SayNewestClock(std::uint64_t checkpoint);
  void FreeExcess();
  void Begin(const std::shared_ptr<Save>& save);
  void Write(const std::shared_ptr<Save>& save, absl::StatusOr<FrozenShard> frozen);
  void OnWritten(const std::shared_ptr<Save>& save, absl::StatusOr<proto::CheckpointFile> file);
  void ReportIfOver(const std::shared_ptr<Save>& save);
  runtime::Loop* writer();

  const Setup setup_;
  std::uint64_t newest_ = 0;  // the number of the newest checkpoint that was heard of
  std::shared_ptr<Save> save_;
  Refillers refillers_;  // of the data threads, once prepared
  std::shared_ptr<RestoreJob> restore_;
  std::unique_ptr<runtime::LoopRunner> writer_;  // last, so that it stops first; made when needed
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_SERVER_CHECKPOINTS_H_
