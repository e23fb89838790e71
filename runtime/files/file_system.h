// FileSystem is the interface through which roles use files: the operating system's
// (RealFileSystem) or a simulated machine's (runtime/sim/sim_file_system.h). Names are paths;
// errors are statuses that name the path.
#ifndef LEEWAY_RUNTIME_FILES_FILE_SYSTEM_H_
#define LEEWAY_RUNTIME_FILES_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes, and drops errors: call Close to see them
  // Writes all of `data` at the end, or fails.
  virtual absl::Status Append(absl::string_view data) = 0;
  virtual absl::Status Sync() = 0;  // on success, all data appended so far survive a crash
  virtual absl::Status Close() = 0;
};

// A file that is read in parts.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;  // in bytes, when it was opened
  // Fills `to` with the bytes from `offset` on. OUT_OF_RANGE: the file ends before that.
  virtual absl::Status ReadAt(std::uint64_t offset, std::span<std::byte> to) = 0;
};

// A lock that is held until it is destroyed or its process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class FileKind {
  kFile,
  kFolder,
  kOther,  // a symbolic link (whatever it points to), a device, a pipe, …
};

// RealFileSystem's may be called on any thread. Only regular files are opened: a device, a pipe or
// the like at a path is FAILED_PRECONDITION, and is not waited for.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) = 0;
  // Creates the file, or empties one that exists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // As Create, for large files that nothing reads soon: the page cache is bypassed if the file
  // system can do that (runtime/files/direct_file.h). Appended data may not be in the file before
  // Sync or Close.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateLarge(const std::string& path) {
    return Create(path);
  }
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  // Replaces `to` atomically; the new name survives a crash once SyncDirectory of its folder has
  // returned. `from` is a regular file; `to` is one or does not exist. Anything else, symbolic
  // links included, is FAILED_PRECONDITION and never replaced.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& directory) = 0;  // sorted names
  virtual absl::Status CreateDirectories(const std::string& path) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // The kind of the entry itself: symbolic links are not followed.
  virtual absl::StatusOr<FileKind> KindOf(const std::string& path) = 0;
  // How many more bytes can be written to files in that folder.
  virtual absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) = 0;
  // Locks the file, which is created if it does not exist, for this process. ALREADY_EXISTS:
  // another process has locked it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// The operating system's files. Never destroyed.
FileSystem* RealFileSystem();

// The name of the temporary file that WriteFileAtomically writes first. A crash may leave that
// file.
std::string TemporaryName(absl::string_view path);
// Writes TemporaryName(path), syncs it, renames it over `path` and syncs the folder: a reader sees
// the old contents or the new, never a part of either.
absl::Status WriteFileAtomically(FileSystem* files, const std::string& path,
                                 absl::string_view contents);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_FILE_SYSTEM_H_
