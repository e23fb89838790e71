// Spans of training, and what they have in common.
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
    absl::Duration began;  // after the window
    absl::Duration took;
    absl::Duration paused;  // of that: the machine stood still
  };
  std::vector<Step> steps;
};

class Trainer {
 public:
  // A step begins every `pace`, and as soon as the last one has ended where that is 0.
  Trainer(Model* model, absl::Duration pace) : model_(model), pace_(pace) {}

  // Steps as long as `go_on` says so, which is told how long it has been.
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
  std::vector<double> dd = {};           // nothing else happened
  std::vector<double> dd_training = {};  // beside training
  std::vector<double> checkpoint = {};   // of the first rounds, then of those with dd
  std::vector<Window> with = {};         // a checkpoint
  std::vector<Window> after = {};        // just after it
  std::vector<Window> without = {};
  std::vector<Window> with_dd = {};
  std::vector<Window> saved_after_dd = {};  // a checkpoint, just after dd
  bool pauses_known = false;
};

void Print(const Report& report);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_
