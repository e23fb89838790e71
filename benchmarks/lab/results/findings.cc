#include "benchmarks/lab/results/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace leeway::lab {
namespace {

using Runs = std::vector<const RunResult*>;

Spread Of(const Runs& runs, const std::function<double(const RunResult&)>& value) {
  std::vector<double> values;
  for (const RunResult* run : runs) values.push_back(value(*run));
  return SpreadOf(values);
}

void AddTimes(const Runs& runs, Setting* setting) {
  double compute = 0, communicate = 0, wait = 0;
  for (const RunResult* run : runs) {
    for (const WorkerTime& worker : run->workers) {
      compute += worker.compute_s;
      communicate += worker.communicate_s;
      wait += worker.wait_s;
    }
  }
  const double all = std::max(compute + communicate + wait, 1e-12);
  setting->computing = compute / all;
  setting->communicating = communicate / all;
  setting->waiting = wait / all;
}

Setting SettingOf(const Experiment& experiment, const std::string& label, const Runs& runs,
                  const Runs& first) {
  Setting setting;
  setting.label = label;
  setting.runs = runs.size();
  setting.seconds = Of(runs, [](const RunResult& run) { return run.last.seconds; });
  setting.loss = Of(runs, [](const RunResult& run) { return run.last.loss; });
  setting.score = Of(runs, [](const RunResult& run) { return run.last.score; });
  setting.bytes = Of(runs, [](const RunResult& run) { return run.last.bytes; });
  std::map<std::string, std::vector<double>> others;
  for (const RunResult* run : runs) {
    for (const auto& [name, value] : run->last.others) others[name].push_back(value);
  }
  for (const auto& [name, values] : others) setting.others[name] = SpreadOf(values);
  AddTimes(runs, &setting);
  std::map<std::uint64_t, std::uint64_t> clocks, updates;
  for (const RunResult* run : runs) {
    for (const auto& [value, count] : run->clock_staleness) clocks[value] += count;
    for (const auto& [value, count] : run->update_staleness) updates[value] += count;
    setting.dropped += run->dropped;
    setting.violations += run->violations;
  }
  setting.clock_staleness = MeanOf(clocks);
  setting.clock_staleness_max = MaxOf(clocks);
  setting.update_staleness = MeanOf(updates);
  setting.update_staleness_max = MaxOf(updates);
  if (std::isnan(experiment.target)) return setting;
  std::vector<double> times, speedups;
  for (const RunResult* run : runs) {
    const double seconds = SecondsTo(*run, experiment.target);
    if (seconds < 0) continue;
    times.push_back(seconds);
    for (const RunResult* other : first) {
      const double before = SecondsTo(*other, experiment.target);
      if (other->plan.seed == run->plan.seed && before >= 0) speedups.push_back(before / seconds);
    }
  }
  setting.reached = times.size();
  setting.seconds_to_target = SpreadOf(times);
  setting.speedup = SpreadOf(speedups);
  return setting;
}

// Whether the plans are equal in all fields that vary but the first.
bool AreComparable(const RunPlan& one, const RunPlan& other,
                   const std::vector<const PlanField*>& varying) {
  for (std::size_t i = 1; i < varying.size(); ++i) {
    if (ValueText(one, *varying[i]) != ValueText(other, *varying[i])) return false;
  }
  return true;
}

std::string Text(const Spread& spread, const char* format) {
  const auto number = [&](double value) {
    return absl::StrFormat(*absl::ParsedFormat<'g'>::New(format), value);
  };
  return std::isnan(spread.deviation)
             ? number(spread.mean)
             : absl::StrCat(number(spread.mean), " ± ", number(spread.deviation));
}

std::vector<std::string> SentencesOf(const Experiment& experiment, const std::string& score_name,
                                     const std::vector<Setting>& settings) {
  std::vector<std::string> sentences;
  if (settings.empty()) return {"No run has ended yet."};
  const std::string what = score_name.empty() ? "loss" : score_name;
  for (const Setting& setting : settings) {
    const Spread& last = score_name.empty() ? setting.loss : setting.score;
    std::string sentence = absl::StrCat(setting.label, ": ");
    if (!std::isnan(experiment.target)) {
      if (setting.reached == 0) {
        absl::StrAppend(&sentence, "no run came to ", what, " ", experiment.target, "; ");
      } else {
        absl::StrAppend(&sentence, setting.reached, " of ", setting.runs, " runs came to ", what,
                        " ", experiment.target, ", after ", Text(setting.seconds_to_target, "%.4g"),
                        " s");
        if (setting.baseline != setting.label && setting.speedup.n > 0) {
          absl::StrAppend(&sentence, " (", setting.baseline, " takes ",
                          Text(setting.speedup, "%.3g"), " times as long)");
        }
        absl::StrAppend(&sentence, "; ");
      }
    }
    absl::StrAppend(&sentence, "in the end ", what, " ", Text(last, "%.4g"), "; workers waited ",
                    absl::StrFormat("%.0f", 100 * setting.waiting), " % of their time; pulls were ",
                    absl::StrFormat("%.2f", setting.clock_staleness), " clocks old, at most ",
                    setting.clock_staleness_max);
    if (setting.update_staleness_max > 0) {
      absl::StrAppend(&sentence, "; pushes ", absl::StrFormat("%.2f", setting.update_staleness),
                      " updates");
    }
    if (setting.dropped > 0) {
      absl::StrAppend(&sentence, "; ", setting.dropped, " parts of pushes were dropped");
    }
    sentence += ".";
    if (!setting.paper.empty()) absl::StrAppend(&sentence, " Elsewhere: ", setting.paper, ".");
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<std::string> LimitsOf(const Experiment& experiment,
                                  const std::vector<Setting>& settings) {
  std::vector<std::string> limits;
  const bool is_virtual = std::ranges::any_of(
      experiment.runs, [](const RunPlan& plan) { return plan.engine == "virtual"; });
  if (is_virtual) {
    limits.push_back(
        "Time is virtual: computation takes what the experiment says, messages what its links "
        "allow, and nothing else takes any. Gradients, policies and codecs are real.");
  } else {
    limits.push_back(
        "Time is that of this machine: all processes share its processors, and steps are "
        "stretched to the length that the experiment gives them.");
  }
  const auto few = std::ranges::find_if(settings, [](const Setting& one) { return one.runs < 3; });
  if (few != settings.end()) {
    limits.push_back(
        "Some settings have fewer than three seeds: a difference between them may be chance.");
  }
  limits.push_back(
      "One workload, and one learning rate for a setting: another rate may suit another policy.");
  return limits;
}

}  // namespace

Spread SpreadOf(const std::vector<double>& values) {
  Spread spread{.n = values.size()};
  if (values.empty()) return {.mean = std::nan(""), .deviation = std::nan("")};
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(spread.n);
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation =
      spread.n < 2 ? std::nan("") : std::sqrt(squares / static_cast<double>(spread.n - 1));
  return spread;
}

Findings FindingsOf(const Experiment& experiment, const std::vector<RunResult>& results) {
  const std::vector<const PlanField*> varying = VaryingFields(experiment.runs);
  std::vector<std::pair<std::string, Runs>> groups;
  for (const RunResult& result : results) {
    const std::string label = LabelOf(result.plan, varying);
    auto group = std::ranges::find_if(groups, [&](const auto& one) { return one.first == label; });
    if (group == groups.end()) group = groups.insert(groups.end(), {label, {}});
    group->second.push_back(&result);
  }
  Findings findings;
  for (const auto& [label, runs] : groups) {
    const RunPlan& plan = runs.front()->plan;
    const auto baseline = std::ranges::find_if(groups, [&](const auto& other) {
      return AreComparable(other.second.front()->plan, plan, varying);
    });
    findings.settings.push_back(SettingOf(experiment, label, runs, baseline->second));
    findings.settings.back().baseline = baseline->first;
    const auto said = experiment.paper.find(label);
    if (said != experiment.paper.end()) findings.settings.back().paper = said->second;
  }
  const std::string score = results.empty() ? "" : results.front().score_name;
  findings.sentences = SentencesOf(experiment, score, findings.settings);
  findings.limits = LimitsOf(experiment, findings.settings);
  return findings;
}

}  // namespace leeway::lab
