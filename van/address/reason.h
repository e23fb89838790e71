// WithReason attaches a short reason to a status that has a long message, for log lines that repeat
// the reason while a process waits.
#ifndef LEEWAY_VAN_ADDRESS_REASON_H_
#define LEEWAY_VAN_ADDRESS_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace leeway::van {

// The reason of a dial that was taken, but to which nothing was said.
inline constexpr absl::string_view kNoAnswer = "it takes connections but does not answer";

inline constexpr char kReasonPayload[] = "leeway/reason";

inline absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!reason.empty()) status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

// The short reason, or the message if there is none.
inline std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason.has_value() ? std::string(*reason) : std::string(status.message());
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_REASON_H_
