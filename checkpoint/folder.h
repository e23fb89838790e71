// A folder of checkpoints: DIR/ckpt-00000007/{shard-00000.safetensors, …, manifest.json}. One is
// there when its manifest is; everything else that lies about is the rest of one that was not
// finished.
#ifndef LEEWAY_CHECKPOINT_FOLDER_H_
#define LEEWAY_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "checkpoint/manifest.h"
#include "runtime/files/file_system.h"

namespace leeway::checkpoint {

// So many may have to be read to restore the last one.
inline constexpr std::size_t kChainMax = 64;

// No checkpoint has a higher number: there is always one that comes after.
inline constexpr std::uint64_t kNumberMax = 1ull << 62;

std::string CheckpointName(std::uint64_t number);  // 7 → "ckpt-00000007"
std::optional<std::uint64_t> CheckpointNumber(absl::string_view name);
std::string ShardFileName(std::uint32_t shard);  // 3 → "shard-00003.safetensors"
// The name of the file that a worker adds: 3 → "residuals-worker-3.safetensors". No manifest names
// it.
std::string ResidualFileName(std::uint32_t rank);
// Whether a cluster writes files of that name into a checkpoint's folder.
bool IsFileOfCheckpoint(absl::string_view name);
std::string JoinPath(absl::string_view folder, absl::string_view name);
// "a/b/ckpt-00000007/" → "a/b" and "ckpt-00000007".
std::pair<std::string, std::string> SplitPath(absl::string_view path);

// A checkpoint that ListCheckpoints has found.
struct Found {
  std::uint64_t number = 0;
  std::string name;
  absl::StatusOr<Manifest> manifest;  // NOT_FOUND: not finished, or being written
};
// Oldest first. Empty if there is no such folder.
absl::StatusOr<std::vector<Found>> ListCheckpoints(runtime::FileSystem* files,
                                                   const std::string& directory);

// `path` of a checkpoint. The error names it.
absl::StatusOr<Manifest> ReadManifest(runtime::FileSystem* files, const std::string& path);

// `path` if a checkpoint is there, or the newest finished one of those that lie in the folder
// `path`.
absl::StatusOr<std::string> FindCheckpoint(runtime::FileSystem* files, const std::string& path);

// The checkpoint and those it builds on, newest first, each the one that the newer one meant.
absl::StatusOr<std::vector<Manifest>> ReadChain(runtime::FileSystem* files,
                                                const std::string& path);

// Entries that look like checkpoints by their names and cannot be ours: links, names that we do not
// give. They are never changed.
absl::StatusOr<std::vector<std::string>> ListForeign(runtime::FileSystem* files,
                                                     const std::string& directory);

// Takes the folder for a new checkpoint; what lay in it is removed as by RemoveCheckpoint.
absl::Status StartCheckpoint(runtime::FileSystem* files, const std::string& path);
// The last thing that is written: from now on there is a checkpoint at `path`.
absl::Status FinishCheckpoint(runtime::FileSystem* files, const std::string& path,
                              Manifest* manifest);
// The manifest goes first, so that what is left at any moment is a checkpoint or is none. Only what
// clusters write is removed: FAILED_PRECONDITION names what is there besides, and stays with the
// folder; links are not followed.
absl::Status RemoveCheckpoint(runtime::FileSystem* files, const std::string& path);

// Which of the finished ones to remove so that the newest `keep` stay, with all they build on.
std::vector<std::string> Superfluous(const std::vector<Found>& found, std::uint64_t keep);

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_FOLDER_H_
