#include "runtime/loop/adaptive_busy_poll.h"

#include <sched.h>

namespace leeway::runtime {

int AdaptiveBusyPoll::CoresOfThisProcess() {
  cpu_set_t cores;
  // The call fails if there are more cores than the set holds; those are more than one.
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 2;
}

}  // namespace leeway::runtime
