// A status whose message says what it is about.
#ifndef LEEWAY_RUNTIME_BASE_PREFIXED_H_
#define LEEWAY_RUNTIME_BASE_PREFIXED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

// The same code; the message becomes "PREFIX: MESSAGE". For statuses that are not OK.
inline absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_PREFIXED_H_
