// The error of a peer whose shared memory makes no sense.
#ifndef LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_
#define LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::van {

template <class... Parts>
absl::Status BrokenMemory(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("its shared memory makes no sense: ", parts...));
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_MEMORY_SHM_BROKEN_H_
