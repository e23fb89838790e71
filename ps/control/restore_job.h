// The restoring of a server's shards from a checkpoint. The files are read one after another on a
// loop that may wait for disks; the data threads take what is theirs from each before the next is
// read, so that no more than one shard lies in between.
#ifndef LEEWAY_PS_CONTROL_RESTORE_JOB_H_
#define LEEWAY_PS_CONTROL_RESTORE_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/control/server_checkpoints.h"
#include "runtime/files/file_system.h"

namespace leeway::ps {

class RestoreJob : public std::enable_shared_from_this<RestoreJob> {
 public:
  struct Setup {
    runtime::FileSystem* files = nullptr;
    runtime::Loop* loop = nullptr;    // where it lives
    runtime::Loop* reader = nullptr;  // where files are read
    ServerCheckpoints::OnEveryThread on_every_thread;
    std::function<void(proto::AnyMessage)> tell_scheduler;
  };

  RestoreJob(Setup setup, const proto::RestoreShards& restore)
      : setup_(std::move(setup)), restore_(restore) {}

  std::uint64_t request() const { return restore_.request; }
  void Start();
  void AnswerAgain();

 private:
  struct Needed;

  void ReadManifests(std::uint32_t num_shards, const std::vector<bool>& here);
  void ReadNext();
  void Load(std::vector<ShardContent> contents);
  void Finish(const absl::Status& result);

  const Setup setup_;
  const proto::RestoreShards restore_;
  std::vector<checkpoint::Manifest> chain_;  // the reader's from here on
  std::vector<std::uint32_t> to_read_;       // the checkpoint's shards, the next one last
  std::optional<proto::RestoreShardsReply> reply_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_RESTORE_JOB_H_
