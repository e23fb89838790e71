// TrainPrinter prints the progress of training, and its result.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_PRINTER_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_PRINTER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "examples/fashion_mnist/settings.h"
#include "tools/format/progress_bar.h"

namespace leeway::tools {

std::string PointLine(const fashion_mnist::CurvePoint& point);
std::string SummaryLine(const fashion_mnist::Settings& settings, absl::string_view mode,
                        const fashion_mnist::Outcome& outcome);

// A step in a line of standard output, from worker 0 to the launcher that draws the bar.
struct StepLine {
  std::size_t step = 0;
  std::size_t steps = 0;
  double loss = 0;

  std::string ToString() const;
  static std::optional<StepLine> Parse(absl::string_view line);
};

// Prints during training: to a terminal, or to the launcher.
class TrainPrinter {
 public:
  TrainPrinter(bool quiet, bool steps_to_launcher);
  fashion_mnist::Observer observer();
  void Print(absl::string_view line) { bar_.Print(line); }

 private:
  void OnStep(const StepLine& step);

  const bool quiet_;
  const bool steps_to_launcher_;
  absl::Time last_step_ = absl::InfinitePast();
  ProgressBar bar_;
};

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_PRINTER_H_
