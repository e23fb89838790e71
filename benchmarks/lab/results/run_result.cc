#include "benchmarks/lab/results/run_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

using Json = nlohmann::ordered_json;
using Histogram = std::map<std::uint64_t, std::uint64_t>;

// Columns, so that a file is no longer than its numbers. Seconds to the microsecond.
double Rounded(double value) { return std::round(value * 1e6) / 1e6; }
// JSON has no NaN: null.
Json OrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double FromNumber(const nlohmann::json& json) {
  return json.is_null() ? std::nan("") : json.get<double>();
}

Json ToJson(const WorkerTime& worker) {
  return {{"steps", worker.steps},
          {"compute_s", Rounded(worker.compute_s)},
          {"communicate_s", Rounded(worker.communicate_s)},
          {"wait_s", Rounded(worker.wait_s)},
          {"last_s", Rounded(worker.last_s)},
          {"train_loss", OrNull(worker.train_loss)}};
}

WorkerTime WorkerFrom(const nlohmann::json& json) {
  return {.steps = json.at("steps"),
          .compute_s = json.at("compute_s"),
          .communicate_s = json.at("communicate_s"),
          .wait_s = json.at("wait_s"),
          .last_s = json.at("last_s"),
          .train_loss = FromNumber(json.at("train_loss"))};
}

Json ToJson(const Histogram& histogram) {
  Json json = Json::array();
  for (const auto& [value, count] : histogram) json.push_back({value, count});
  return json;
}

Histogram HistogramFrom(const nlohmann::json& json) {
  Histogram histogram;
  for (const auto& pair : json) histogram[pair.at(0)] = pair.at(1);
  return histogram;
}

}  // namespace

nlohmann::ordered_json ToJson(const Point& point) {
  Json json = {{"seconds", Rounded(point.seconds)},
               {"epochs", point.epochs},
               {"bytes", point.bytes},
               {"loss", OrNull(point.loss)},
               {"score", OrNull(point.score)}};
  for (const auto& [name, value] : point.others) json["others"][name] = OrNull(value);
  return json;
}

Point PointFrom(const nlohmann::json& json) {
  Point point{.seconds = json.at("seconds"),
              .epochs = json.at("epochs"),
              .bytes = json.at("bytes"),
              .loss = FromNumber(json.at("loss")),
              .score = FromNumber(json.at("score"))};
  if (!json.contains("others")) return point;
  for (const auto& [name, value] : json.at("others").items()) {
    point.others[name] = FromNumber(value);
  }
  return point;
}

nlohmann::ordered_json ToJson(const RunResult& result) {
  Json json = {{"plan", ToJson(result.plan)}, {"error", result.error}};
  if (!result.error.empty()) return json;
  json["score_name"] = result.score_name;
  json["last"] = ToJson(result.last);
  json["points"] = Json::array();
  for (const Point& point : result.points) json["points"].push_back(ToJson(point));
  json["workers"] = Json::array();
  for (const WorkerTime& worker : result.workers) json["workers"].push_back(ToJson(worker));
  json["timeline"] = Json::array();
  for (const auto& steps : result.timeline) {
    Json row = Json::array();
    for (const TimelineStep& step : steps) {
      row.push_back({Rounded(step.pull_s), Rounded(step.compute_s), Rounded(step.push_s)});
    }
    json["timeline"].push_back(std::move(row));
  }
  json["clock_staleness"] = ToJson(result.clock_staleness);
  json["update_staleness"] = ToJson(result.update_staleness);
  json["dropped"] = result.dropped;
  json["violations"] = result.violations;
  return json;
}

absl::StatusOr<RunResult> ResultFromJson(const nlohmann::json& json) {
  RunResult result;
  try {
    LEEWAY_ASSIGN_OR_RETURN(result.plan, PlanFromJson(json.at("plan")));
    result.error = json.at("error");
    if (!result.error.empty()) return result;
    result.score_name = json.at("score_name");
    result.last = PointFrom(json.at("last"));
    for (const auto& point : json.at("points")) result.points.push_back(PointFrom(point));
    for (const auto& worker : json.at("workers")) result.workers.push_back(WorkerFrom(worker));
    for (const auto& row : json.at("timeline")) {
      std::vector<TimelineStep>& steps = result.timeline.emplace_back();
      for (const auto& step : row) {
        steps.push_back({.pull_s = step.at(0), .compute_s = step.at(1), .push_s = step.at(2)});
      }
    }
    result.clock_staleness = HistogramFrom(json.at("clock_staleness"));
    result.update_staleness = HistogramFrom(json.at("update_staleness"));
    result.dropped = json.at("dropped");
    result.violations = json.at("violations");
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("a run's result is damaged: ", error.what()));
  }
  return result;
}

namespace {

// Null: never.
const Point* FirstAt(const RunResult& result, double target) {
  const bool scored = !result.score_name.empty();
  const auto reached = [&](const Point& point) {
    return scored ? point.score >= target : point.loss <= target;
  };
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const Point& next = i + 1 < result.points.size() ? result.points[i + 1] : result.last;
    if (reached(result.points[i]) && reached(next)) return &result.points[i];
  }
  return reached(result.last) ? &result.last : nullptr;
}

}  // namespace

double SecondsTo(const RunResult& result, double target) {
  const Point* const first = FirstAt(result, target);
  return first == nullptr ? -1 : first->seconds;
}

double EpochsTo(const RunResult& result, double target) {
  const Point* const first = FirstAt(result, target);
  return first == nullptr ? -1 : first->epochs;
}

double MeanOf(const Histogram& histogram) {
  double sum = 0, count = 0;
  for (const auto& [value, times] : histogram) {
    sum += static_cast<double>(value) * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  return count == 0 ? 0 : sum / count;
}

std::uint64_t MaxOf(const Histogram& histogram) {
  return histogram.empty() ? 0 : histogram.rbegin()->first;
}

}  // namespace leeway::lab
