// BrokenMemory makes the INVALID_ARGUMENT status for a peer whose shared memory is malformed.
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::van {

template <class... Parts>
absl::Status BrokenMemory(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("its shared memory is malformed: ", parts...));
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_
