// A Trainer trains in windows of time, and a Report compares them.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "checkpoint/machine_pauses.h"
#include "checkpoint/model.h"

namespace leeway::bench {

struct Window {
  struct Step {
    absl::Duration began;  // since the start of the window
    absl::Duration took;
    absl::Duration paused;  // the part of it in which the machine stood still
  };
  std::vector<Step> steps;
};

class Trainer {
 public:
  // A step begins every `pace`; with 0, as soon as the last one has ended.
  Trainer(Model* model, absl::Duration pace) : model_(model), pace_(pace) {}

  // Steps as long as `go_on` returns true; its argument is the time since the beginning.
  Window While(const std::function<bool(absl::Duration)>& go_on);
  Window For(absl::Duration time) {
    return While([time](absl::Duration since) { return since < time; });
  }
  const MachinePauses& pauses() const { return pauses_; }

 private:
  Model* const model_;
  const absl::Duration pace_;
  MachinePauses pauses_;
};

// Windows by round; rates in MB/s.
struct Report {
  std::vector<double> dd = {};           // alone
  std::vector<double> dd_training = {};  // beside training
  std::vector<double> checkpoint = {};   // of the first rounds, then of those with dd
  std::vector<Window> with = {};         // during a checkpoint
  std::vector<Window> after = {};        // just after a checkpoint
  std::vector<Window> without = {};
  std::vector<Window> with_dd = {};
  std::vector<Window> saved_after_dd = {};  // a checkpoint, just after dd
  bool pauses_known = false;
};

void Print(const Report& report);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_
