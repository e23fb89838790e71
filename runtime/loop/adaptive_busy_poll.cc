#include "runtime/loop/adaptive_busy_poll.h"

#include <sched.h>

namespace leeway::runtime {

int AdaptiveBusyPoll::CoresOfThisProcess() {
  cpu_set_t cores;
  // More cores than fit into the set are more than one.
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 2;
}

}  // namespace leeway::runtime
