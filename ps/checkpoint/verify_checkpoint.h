// The command `leeway checkpoint verify`: checks that a checkpoint is whole and what it says it is.
#ifndef LEEWAY_PS_CHECKPOINT_VERIFY_CHECKPOINT_H_
#define LEEWAY_PS_CHECKPOINT_VERIFY_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "runtime/files/file_system.h"

namespace leeway::ps {

// `done` bytes have been read of `all`.
using VerifyProgress = absl::FunctionRef<void(std::uint64_t done, std::uint64_t all)>;

// Reads all of it, and all that it builds on. The manifests, newest first, if every file is there
// and right to the last bit, belongs where it lies, and every shard is there once; otherwise the
// first thing that is wrong, naming the file.
absl::StatusOr<std::vector<checkpoint::Manifest>> VerifyCheckpoint(runtime::FileSystem* files,
                                                                   const std::string& path,
                                                                   VerifyProgress progress);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CHECKPOINT_VERIFY_CHECKPOINT_H_
