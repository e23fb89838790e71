#include "benchmarks/lab/results/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ps/table/counters.h"

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
  setting.score_name = runs.front()->score_name;
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
      if (other->plan.seed == run->plan.seed && before >= 0 && seconds > 0) {
        speedups.push_back(before / seconds);
      }
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

// Least squares of y over x. Not for fewer than three points, or where all x are the same.
std::optional<StalenessSlope> LineThrough(const std::vector<std::pair<double, double>>& points) {
  const auto n = static_cast<double>(points.size());
  if (points.size() < 3) return std::nullopt;
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / n;
    mean_y += y / n;
  }
  double xx = 0, xy = 0, rest = 0;
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  if (xx < 1e-9) return std::nullopt;
  StalenessSlope line;
  line.runs = points.size();
  line.slope = xy / xx;
  line.epochs = mean_y - line.slope * mean_x;
  for (const auto& [x, y] : points) {
    const double off = y - line.epochs - line.slope * x;
    rest += off * off;
  }
  line.error = std::sqrt(rest / (n - 2) / xx);
  return line;
}

std::vector<StalenessSlope> SlopesOf(const Experiment& experiment,
                                     const std::vector<RunResult>& results,
                                     const std::vector<const PlanField*>& varying) {
  constexpr std::size_t kPoliciesMin = 3;  // fewer make no line
  std::vector<std::string> labels;
  std::map<std::string, std::vector<std::pair<double, double>>> points;
  std::map<std::string, std::set<std::string>> policies;
  std::map<std::string, std::size_t> all;
  for (const RunResult& run : results) {
    const absl::StatusOr<Consistency> policy = Consistency::Parse(run.plan.policy);
    if (!policy.ok() || policy->rule != Consistency::Rule::kClocks || policy->is_weighted() ||
        policy->is_compensated()) {
      continue;
    }
    const std::string label = LabelWithoutPolicy(run.plan, varying);
    const double epochs = EpochsTo(run, experiment.target);
    if (!policies.contains(label)) labels.push_back(label);
    policies[label].insert(run.plan.policy);
    ++all[label];
    if (epochs >= 0) points[label].emplace_back(MeanOf(run.clock_staleness), epochs);
  }
  std::vector<StalenessSlope> slopes;
  for (const std::string& label : labels) {
    if (policies[label].size() < kPoliciesMin) continue;
    std::optional<StalenessSlope> line = LineThrough(points[label]);
    if (!line.has_value() || line->epochs <= 0) continue;
    line->label = label;
    line->all = all[label];
    const auto said = experiment.paper.find(label);
    if (said != experiment.paper.end()) line->paper = said->second;
    slopes.push_back(*std::move(line));
  }
  return slopes;
}

std::string SentenceOf(const StalenessSlope& line, const std::string& target) {
  const double percent = 100 / line.epochs;
  // Runs that did not come to the target are not on the line.
  const std::string runs =
      line.all == line.runs
          ? absl::StrCat(line.runs, " runs")
          : absl::StrCat(line.runs, " of ", line.all,
                         " runs; the others did not come to it, so that it may be more");
  std::string sentence = absl::StrCat(
      line.label, ": a clock of mean staleness adds ",
      absl::StrFormat("%.1f ± %.1f %% to the %.3g epochs to %s (%s)", percent * line.slope,
                      percent * line.error, line.epochs, target, runs),
      ".");
  if (!line.paper.empty()) absl::StrAppend(&sentence, " Elsewhere: ", line.paper, ".");
  return sentence;
}

std::string Text(const Spread& spread, const char* format) {
  const auto number = [&](double value) {
    if (!std::isfinite(value)) return std::string("not finite");  // a run that has diverged
    return absl::StrFormat(*absl::ParsedFormat<'g'>::New(format), value);
  };
  return std::isnan(spread.deviation)
             ? number(spread.mean)
             : absl::StrCat(number(spread.mean), " ± ", number(spread.deviation));
}

std::vector<std::string> SentencesOf(const Experiment& experiment,
                                     const std::vector<Setting>& settings) {
  std::vector<std::string> sentences;
  if (settings.empty()) return {"No run has ended yet."};
  for (const Setting& setting : settings) {
    const bool scored = !setting.score_name.empty();
    const std::string what = scored ? setting.score_name : "loss";
    const Spread& last = scored ? setting.score : setting.loss;
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
  const auto are_of = [&](const char* engine) {
    return std::ranges::count(experiment.runs, engine, &RunPlan::engine);
  };
  const bool both = are_of("virtual") > 0 && are_of("real") > 0;
  if (are_of("virtual") > 0) {
    limits.push_back(absl::StrCat(
        both ? "Of virtual runs, time" : "Time",
        " is virtual: computation takes what the experiment says, messages what its links "
        "allow, and nothing else takes any. Gradients, policies and codecs are real."));
  }
  if (are_of("real") > 0) {
    limits.push_back(
        absl::StrCat(both ? "Of real runs, time" : "Time",
                     " is that of this machine: all processes share its processors, and steps are "
                     "stretched to the length that the experiment gives them."));
  }
  const auto few = std::ranges::find_if(settings, [](const Setting& one) { return one.runs < 3; });
  if (few != settings.end()) {
    limits.push_back(
        "Some settings have fewer than three seeds: a difference between them may be chance.");
  }
  std::set<std::string> names;
  for (const Setting& one : settings)
    names.insert(one.score_name.empty() ? "loss" : one.score_name);
  if (names.size() > 1) {
    limits.push_back(absl::StrCat("Scores of different kinds (", absl::StrJoin(names, ", "),
                                  ") cannot be compared."));
  }
  limits.push_back(
      "One workload, and one learning rate for a setting: another rate may suit another policy.");
  limits.push_back(
      "Curves and times to a target may be of a part of the held-out data; the last values are of "
      "all of it.");
  if (std::ranges::any_of(settings, [](const Setting& one) {
        return one.update_staleness_max >= ps::StalenessCounts::kMax;
      })) {
    limits.push_back(absl::StrCat("Servers count pushes that are ", ps::StalenessCounts::kMax,
                                  " updates stale or more together: where there are such, the mean "
                                  "staleness in updates is higher than what stands here."));
  }
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

std::string ScoreNameOf(const std::vector<RunResult>& results) {
  std::set<std::string> names;
  for (const RunResult& result : results) names.insert(result.score_name);
  return names.empty() ? "" : names.size() == 1 ? *names.begin() : "score";
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
  findings.sentences = SentencesOf(experiment, findings.settings);
  if (!std::isnan(experiment.target)) {
    findings.slopes = SlopesOf(experiment, results, varying);
    const std::string score = ScoreNameOf(results);
    const std::string target = absl::StrCat(score.empty() ? "loss" : score, " ", experiment.target);
    for (const StalenessSlope& line : findings.slopes) {
      findings.sentences.push_back(SentenceOf(line, target));
    }
  }
  findings.limits = LimitsOf(experiment, findings.settings);
  return findings;
}

}  // namespace leeway::lab
