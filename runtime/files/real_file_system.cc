#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/direct_file.h"
#include "runtime/files/file_error.h"
#include "runtime/files/file_system.h"
#include "runtime/files/regular_file.h"

namespace leeway::runtime {
namespace {

// A file descriptor that closes itself, and can be released.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::StatusOr<Descriptor> Open(const std::string& path, int flags, absl::string_view what) {
  LEEWAY_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, flags, what));
  return Descriptor(fd);
}

// The mode of the entry itself: symbolic links are not followed.
absl::StatusOr<mode_t> ModeOf(const std::string& path, absl::string_view what) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return FileError(errno, what, path);
  return info.st_mode;
}

class RealFile final : public WritableFile {
 public:
  RealFile(Descriptor descriptor, const std::string& path)
      : descriptor_(std::move(descriptor)), path_(path) {}

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t written = ::write(descriptor_.get(), data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FileError(errno, "write to", path_);
      data.remove_prefix(static_cast<std::size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (::fsync(descriptor_.get()) != 0) return FileError(errno, "sync", path_);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    const int fd = descriptor_.release();
    // Linux has closed the descriptor even when it reports EINTR.
    if (fd < 0 || ::close(fd) == 0 || errno == EINTR) return absl::OkStatus();
    return FileError(errno, "close", path_);
  }

 private:
  Descriptor descriptor_;
  const std::string path_;
};

class RealFileToRead final : public ReadableFile {
 public:
  RealFileToRead(Descriptor descriptor, std::uint64_t size, const std::string& path)
      : descriptor_(std::move(descriptor)), size_(size), path_(path) {}

  std::uint64_t size() const override { return size_; }

  absl::Status ReadAt(std::uint64_t offset, std::span<std::byte> to) override {
    while (!to.empty()) {
      const ssize_t got =
          ::pread(descriptor_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(errno, "read", path_);
      if (got == 0) return absl::OutOfRangeError(absl::StrCat(path_, " ends at ", offset));
      to = to.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return absl::OkStatus();
  }

 private:
  Descriptor descriptor_;
  const std::uint64_t size_;
  const std::string path_;
};

class RealLock final : public FileLock {
 public:
  explicit RealLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;  // closing it releases the lock
};

// An attempt fails only if another process has locked and removed the file meanwhile.
constexpr int kLockAttemptsMax = 64;

class PosixFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::string> Read(const std::string& path) override {
    LEEWAY_ASSIGN_OR_RETURN(const Descriptor file, Open(path, O_RDONLY, "open"));
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return FileError(errno, "read", path);
    std::string contents;
    contents.resize(static_cast<std::size_t>(info.st_size));
    std::size_t size = 0;
    while (true) {
      // One byte of room past the end detects a file that grew, or one (in /proc) that reports no
      // size.
      if (size == contents.size()) contents.resize(size + std::max<std::size_t>(size / 2, 4096));
      const ssize_t got = ::read(file.get(), contents.data() + size, contents.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(errno, "read", path);
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    contents.resize(size);
    return contents;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenToRead(const std::string& path) override {
    LEEWAY_ASSIGN_OR_RETURN(Descriptor file, Open(path, O_RDONLY, "open"));
    struct stat info;
    if (::fstat(file.get(), &info) != 0) return FileError(errno, "read", path);
    return std::make_unique<RealFileToRead>(std::move(file),
                                            static_cast<std::uint64_t>(info.st_size), path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return OpenToWrite(path, O_TRUNC, "create");
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateLarge(const std::string& path) override {
    return CreateDirectFile(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override {
    return OpenToWrite(path, O_APPEND, "open");
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    const std::string what = absl::StrCat("rename ", from, " to");
    for (const std::string& path : {from, to}) {
      const absl::StatusOr<mode_t> mode = ModeOf(path, "look at");
      // If `from`, or the folder of `to`, does not exist, rename(2) below reports it.
      if (!mode.ok() || S_ISREG(*mode)) continue;
      return absl::FailedPreconditionError(absl::StrCat("cannot ", what, " ", to, ": ",
                                                        path == to ? "that" : path, " is ",
                                                        KindName(*mode), ", not a file"));
    }
    if (::rename(from.c_str(), to.c_str()) != 0) return FileError(errno, what, to);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (std::remove(path.c_str()) != 0) return FileError(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::error_code error;
    std::vector<std::string> names;
    std::filesystem::directory_iterator it(directory, error);
    for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return FileError(error.value(), "list", directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status CreateDirectories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return FileError(error.value(), "create the folder", path);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return FileError(errno, "open", path);
    const Descriptor folder(fd);
    if (::fsync(folder.get()) != 0) return FileError(errno, "sync", path);
    return absl::OkStatus();
  }

  bool Exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  absl::StatusOr<FileKind> KindOf(const std::string& path) override {
    LEEWAY_ASSIGN_OR_RETURN(const mode_t mode, ModeOf(path, "look at"));
    if (S_ISREG(mode)) return FileKind::kFile;
    return S_ISDIR(mode) ? FileKind::kFolder : FileKind::kOther;
  }

  absl::StatusOr<std::uint64_t> BytesFree(const std::string& directory) override {
    struct statvfs info;
    if (::statvfs(directory.c_str(), &info) != 0) return FileError(errno, "look at", directory);
    // Some file systems do not count space and report a total of 0.
    if (info.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();
    return std::uint64_t{info.f_bavail} * info.f_frsize;
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    for (int attempt = 0; attempt < kLockAttemptsMax; ++attempt) {
      LEEWAY_ASSIGN_OR_RETURN(Descriptor file, Open(path, O_RDWR | O_CREAT, "open"));
      if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return FileError(errno, "lock", path);
        break;
      }
      // The holder may have removed the file between the two calls. Then the lock is on a file
      // without a name, and the next process would lock a new file of that name.
      if (IsStill(file.get(), path)) return std::make_unique<RealLock>(std::move(file));
    }
    return absl::AlreadyExistsError(absl::StrCat("cannot lock ", path, ": another process has it"));
  }

 private:
  static bool IsStill(int file, const std::string& path) {
    struct stat open, named;
    return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
  }
  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                                   int flag,
                                                                   absl::string_view what) {
    LEEWAY_ASSIGN_OR_RETURN(Descriptor file, Open(path, O_WRONLY | O_CREAT | flag, what));
    return std::make_unique<RealFile>(std::move(file), path);
  }
};

}  // namespace

FileSystem* RealFileSystem() {
  static PosixFileSystem* const files = new PosixFileSystem;  // never destroyed: threads may use it
  return files;
}

}  // namespace leeway::runtime
