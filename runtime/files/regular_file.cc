#include "runtime/files/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace leeway::runtime {
namespace {

absl::Status NoFile(absl::string_view what, const std::string& path, mode_t mode) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": it is ", KindName(mode), ", not a file"));
}

}  // namespace

absl::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

absl::StatusOr<int> OpenRegularFile(const std::string& path, int flags, absl::string_view what) {
  constexpr mode_t kReadableByAll = 0644;
  int fd;
  do {
    // Without O_NONBLOCK, opening a pipe waits for a process at its other end.
    fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kReadableByAll);
  } while (fd < 0 && errno == EINTR);
  const int error = errno;
  struct stat info;
  if (fd < 0) {
    // The kernel's text ("No such device" …) says less than the kind of the file does.
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
      return NoFile(what, path, info.st_mode);
    }
    return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
  }
  info.st_mode = 0;
  const bool looked = ::fstat(fd, &info) == 0;
  if (looked && S_ISREG(info.st_mode)) return fd;
  const int trouble = errno;
  ::close(fd);
  if (looked) return NoFile(what, path, info.st_mode);
  return absl::ErrnoToStatus(trouble, absl::StrCat("cannot ", what, " ", path));
}

}  // namespace leeway::runtime
