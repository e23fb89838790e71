#include "benchmarks/lab/results/report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_replace.h"
#include "benchmarks/lab/results/findings.h"
#include "benchmarks/lab/results/report_parts.h"

namespace leeway::lab {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ToJson(const Spread& spread) {
  return {{"mean", Number(spread.mean)}, {"deviation", Number(spread.deviation)}, {"n", spread.n}};
}

Json ToJson(const Setting& setting) {
  Json others = Json::object();
  for (const auto& [name, spread] : setting.others) others[name] = ToJson(spread);
  return {{"label", setting.label},
          {"runs", setting.runs},
          {"reached", setting.reached},
          {"seconds_to_target", ToJson(setting.seconds_to_target)},
          {"seconds", ToJson(setting.seconds)},
          {"loss", ToJson(setting.loss)},
          {"score", ToJson(setting.score)},
          {"others", others},
          {"bytes", ToJson(setting.bytes)},
          {"speedup", ToJson(setting.speedup)},
          {"baseline", setting.baseline},
          {"paper", setting.paper},
          {"computing", setting.computing},
          {"communicating", setting.communicating},
          {"waiting", setting.waiting},
          {"clock_staleness", setting.clock_staleness},
          {"clock_staleness_max", setting.clock_staleness_max},
          {"update_staleness", setting.update_staleness},
          {"update_staleness_max", setting.update_staleness_max},
          {"dropped", setting.dropped},
          {"violations", setting.violations}};
}

// What the page needs, without what would make it long: one timeline a setting.
Json DataOf(const Experiment& experiment, const std::vector<RunResult>& results) {
  const Findings findings = FindingsOf(experiment, results);
  const std::vector<const PlanField*> varying = VaryingFields(experiment.runs);
  Json data = {{"title", experiment.title},
               {"about", experiment.about},
               {"target", Number(experiment.target)},
               {"score_name", ScoreNameOf(results)},
               {"runs_planned", experiment.runs.size()},
               {"sentences", findings.sentences},
               {"limits", findings.limits}};
  if (!experiment.runs.empty()) {
    data["fixed"] = Json::object();
    for (const PlanField& field : PlanFields()) {
      const RunPlan& plan = experiment.runs.front();
      const bool varies = std::ranges::any_of(experiment.runs, [&](const RunPlan& other) {
        return ValueText(other, field) != ValueText(plan, field);
      });
      if (!varies && std::string(field.name) != "seed") {
        data["fixed"][field.name] = ValueText(plan, field);
      }
    }
  }
  data["settings"] = Json::array();
  for (const Setting& setting : findings.settings) data["settings"].push_back(ToJson(setting));
  data["runs"] = Json::array();
  std::set<std::string> shown;
  for (const RunResult& result : results) {
    Json run = ToJson(result);
    run["label"] = LabelOf(result.plan, varying);
    run["seed"] = result.plan.seed;
    run.erase("plan");
    run.erase("workers");
    if (!shown.insert(run["label"].get<std::string>()).second) run.erase("timeline");
    data["runs"].push_back(std::move(run));
  }
  return data;
}

}  // namespace

std::string ReportOf(const Experiment& experiment, const std::vector<RunResult>& results) {
  // Within a script, "<" could end it or begin a comment.
  const std::string data = absl::StrReplaceAll(
      DataOf(experiment, results).dump(-1, ' ', false, Json::error_handler_t::replace),
      {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kReportPage, {{"/*CHART_JS*/", kChartLibrary}, {"/*DATA*/", data}});
}

}  // namespace leeway::lab
