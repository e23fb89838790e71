// A file that is written past the memory in which the system keeps files.
#ifndef LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_
#define LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/files/file_system.h"

namespace leeway::runtime {

// What is written would otherwise lie in memory twice, push out what others use, and be written by
// the kernel in bursts, at the cost of whoever runs just then. So it goes in large pieces from a
// buffer of its own straight to the disk, on the thread that writes it. Where the file system
// cannot do that (O_DIRECT), it is written as any other.
absl::StatusOr<std::unique_ptr<WritableFile>> CreateDirectFile(const std::string& path);

inline constexpr std::size_t kDirectFileBytesAtOnce = 8 << 20;

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_DIRECT_FILE_H_
