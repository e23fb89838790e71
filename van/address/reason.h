// The few words of why something failed, kept with a status whose message says it at length: for
// lines that say it again and again while somebody waits.
#ifndef LEEWAY_VAN_ADDRESS_REASON_H_
#define LEEWAY_VAN_ADDRESS_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace leeway::van {

inline constexpr char kReasonPayload[] = "leeway/reason";

inline absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!reason.empty()) status.SetPayload(kReasonPayload, absl::Cord(reason));
  return status;
}

// The message, where no reason was kept.
inline std::string ReasonOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason.has_value() ? std::string(*reason) : std::string(status.message());
}

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_REASON_H_
