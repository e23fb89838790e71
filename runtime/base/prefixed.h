// Prefixed puts the subject of an error in front of its message.
#ifndef LEEWAY_RUNTIME_BASE_PREFIXED_H_
#define LEEWAY_RUNTIME_BASE_PREFIXED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// Returns a status with the same code and the message "PREFIX: MESSAGE". `status` is not OK.
inline absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_PREFIXED_H_
