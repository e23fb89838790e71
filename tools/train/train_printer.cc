#include "tools/train/train_printer.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/monotonic_time.h"
#include "tools/format/format_units.h"

namespace leeway::tools {
namespace {

constexpr absl::Duration kStepInterval = absl::Milliseconds(100);
constexpr char kStepMark[] = "@step";

std::string Seconds(double seconds) { return absl::StrFormat("%.1f", seconds); }

}  // namespace

std::string PointLine(const fashion_mnist::CurvePoint& point) {
  return absl::StrFormat(
      "epoch %d  step %d  training loss %.4f  test loss %.4f  test accuracy %.2f %%  %.1f s",
      point.epoch, point.step, point.train_loss, point.test_loss, 100 * point.test_accuracy,
      point.seconds);
}

std::string SummaryLine(const fashion_mnist::Settings& settings, absl::string_view mode,
                        const fashion_mnist::Outcome& outcome) {
  std::vector<std::string> idle;
  for (const double seconds : outcome.idle_s) idle.push_back(Seconds(seconds));
  return absl::StrFormat(
      "%s %s: test accuracy %.2f %% in %.1f s; largest staleness %d; pushed %s, pulled %s; idle "
      "%s s",
      settings.model, std::string(mode), 100 * outcome.curve.back().test_accuracy,
      outcome.wall_time_s, outcome.max_staleness, Megabytes(outcome.bytes_pushed),
      Megabytes(outcome.bytes_pulled), absl::StrJoin(idle, ", "));
}

std::string StepLine::ToString() const {
  return absl::StrFormat("%s %d %d %.6g", kStepMark, step, steps, loss);
}

std::optional<StepLine> StepLine::Parse(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  StepLine result;
  if (words.size() != 4 || words[0] != kStepMark || !absl::SimpleAtoi(words[1], &result.step) ||
      !absl::SimpleAtoi(words[2], &result.steps) || !absl::SimpleAtod(words[3], &result.loss)) {
    return std::nullopt;
  }
  return result;
}

TrainPrinter::TrainPrinter(bool quiet, bool steps_to_launcher)
    : quiet_(quiet), steps_to_launcher_(steps_to_launcher), bar_(!quiet && !steps_to_launcher) {}

fashion_mnist::Observer TrainPrinter::observer() {
  fashion_mnist::Observer observer;
  if (quiet_) return observer;
  observer.on_step = [this](std::size_t step, std::size_t steps, double loss) {
    OnStep({step, steps, loss});
  };
  observer.on_point = [this](const fashion_mnist::CurvePoint& point) { Print(PointLine(point)); };
  return observer;
}

void TrainPrinter::OnStep(const StepLine& step) {
  if (!steps_to_launcher_) return bar_.Show(step.step, step.steps, step.loss);
  const absl::Time now = runtime::MonotonicNow();
  if (now - last_step_ < kStepInterval && step.step < step.steps) return;
  last_step_ = now;
  Print(step.ToString());
}

}  // namespace leeway::tools
