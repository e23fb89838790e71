// CreateDirectFile creates a file that is written past the system's page cache (O_DIRECT).
#ifndef LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_
#define LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/files/file_system.h"

namespace leeway::runtime {

// Through the page cache, a checkpoint would lie in memory twice, evict pages that others use, and
// be written back by the kernel in bursts that take time from other threads. This file goes to the
// disk in pieces of kDirectFileBytesAtOnce from a buffer of its own, on the thread that appends.
// Where the file system has no O_DIRECT, it is written through the page cache. Errors as
// FileSystem::Create.
absl::StatusOr<std::unique_ptr<WritableFile>> CreateDirectFile(const std::string& path);

inline constexpr std::size_t kDirectFileBytesAtOnce = 8 << 20;

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_
