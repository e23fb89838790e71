// The status of the scheduler, as JSON for people and tools. A pure function of its sources.
// Strangers may ask for it, so it does not have the cluster's id.
#ifndef LEEWAY_SCHEDULER_CONTROL_STATUS_H_
#define LEEWAY_SCHEDULER_CONTROL_STATUS_H_

#include <string>

#include "absl/time/time.h"
#include "scheduler/control/services.h"

namespace leeway::scheduler {

// The scheduler is at that address since then.
std::string StatusToJson(const Services& services, const std::string& address, absl::Time started);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_STATUS_H_
