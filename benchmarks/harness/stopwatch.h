// A Stopwatch measures wall time, and the CPU time of several processes.
#ifndef LEEWAY_BENCHMARKS_HARNESS_STOPWATCH_H_
#define LEEWAY_BENCHMARKS_HARNESS_STOPWATCH_H_

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace leeway::bench {

inline double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// User and system time of a process so far, all its threads; 0 for a process that is gone.
double CpuSeconds(pid_t process);

class Stopwatch {
 public:
  // The CPU time of `others` counts beside this process's own.
  explicit Stopwatch(std::vector<pid_t> others = {});

  double Seconds() const { return SecondsNow() - start_; }
  double Cpu() const { return CpuSum() - cpu_start_; }

 private:
  double CpuSum() const;

  const std::vector<pid_t> others_;
  double cpu_start_;
  double start_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_HARNESS_STOPWATCH_H_
