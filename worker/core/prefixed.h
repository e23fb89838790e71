// A status that says what it is about.
#ifndef LEEWAY_WORKER_CORE_PREFIXED_H_
#define LEEWAY_WORKER_CORE_PREFIXED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::worker {

// The same code; the message begins with "PREFIX: ".
inline absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CORE_PREFIXED_H_
