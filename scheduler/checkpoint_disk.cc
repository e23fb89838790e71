#include "scheduler/checkpoint_disk.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "runtime/file_system.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"

namespace leeway::scheduler {
namespace {

using checkpoint::Found;
using checkpoint::JoinPath;

// The newest one that an incremental one of this cluster can add to.
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
    if (!chain.ok() || chain->size() + 1 > checkpoint::kChainMax) return std::nullopt;
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
        loop_->Post([done, finished = DoFinish(opened, std::move(manifest), keep)]() mutable {
          done(std::move(finished));
        });
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
  // A server may have been writing still.
  std::erase_if(discarded_, [&](const std::string& path) {
    return !files->Exists(path) || checkpoint::RemoveCheckpoint(files, path).ok();
  });
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Found> found,
                          checkpoint::ListCheckpoints(files, plan.directory));
  for (const Found& one : found) last_number_ = std::max(last_number_, one.number);
  Opened opened;
  opened.name = checkpoint::CheckpointName(++last_number_);
  opened.path = JoinPath(plan.directory, opened.name);
  if (plan.incremental) opened.base = BaseAmong(found, plan, files);
  LEEWAY_RETURN_IF_ERROR(checkpoint::StartCheckpoint(files, opened.path));
  return opened;
}

absl::StatusOr<checkpoint::Manifest> CheckpointDisk::DoFinish(const Opened& opened,
                                                              checkpoint::Manifest manifest,
                                                              std::uint64_t keep) {
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
  const std::string directory = checkpoint::SplitPath(opened.path).first;
  const auto found = checkpoint::ListCheckpoints(files, directory);
  if (keep == 0 || !found.ok()) return manifest;
  std::vector<std::string> superfluous = checkpoint::Superfluous(*found, keep);
  for (const Found& one : *found) {
    // What a scheduler that died has left.
    if (one.name < opened.name && absl::IsNotFound(one.manifest.status())) {
      superfluous.push_back(one.name);
    }
  }
  for (const std::string& name : superfluous) {
    const absl::Status removed = checkpoint::RemoveCheckpoint(files, JoinPath(directory, name));
    // What matters is that the new one is there.
    if (!removed.ok()) runtime::LogWarning("an old checkpoint stays: ", removed.message());
  }
  return manifest;
}

}  // namespace leeway::scheduler
