#include "tools/format/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/monotonic_time.h"
#include "tools/launch/output.h"

namespace leeway::tools {
namespace {

constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);
constexpr std::size_t kWidth = 30;
constexpr char kWipe[] = "\r\033[K";

}  // namespace

std::string BarText(double part, absl::string_view text, absl::Duration elapsed) {
  const auto full = static_cast<std::size_t>(part * kWidth);
  std::string bar(kWidth, ' ');
  std::fill_n(bar.begin(), full, '=');
  if (full < kWidth) bar[full] = '>';
  return absl::StrFormat("[%s] %3d %%  %s  %d s", bar, static_cast<int>(part * 100), text,
                         absl::ToInt64Seconds(elapsed));
}

std::string BarText(std::size_t step, std::size_t steps, double loss, absl::Duration elapsed) {
  const double part =
      steps == 0 ? 1 : std::min(1.0, static_cast<double>(step) / static_cast<double>(steps));
  return BarText(part, absl::StrFormat("step %d/%d  loss %.3f", step, steps, loss), elapsed);
}

ProgressBar::ProgressBar(bool wanted)
    : drawn_(wanted && isatty(STDOUT_FILENO) == 1),
      start_(runtime::MonotonicNow()),
      last_(absl::InfinitePast()) {}

ProgressBar::~ProgressBar() {
  if (!text_.empty()) launch::WriteAll(STDOUT_FILENO, kWipe);
}

void ProgressBar::Show(std::size_t step, std::size_t steps, double loss) {
  const absl::Time now = runtime::MonotonicNow();
  if (!drawn_ || (now - last_ < kRedrawInterval && step < steps)) return;
  last_ = now;
  Draw(BarText(step, steps, loss, now - start_));
}

void ProgressBar::ShowText(double part, absl::string_view text) {
  if (drawn_) Draw(BarText(part, text, runtime::MonotonicNow() - start_));
}

void ProgressBar::Draw(std::string text) {
  text_ = std::move(text);
  launch::WriteAll(STDOUT_FILENO, absl::StrCat(kWipe, text_));
}

bool ProgressBar::Print(absl::string_view line) {
  return launch::WriteAll(STDOUT_FILENO,
                          absl::StrCat(text_.empty() ? "" : kWipe, line, "\n", text_));
}

}  // namespace leeway::tools
