// ThreadCpuTime is the processor time that the calling thread has used. Only differences have a
// meaning. It is no clock to decide by alone: on virtual time it is not the same in each run.
#ifndef LEEWAY_RUNTIME_BASE_THREAD_CPU_TIME_H_
#define LEEWAY_RUNTIME_BASE_THREAD_CPU_TIME_H_

#include <time.h>

#include "absl/time/time.h"

namespace leeway::runtime {

inline absl::Duration ThreadCpuTime() {
  timespec used;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_THREAD_CPU_TIME_H_
