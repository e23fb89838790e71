// The error of a process, or a machine, that has no file descriptor left.
#ifndef LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_
#define LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::runtime {

inline bool IsOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE; }

// Whether this process can open one more now. For calls that do not say what they lacked.
inline bool HasDescriptor() {
  const int one = ::eventfd(0, EFD_CLOEXEC);
  if (one >= 0) ::close(one);
  return one >= 0;
}

// RESOURCE_EXHAUSTED that names the limit to raise. `error`: of the system call.
inline absl::Status OutOfDescriptors(int error = EMFILE) {
  if (error == ENFILE) {
    return absl::ResourceExhaustedError(
        "this machine is out of file descriptors; raise its limit (sysctl fs.file-max)");
  }
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return absl::ResourceExhaustedError(
      absl::StrCat("this process is out of file descriptors; raise its limit (ulimit -n",
                   known ? absl::StrCat(", now ", limit.rlim_cur) : "", ")"));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_
