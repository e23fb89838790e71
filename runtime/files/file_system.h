// The seam for files. Names are paths; errors are statuses that name the path.
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
  virtual ~WritableFile() = default;  // closes, dropping errors: call Close to see them
  virtual absl::Status Append(absl::string_view data) = 0;
  virtual absl::Status Sync() = 0;  // what was appended survives a crash from here on
  virtual absl::Status Close() = 0;
};

// For files too large to be read at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;  // when it was opened
  // Exactly that part. OUT_OF_RANGE where the file ends before.
  virtual absl::Status ReadAt(std::uint64_t offset, std::span<std::byte> to) = 0;
};

// Held until it is destroyed or its process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class FileKind {
  kFile,
  kFolder,
  kOther,  // a symbolic link (wherever it leads), a device, a pipe, …
};

// Files are files: where a device, a pipe or the like stands in the place of one, opening it is an
// error that says so.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // The same, for large files that nobody reads soon: others' memory and time are spared if that
  // can be. What is appended may not be in the file before Sync or Close.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateLarge(const std::string& path) {
    return Create(path);
  }
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  // Replaces `to` in one step; survives a crash once SyncDirectory of its folder has returned.
  // Files only: `to` is one or is not there. Nothing else is ever replaced, links included.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& directory) = 0;  // sorted names
  virtual absl::Status CreateDirectories(const std::string& path) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Of what has that name itself: links are not followed.
  virtual absl::StatusOr<FileKind> KindOf(const std::string& path) = 0;
  // So many more can be written to files in it.
  virtual absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) = 0;
  // The file, which is made if it is not there, is for one process only. ALREADY_EXISTS: another
  // one has it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

FileSystem* RealFileSystem();

// What the neighbour is called that WriteFileAtomically writes first, and may leave.
std::string TemporaryName(absl::string_view path);
// Writes a temporary neighbour, syncs it, renames it over `path` and syncs the folder: a reader
// sees the old contents or the new, never a part.
absl::Status WriteFileAtomically(FileSystem* files, const std::string& path,
                                 absl::string_view contents);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_FILES_FILE_SYSTEM_H_
