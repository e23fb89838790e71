// What the scheduler knows, in JSON, and a worker wants to tell its user.
#ifndef LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_
#define LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::worker {

// A server's word on whom it waits for ("worker 3 is at clock 41; waiting for clock 42 of …") with
// what the scheduler's status says of them: "worker 3 is at clock 41, last heard 12.0s ago from
// 10.0.0.7; waiting for clock 42 of …". As it is where the status cannot be read.
std::string WithLastHeard(absl::string_view waiting, absl::string_view status_json);

// Where a checkpoint was written, from the scheduler's answer.
absl::StatusOr<std::string> CheckpointPath(absl::string_view json);

// From which clock on a table has the codec it was given, out of what the scheduler answers then.
absl::StatusOr<std::uint64_t> ClockOfSwitch(absl::string_view json);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_
