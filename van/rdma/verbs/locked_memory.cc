#include "van/rdma/verbs/locked_memory.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace leeway::van::verbs {
namespace {

// True if the process has CAP_IPC_LOCK: then the kernel ignores its limit.
bool MayLockAll() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_IPC_LOCK / 32].effective >> (CAP_IPC_LOCK % 32) & 1) != 0;
}

}  // namespace

std::uint64_t LockedMemoryLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return kNoLimit;
  return limit.rlim_cur == RLIM_INFINITY || MayLockAll() ? kNoLimit : limit.rlim_cur;
}

std::string LockedMemoryText(std::uint64_t limit) {
  return limit == kNoLimit ? "unlimited" : absl::StrCat(limit, " bytes");
}

absl::Status CheckLockedMemory(std::uint64_t limit) {
  if (limit >= kLockedBytesMin) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this process may lock only ", LockedMemoryText(limit),
                   " of memory (RLIMIT_MEMLOCK), and rdma takes ", kLockedBytesMin,
                   " or more: ", kRaiseLockedMemory));
}

}  // namespace leeway::van::verbs
