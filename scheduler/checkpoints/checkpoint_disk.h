// What a scheduler does with a folder of checkpoints, on a loop that may wait for disks.
#ifndef LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_DISK_H_
#define LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "runtime/loop/loop.h"

namespace leeway::scheduler {

class CheckpointDisk {
 public:
  // What a new checkpoint is to be like.
  struct Plan {
    std::string directory;
    bool incremental = false;
    std::uint64_t cluster = 0;
    std::uint32_t num_shards = 0;
    std::uint64_t block_bytes = 0;
  };
  struct Opened {
    std::string path;
    std::string name;
    std::optional<checkpoint::Base> base;
  };

  CheckpointDisk(runtime::Host* host, runtime::Loop* loop) : host_(host), loop_(loop) {}
  ~CheckpointDisk() = default;

  // Each calls back on the scheduler's loop.
  // A folder for a new checkpoint, later than all that are there.
  void Open(const Plan& plan, std::function<void(absl::StatusOr<Opened>)> done);
  // All files are written: makes them a checkpoint. After that, when it has called back, it removes
  // what is older than the newest `keep` (0: nothing) of this cluster and not needed. What others
  // have put there stays.
  void Finish(const Opened& opened, checkpoint::Manifest manifest, std::uint64_t keep,
              std::function<void(absl::StatusOr<checkpoint::Manifest>)> done);
  // It has come to nothing.
  void Discard(const Opened& opened);

 private:
  runtime::Loop* disk_loop();
  absl::StatusOr<Opened> DoOpen(const Plan& plan);
  absl::StatusOr<std::uint64_t> NewNumber(const std::string& directory,
                                          const std::vector<checkpoint::Found>& found);
  void Sweep(const Opened& opened, std::uint64_t cluster, std::uint64_t keep);
  void RemoveOld(const std::string& path);
  void SayOnce(const std::string& path, const absl::Status& why);
  absl::StatusOr<checkpoint::Manifest> DoFinish(const Opened& opened,
                                                checkpoint::Manifest manifest);

  runtime::Host* const host_;
  runtime::Loop* const loop_;
  // On the disk's loop.
  std::map<std::string, std::uint64_t> last_numbers_;  // given out, by folder
  std::set<std::string> discarded_;                    // that could not be removed yet
  std::set<std::string> said_;                         // that others' paths stay where they are
  std::unique_ptr<runtime::LoopRunner> runner_;        // last; made when it is needed
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHECKPOINTS_CHECKPOINT_DISK_H_
