// Checks of the arguments of a user's calls that would otherwise make a message that its receiver
// refuses to read: such a message costs the connection, and is sent again over the next one.
#ifndef LEEWAY_WORKER_CONTROL_ARGUMENT_CHECKS_H_
#define LEEWAY_WORKER_CONTROL_ARGUMENT_CHECKS_H_

#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/messages/limits.h"
#include "proto/tables/text.h"
#include "runtime/base/format_duration.h"

namespace leeway::worker {

// INVALID_ARGUMENT names `field`.
inline absl::Status CheckName(absl::string_view field, absl::string_view name,
                              std::size_t min = 1) {
  return proto::CheckText(field, name, min, proto::kNameBytesMax);
}

// DEADLINE_EXCEEDED if there is no time to do anything in.
inline absl::Status CheckTimeout(absl::Duration timeout) {
  if (timeout > absl::ZeroDuration()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("nothing was sent: the timeout is ", runtime::FormatDuration(timeout),
                   ", but has to be above 0 (Options::timeout, LEEWAY_REQUEST_TIMEOUT_MS)"));
}

// INVALID_ARGUMENT unless the rate is finite and not negative.
inline absl::Status CheckLearningRate(const std::optional<double>& rate) {
  if (!rate.has_value() || (std::isfinite(*rate) && *rate >= 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Options::learning_rate is ", *rate, ", but must be finite and not negative"));
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_ARGUMENT_CHECKS_H_
