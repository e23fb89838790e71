#include "runtime/files/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/regular_file.h"

namespace leeway::runtime {
namespace {

// O_DIRECT requires offsets, sizes and addresses to be multiples of this. A disk with larger
// sectors refuses the write, and the file is then written without O_DIRECT.
constexpr std::size_t kDirectAlignment = 4096;
constexpr std::size_t kBytes = kDirectFileBytesAtOnce;
static_assert(kBytes % kDirectAlignment == 0);

class DirectFile final : public WritableFile {
 public:
  DirectFile(int fd, const std::string& path)
      : fd_(fd),
        path_(path),
        buffer_(static_cast<char*>(::operator new (kBytes, std::align_val_t{kDirectAlignment}))) {}
  ~DirectFile() override {
    Close().IgnoreError();
    ::operator delete (buffer_, std::align_val_t{kDirectAlignment});
  }
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const std::size_t part = std::min(data.size(), kBytes - used_);
      std::memcpy(buffer_ + used_, data.data(), part);
      used_ += part;
      data.remove_prefix(part);
      if (used_ < kBytes) return absl::OkStatus();
      LEEWAY_RETURN_IF_ERROR(Write(kBytes));
      offset_ += kBytes;
      used_ = written_ = 0;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    LEEWAY_RETURN_IF_ERROR(WriteRest());
    return ::fsync(fd_) == 0 ? absl::OkStatus() : Error("sync");
  }

  absl::Status Close() override {
    if (fd_ < 0) return absl::OkStatus();
    const absl::Status rest = WriteRest();
    // Linux has closed the descriptor even when it reports EINTR.
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR && rest.ok()) return Error("close");
    return rest;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path_));
  }

  // Writes the bytes in the buffer, padded with zeros to a whole sector; the padding is then cut
  // off the file. The bytes stay in the buffer, because later ones share its last sector.
  absl::Status WriteRest() {
    if (used_ == written_) return absl::OkStatus();
    const std::size_t whole = (used_ + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
    std::memset(buffer_ + used_, 0, whole - used_);
    LEEWAY_RETURN_IF_ERROR(Write(whole));
    if (whole != used_ && ::ftruncate(fd_, static_cast<off_t>(offset_ + used_)) != 0) {
      return Error("write to");
    }
    written_ = used_;
    return absl::OkStatus();
  }

  absl::Status Write(std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t written =
          ::pwrite(fd_, buffer_ + done, bytes - done, static_cast<off_t>(offset_ + done));
      if (written >= 0) {
        done += static_cast<std::size_t>(written);
      } else if (errno == EINVAL && direct_) {
        // Either the device refuses O_DIRECT only now, or a short write left the rest at an
        // unaligned offset.
        direct_ = false;
        const int flags = ::fcntl(fd_, F_GETFL);
        if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) return Error("write to");
      } else if (errno != EINTR) {
        return Error("write to");
      }
    }
    return absl::OkStatus();
  }

  int fd_;
  const std::string path_;
  char* const buffer_;
  std::uint64_t offset_ = 0;  // offset in the file of the buffer's first byte
  std::size_t used_ = 0;      // bytes of the buffer in use
  std::size_t written_ = 0;   // bytes of these that are in the file
  bool direct_ = true;
};

absl::StatusOr<int> Open(const std::string& path, int flags) {
  return OpenRegularFile(path, O_WRONLY | O_CREAT | O_TRUNC | flags, "create");
}

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> CreateDirectFile(const std::string& path) {
  absl::StatusOr<int> fd = Open(path, O_DIRECT);
  if (absl::IsInvalidArgument(fd.status())) fd = Open(path, 0);  // no O_DIRECT on this file system
  if (!fd.ok()) return fd.status();
  return std::make_unique<DirectFile>(*fd, path);
}

}  // namespace leeway::runtime
