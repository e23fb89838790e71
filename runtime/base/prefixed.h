// Errors that are passed on: with their subject in front, or as what they are to the caller.
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

// A call's argument may name something that is looked up. NOT_FOUND there is INVALID_ARGUMENT here:
// to the caller it would say that the call's own object does not exist.
inline absl::Status OfArgument(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::InvalidArgumentError(status.message()) : status;
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_PREFIXED_H_
