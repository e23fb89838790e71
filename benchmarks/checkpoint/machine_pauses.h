// MachinePauses measures how long the machine itself stands still, which no program on it can
// avoid.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_MACHINE_PAUSES_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_MACHINE_PAUSES_H_

#include <atomic>
#include <thread>

#include "absl/time/time.h"

namespace leeway::bench {

// A thread of the highest priority sleeps for a millisecond again and again. When it wakes up late,
// no other thread could have run either: for instance because the host of a virtual machine gives
// it no time after it has used up its share.
class MachinePauses {
 public:
  MachinePauses();
  ~MachinePauses();

  // The total time for which the machine stood still since the last call.
  absl::Duration Take();
  // True if the system lets a thread have that priority.
  bool possible() const { return possible_; }

 private:
  void Run();

  std::atomic<bool> over_ = false;
  std::atomic<bool> possible_ = true;
  std::atomic<std::int64_t> total_ns_ = 0;
  std::thread thread_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_MACHINE_PAUSES_H_
