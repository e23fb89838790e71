// How long the machine itself stands still: what no program on it can help.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_MACHINE_PAUSES_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_MACHINE_PAUSES_H_

#include <atomic>
#include <thread>

#include "absl/time/time.h"

namespace leeway::bench {

// A thread that goes before all others sleeps for a millisecond again and again. Where it wakes up
// late, nobody else could have run either: a virtual machine's host gives it no time, for
// instance, since it has used up its share.
class MachinePauses {
 public:
  MachinePauses();
  ~MachinePauses();

  // How long it stood still since the last call, all in all.
  absl::Duration Take();
  // Whether the system lets a thread go before others.
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
