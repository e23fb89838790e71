// The error of a process, or a machine, that has no file descriptor left.
#ifndef LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_
#define LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>

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

// How many this process may have open; nullopt: the system does not say.
inline std::optional<std::uint64_t> DescriptorsMax() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

// RESOURCE_EXHAUSTED that names the limit to raise. `error`: of the system call.
inline absl::Status OutOfDescriptors(int error = EMFILE) {
  if (error == ENFILE) {
    return absl::ResourceExhaustedError(
        "this machine is out of file descriptors; raise its limit (sysctl fs.file-max)");
  }
  const std::optional<std::uint64_t> most = DescriptorsMax();
  return absl::ResourceExhaustedError(
      absl::StrCat("this process is out of file descriptors; raise its limit (ulimit -n",
                   most.has_value() ? absl::StrCat(", now ", *most) : "", ")"));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_DESCRIPTORS_H_
