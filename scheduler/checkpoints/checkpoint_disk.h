// The scheduler's access to folders of checkpoints: opens new ones, finishes them with a manifest
// and removes old ones. Works on a loop of its own, which may wait for disks, and calls back on the
// scheduler's loop.
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
  // A new checkpoint.
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

  // Makes a folder for a new checkpoint, with a higher number than all that are there.
  void Open(const Plan& plan, std::function<void(absl::StatusOr<Opened>)> done);
  // Writes the manifest, which makes the files a checkpoint, and calls back. Then it removes this
  // cluster's checkpoints that are older than the newest `keep` (0: none) and not needed. Files of
  // others stay.
  void Finish(const Opened& opened, checkpoint::Manifest manifest, std::uint64_t keep,
              std::function<void(absl::StatusOr<checkpoint::Manifest>)> done);
  // Removes a checkpoint that has failed.
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
