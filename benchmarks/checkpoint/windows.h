// Spans of training, and what they have in common.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "checkpoint/model.h"

namespace leeway::bench {

struct Window {
  struct Step {
    absl::Duration began;  // after the window
    absl::Duration took;
  };
  std::vector<Step> steps;
};

// Steps as long as `go_on` says so, which is told how long it has been.
Window Train(Model* model, const std::function<bool(absl::Duration)>& go_on);

// Windows by round; rates in MB/s.
struct Report {
  std::vector<double> dd = {};           // nothing else happened
  std::vector<double> dd_training = {};  // beside training
  std::vector<double> checkpoint = {};
  std::vector<Window> with = {};   // a checkpoint
  std::vector<Window> after = {};  // just after it
  std::vector<Window> without = {};
  std::vector<Window> with_dd = {};
};

void Print(const Report& report);

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_WINDOWS_H_
