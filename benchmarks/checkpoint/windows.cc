#include "checkpoint/windows.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kSlowestShown = 6;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string Listed(const std::vector<double>& values, const char* format) {
  std::string text;
  for (const double value : values) {
    char one[32];
    std::snprintf(one, sizeof(one), format, value);
    absl::StrAppend(&text, text.empty() ? "" : " ", one);
  }
  return text;
}

// The part of a step that is reported: all of it, or without the time that the machine stood still.
using Part = absl::Duration (*)(const Window::Step&);
absl::Duration Whole(const Window::Step& step) { return step.took; }
absl::Duration WithoutPauses(const Window::Step& step) { return step.took - step.paused; }

double Longest(const Window& window, Part part) {
  absl::Duration longest;
  for (const Window::Step& step : window.steps) longest = std::max(longest, part(step));
  return absl::ToDoubleMilliseconds(longest);
}

std::vector<double> LongestOf(const std::vector<Window>& windows, Part part) {
  std::vector<double> longest;
  for (const Window& window : windows) longest.push_back(Longest(window, part));
  return longest;
}

void PrintSteps(const char* when, const std::vector<Window>& windows, Part part) {
  std::vector<double> times;
  for (const Window& window : windows) {
    for (const Window::Step& step : window.steps) {
      times.push_back(absl::ToDoubleMilliseconds(part(step)));
    }
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  std::printf("  %-16s %6zu  %8.1f %8.1f %8.1f %8.1f   %s\n", when, times.size(), at(0.5), at(0.99),
              at(0.999), at(1), Listed(LongestOf(windows, part), "%.1f").c_str());
}

void PrintWindows(const char* what, const Report& report, Part part) {
  std::printf("%s\n", what);
  std::printf(
      "                    number    median     99 %%   99.9 %%  longest   of each round\n");
  PrintSteps("with checkpoint", report.with, part);
  PrintSteps("just after it", report.after, part);
  PrintSteps("without", report.without, part);
  PrintSteps("with dd", report.with_dd, part);
  PrintSteps("saved after dd", report.saved_after_dd, part);
  std::vector<double> stalls;
  for (std::size_t i = 0; i < report.with.size(); ++i) {
    stalls.push_back(std::max(Longest(report.with[i], part), Longest(report.after[i], part)) -
                     Longest(report.without[i], part));
  }
  std::printf(
      "  longest with a checkpoint minus longest without, by round: %s ms; median %.1f ms\n",
      Listed(stalls, "%.1f").c_str(), Median(stalls));
}

void PrintSlowest(const char* when, const Window& window) {
  std::vector<Window::Step> slow = window.steps;
  std::sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.took > b.took; });
  slow.resize(std::min(slow.size(), kSlowestShown));
  std::printf("  the slowest steps %s (ms, at second):", when);
  for (const Window::Step& step : slow) {
    std::printf("  %.1f at %.2f (machine: %.1f)", absl::ToDoubleMilliseconds(step.took),
                absl::ToDoubleSeconds(step.began), absl::ToDoubleMilliseconds(step.paused));
  }
  std::printf("\n");
}

void PrintLoad() {
  double load[3] = {};
  if (getloadavg(load, 3) == 3) std::printf("load of the machine: %.1f %.1f\n", load[0], load[1]);
}

}  // namespace

Window Trainer::While(const std::function<bool(absl::Duration)>& go_on) {
  Window window;
  const absl::Time start = absl::Now();
  for (absl::Duration since; go_on(since); since = absl::Now() - start) {
    if (pace_ > absl::ZeroDuration()) absl::SleepFor(pace_ - (absl::Now() - start) % pace_);
    pauses_.Take();
    const absl::Duration took = model_->Step();
    window.steps.push_back(
        {.began = since, .took = took, .paused = std::min(took, pauses_.Take())});
  }
  return window;
}

void Print(const Report& report) {
  PrintLoad();
  std::printf("dd, alone:           %s MB/s\n", Listed(report.dd, "%.0f").c_str());
  std::printf("dd, beside training: %s MB/s\n", Listed(report.dd_training, "%.0f").c_str());
  std::printf("checkpoint:          %s MB/s\n", Listed(report.checkpoint, "%.0f").c_str());
  const double rate = 100 * Median(report.checkpoint);
  std::printf("checkpoint / dd alone, medians: %.0f %%; / dd beside training: %.0f %%\n",
              rate / Median(report.dd), rate / Median(report.dd_training));
  PrintWindows("steps, ms", report, Whole);
  if (report.pauses_known) {
    PrintWindows("steps without what the machine itself stood still in them, ms", report,
                 WithoutPauses);
  }
  for (const Window& window : report.with) PrintSlowest("with a checkpoint", window);
}

}  // namespace leeway::bench
