// Readers of the scheduler's answers in JSON.
#ifndef LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_
#define LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::worker {

// Adds to a server's message about the workers that it waits for ("worker 3 is at clock 41; waiting
// for clock 42 of …") when the scheduler last heard of them: "worker 3 is at clock 41, last heard
// 12.0s ago from 10.0.0.7; waiting for clock 42 of …". Unchanged if the status cannot be read.
std::string WithLastHeard(absl::string_view waiting, absl::string_view status_json);

// The folder of a checkpoint, from the scheduler's answer to `checkpoint-save`.
absl::StatusOr<std::string> CheckpointPath(absl::string_view json);

// The clock from which on a change of a table holds, from the scheduler's answer to `codec` or
// `table`.
absl::StatusOr<std::uint64_t> ClockOfSwitch(absl::string_view json);

// The number of a version of a model, from the scheduler's answer to `publish`, and the names of
// its tables, from that to `model`.
absl::StatusOr<std::uint64_t> VersionOfModel(absl::string_view json);
absl::StatusOr<std::vector<std::string>> TablesOfModel(absl::string_view json);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_CLUSTER_STATUS_H_
