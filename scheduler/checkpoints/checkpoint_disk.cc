#include "scheduler/checkpoints/checkpoint_disk.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

using checkpoint::Found;
using checkpoint::JoinPath;

constexpr std::size_t kSaidMax = 1024;     // paths that the log has
constexpr std::size_t kFoldersMax = 1024;  // whose last numbers are remembered

// The newest checkpoint that an incremental one of this cluster can add to.
std::optional<checkpoint::Base> BaseAmong(const std::vector<Found>& found,
                                          const CheckpointDisk::Plan& plan,
                                          runtime::FileSystem* files) {
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (!it->manifest.ok()) continue;
    const checkpoint::Manifest& manifest = *it->manifest;
    if (manifest.cluster != plan.cluster || manifest.num_shards != plan.num_shards ||
        manifest.block_bytes != plan.block_bytes) {
      return std::nullopt;
    }
    const auto chain = checkpoint::ReadChain(files, JoinPath(plan.directory, it->name));
    if (!chain.ok() || (chain.ok() && chain->size() + 1 > checkpoint::kChainMax))
      return std::nullopt;
    return checkpoint::Base{.name = manifest.name, .checksum = manifest.checksum};
  }
  return std::nullopt;
}

}  // namespace

runtime::Loop* CheckpointDisk::disk_loop() {
  if (runner_ == nullptr) runner_ = host_->Spawn("scheduler files");
  return runner_->loop();
}

void CheckpointDisk::Open(const Plan& plan, std::function<void(absl::StatusOr<Opened>)> done) {
  disk_loop()->Post([this, plan, done = std::move(done)] {
    loop_->Post([done, opened = DoOpen(plan)]() mutable { done(std::move(opened)); });
  });
}

void CheckpointDisk::Finish(const Opened& opened, checkpoint::Manifest manifest, std::uint64_t keep,
                            std::function<void(absl::StatusOr<checkpoint::Manifest>)> done) {
  disk_loop()->Post(
      [this, opened, manifest = std::move(manifest), keep, done = std::move(done)]() mutable {
        const auto finished = DoFinish(opened, std::move(manifest));
        loop_->Post([done = std::move(done), finished] { done(finished); });
        // After the callback, since removing large files takes a disk a while.
        if (finished.ok() && keep != 0) Sweep(opened, finished->cluster, keep);
      });
}

void CheckpointDisk::Discard(const Opened& opened) {
  disk_loop()->Post([this, path = opened.path] {
    if (!checkpoint::RemoveCheckpoint(host_->files(), path).ok()) discarded_.insert(path);
  });
}

// ---- on the disk's loop ----

absl::StatusOr<CheckpointDisk::Opened> CheckpointDisk::DoOpen(const Plan& plan) {
  runtime::FileSystem* files = host_->files();
  // It may have failed before, as a server was writing still.
  std::erase_if(discarded_, [&](const std::string& path) {
    const absl::Status removed = checkpoint::RemoveCheckpoint(files, path);
    return removed.ok() || absl::IsNotFound(removed);
  });
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Found> found,
                          checkpoint::ListCheckpoints(files, plan.directory));
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> foreign,
                          checkpoint::ListForeign(files, plan.directory));
  for (const std::string& name : foreign) {
    SayOnce(JoinPath(plan.directory, name),
            absl::FailedPreconditionError("it is no checkpoint's folder, by its name or its kind"));
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t number, NewNumber(plan.directory, found));
  Opened opened;
  opened.name = checkpoint::CheckpointName(number);
  opened.path = JoinPath(plan.directory, opened.name);
  if (plan.incremental) opened.base = BaseAmong(found, plan, files);
  LEEWAY_RETURN_IF_ERROR(checkpoint::StartCheckpoint(files, opened.path));
  return opened;
}

// No number is given out twice: a server may still be writing files of a checkpoint that failed.
absl::StatusOr<std::uint64_t> CheckpointDisk::NewNumber(const std::string& directory,
                                                        const std::vector<Found>& found) {
  const auto given = last_numbers_.find(directory);
  std::uint64_t last = given == last_numbers_.end() ? 0 : given->second;
  if (!found.empty()) last = std::max(last, found.back().number);
  if (last >= checkpoint::kNumberMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no number is left after ", JoinPath(directory, checkpoint::CheckpointName(last)),
        ": move it away, or save into another folder"));
  }
  if (given == last_numbers_.end() && last_numbers_.size() >= kFoldersMax) last_numbers_.clear();
  return last_numbers_[directory] = last + 1;
}

absl::StatusOr<checkpoint::Manifest> CheckpointDisk::DoFinish(const Opened& opened,
                                                              checkpoint::Manifest manifest) {
  runtime::FileSystem* files = host_->files();
  for (const checkpoint::FileEntry& file : manifest.files) {
    const auto there = files->OpenToRead(JoinPath(opened.path, file.name));
    if (!there.ok() || (*there)->size() != file.bytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a server has written ", file.name, ", but the scheduler does not see it in ",
          opened.path, ": the folder has to be one that all machines share"));
    }
  }
  LEEWAY_RETURN_IF_ERROR(checkpoint::FinishCheckpoint(files, opened.path, &manifest));
  return manifest;
}

void CheckpointDisk::Sweep(const Opened& opened, std::uint64_t cluster, std::uint64_t keep) {
  const std::string directory = checkpoint::SplitPath(opened.path).first;
  auto found = checkpoint::ListCheckpoints(host_->files(), directory);
  if (!found.ok()) return;
  std::erase_if(*found, [&](const Found& one) {
    return one.manifest.ok() && one.manifest->cluster != cluster;
  });
  for (const std::string& name : checkpoint::Superfluous(*found, keep)) {
    RemoveOld(JoinPath(directory, name));
  }
  const std::uint64_t number = checkpoint::CheckpointNumber(opened.name).value_or(0);
  for (const Found& one : *found) {
    // The checkpoint of a scheduler that died while it was saved.
    if (one.number < number && absl::IsNotFound(one.manifest.status())) {
      RemoveOld(JoinPath(directory, one.name));
    }
  }
}

// An error is logged and ignored: the new checkpoint is there all the same.
void CheckpointDisk::RemoveOld(const std::string& path) {
  const absl::Status removed = checkpoint::RemoveCheckpoint(host_->files(), path);
  if (!removed.ok()) SayOnce(path, removed);
}

void CheckpointDisk::SayOnce(const std::string& path, const absl::Status& why) {
  if (said_.size() >= kSaidMax || !said_.insert(path).second) return;
  runtime::LogWarning(path, " is left alone: ", why.message());
}

}  // namespace leeway::scheduler
