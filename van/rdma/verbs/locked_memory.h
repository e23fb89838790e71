// LockedMemoryLimit tells how much memory this process may lock; every registration needs locked
// memory.
#ifndef LEEWAY_VAN_RDMA_VERBS_LOCKED_MEMORY_H_
#define LEEWAY_VAN_RDMA_VERBS_LOCKED_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace leeway::van::verbs {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
// With less, even small clusters reach the limit; many systems allow 8 MiB.
inline constexpr std::uint64_t kLockedBytesMin = 64 << 20;

// In bytes; kNoLimit also if the process has the capability CAP_IPC_LOCK.
std::uint64_t LockedMemoryLimit();
// "8388608 bytes", "unlimited".
std::string LockedMemoryText(std::uint64_t limit);
// The commands that raise the limit, for messages.
inline constexpr char kRaiseLockedMemory[] =
    "raise it with `ulimit -l unlimited` (root), with `* - memlock unlimited` in "
    "/etc/security/limits.conf, or with LimitMEMLOCK=infinity in the service file";
// RESOURCE_EXHAUSTED below kLockedBytesMin.
absl::Status CheckLockedMemory(std::uint64_t limit);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_LOCKED_MEMORY_H_
