#include "tools/train/train_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/train/train_settings.h"

namespace leeway::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson SettingsToJson(const fashion_mnist::Settings& settings) {
  OrderedJson slow = OrderedJson::object();
  for (const auto& [worker, pause] : settings.slow) {
    slow[absl::StrCat(worker)] = absl::ToInt64Milliseconds(pause);
  }
  return {{"model", settings.model},
          {"workers", settings.workers},
          {"servers", settings.servers},
          {"batch", settings.batch},
          {"updater", settings.updater.name},
          {"updater_parameters", settings.updater.parameters},
          {"rate_falls", settings.rate_falls},
          {"epochs", settings.epochs},
          {"steps", settings.steps},
          {"seed", settings.seed},
          {"slow_ms", slow},
          {"data", settings.data}};
}

OrderedJson CurveToJson(const std::vector<fashion_mnist::CurvePoint>& curve) {
  OrderedJson list = OrderedJson::array();
  for (const fashion_mnist::CurvePoint& point : curve) {
    list.push_back({{"epoch", point.epoch},
                    {"step", point.step},
                    {"seconds", point.seconds},
                    {"train_loss", point.train_loss},
                    {"test_loss", point.test_loss},
                    {"test_accuracy", point.test_accuracy}});
  }
  return list;
}

OrderedJson HistogramToJson(const std::map<std::uint64_t, std::uint64_t>& histogram) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [staleness, pulls] : histogram) object[absl::StrCat(staleness)] = pulls;
  return object;
}

double PerWorkerStep(std::uint64_t bytes, const fashion_mnist::Settings& settings,
                     const fashion_mnist::Outcome& outcome) {
  if (outcome.steps_taken == 0) return 0;
  return static_cast<double>(bytes) / static_cast<double>(outcome.steps_taken) / settings.workers;
}

}  // namespace

std::string TrainJson(const fashion_mnist::Settings& settings, absl::string_view mode,
                      const fashion_mnist::Outcome& outcome) {
  OrderedJson json;
  json["mode"] = std::string(mode);
  json["codec"] = settings.codec;
  json["error_feedback"] = std::string(Name(settings.error_feedback));
  json["test_accuracy"] = outcome.curve.back().test_accuracy;
  json["max_staleness"] = outcome.max_staleness;
  json["staleness_violations"] = outcome.staleness_violations;
  json["wall_time_s"] = outcome.wall_time_s;
  json["steps"] = outcome.steps;
  json["bytes_pushed"] = outcome.bytes_pushed;
  json["bytes_pulled"] = outcome.bytes_pulled;
  json["bytes_pushed_per_worker_step"] = PerWorkerStep(outcome.bytes_pushed, settings, outcome);
  json["bytes_pulled_per_worker_step"] = PerWorkerStep(outcome.bytes_pulled, settings, outcome);
  json["resends"] = outcome.resends;
  json["idle_s"] = outcome.idle_s;
  json["staleness_histogram"] = HistogramToJson(outcome.staleness_histogram);
  json["curve"] = CurveToJson(outcome.curve);
  json["settings"] = SettingsToJson(settings);
  // Paths may hold any bytes: bytes that are not UTF-8 are replaced.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

absl::StatusOr<TrainFacts> ParseTrainJson(const std::string& text) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  auto is_there = [&](const char* key, auto is_right) {
    return json.contains(key) && is_right(json[key]);
  };
  auto is_number = [](const OrderedJson& value) { return value.is_number(); };
  auto has_workers = [](const OrderedJson& value) {
    return value.is_object() && value.contains("workers") && value["workers"].is_number();
  };
  if (!is_there("mode", [](const OrderedJson& value) { return value.is_string(); })) {
    return absl::InvalidArgumentError("has no string \"mode\"");
  }
  for (const char* key : {"test_accuracy", "wall_time_s", "max_staleness"}) {
    if (!is_there(key, is_number)) {
      return absl::InvalidArgumentError(absl::StrCat("has no number \"", key, "\""));
    }
  }
  TrainFacts facts{json["mode"].get<std::string>(), json["test_accuracy"].get<double>(),
                   json["wall_time_s"].get<double>(), json["max_staleness"].get<std::uint64_t>()};
  if (is_there("bytes_pushed_per_worker_step", is_number) &&
      is_there("bytes_pulled_per_worker_step", is_number) && is_there("settings", has_workers)) {
    facts.bytes_per_step = (json["bytes_pushed_per_worker_step"].get<double>() +
                            json["bytes_pulled_per_worker_step"].get<double>()) *
                           json["settings"]["workers"].get<double>();
  }
  return facts;
}

}  // namespace leeway::tools
