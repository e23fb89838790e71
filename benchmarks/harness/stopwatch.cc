#include "harness/stopwatch.h"

#include <time.h>

#include <utility>

namespace leeway::bench {
namespace {

double SecondsOn(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

// As getrusage, but to the nanosecond, and also of other processes.
double CpuSeconds(pid_t process) {
  clockid_t clock;
  return clock_getcpuclockid(process, &clock) == 0 ? SecondsOn(clock) : 0;
}

Stopwatch::Stopwatch(std::vector<pid_t> others)
    : others_(std::move(others)), cpu_start_(CpuSum()), start_(SecondsNow()) {}

double Stopwatch::CpuSum() const {
  double sum = SecondsOn(CLOCK_PROCESS_CPUTIME_ID);
  for (const pid_t process : others_) sum += CpuSeconds(process);
  return sum;
}

}  // namespace leeway::bench
