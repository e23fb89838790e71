#include "tools/train/train_settings.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compress/registry.h"
#include "compress/table_codec.h"
#include "examples/fashion_mnist/model.h"
#include "leeway/config.h"
#include "node/plugins.h"
#include "proto/tables/table_texts.h"
#include "runtime/base/status_macros.h"
#include "tools/launch/cluster.h"
#include "tools/train/local_table.h"

namespace leeway::tools {
namespace {

constexpr std::int64_t kBatchMax = 1'000'000;
constexpr std::int64_t kEpochsMax = 1'000'000;
constexpr std::int64_t kStepsMax = 1'000'000'000;
constexpr std::int64_t kSlowMsMax = 3'600'000;

// Learning rates that suit the example; other updaters have their own defaults.
const std::map<std::string, double>& DefaultRates() {
  static const auto* const kRates =
      new std::map<std::string, double>{{"sgd", 0.03},    {"momentum", 0.02}, {"nesterov", 0.02},
                                        {"adam", 0.0015}, {"adamw", 0.0015},  {"rmsprop", 0.001}};
  return *kRates;
}

absl::Status CheckRange(const char* option, std::int64_t value, std::int64_t min,
                        std::int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, ": it must be from ", min, " to ", max));
}

absl::Status CheckRanges(const TrainCommand& command) {
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("--workers", command.workers, 1, launch::ClusterSpec::kWorkersMax));
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("--servers", command.servers, 1, launch::ClusterSpec::kServersMax));
  LEEWAY_RETURN_IF_ERROR(CheckRange("--batch", command.batch, 1, kBatchMax));
  LEEWAY_RETURN_IF_ERROR(CheckRange("--epochs", command.epochs, 1, kEpochsMax));
  return CheckRange("--steps", command.steps, 0, kStepsMax);
}

absl::StatusOr<UpdaterSpec> UpdaterFrom(const TrainCommand& command) {
  UpdaterSpec updater;
  updater.name = command.updater;
  for (const std::string& parameter : command.updater_parameters) {
    const std::vector<std::string> parts = absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    double value = 0;
    if (parts.size() != 2 || !absl::SimpleAtod(parts[1], &value) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--updater-parameter is '", parameter,
                       "': it must be NAME=VALUE with a finite number, e.g. momentum=0.9"));
    }
    updater.parameters[parts[0]] = value;
  }
  const auto usual = DefaultRates().find(command.updater);
  if (command.rate.has_value()) {
    if (!std::isfinite(*command.rate)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rate is ", *command.rate, ": it must be a finite number"));
    }
    updater.parameters["learning_rate"] = *command.rate;
  } else if (usual != DefaultRates().end()) {
    updater.parameters.insert({"learning_rate", usual->second});
  }
  return updater;
}

// "W:MS": worker W sleeps so many milliseconds in each step.
absl::Status AddSlow(const std::string& text, std::uint32_t workers,
                     std::map<std::uint32_t, absl::Duration>* slow) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  std::uint32_t worker = 0;
  std::int64_t milliseconds = -1;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &worker) ||
      !absl::SimpleAtoi(parts[1], &milliseconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--slow is '", text, "': it must be W:MS, a worker and milliseconds, e.g. 0:50"));
  }
  if (worker >= workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--slow is '", text, "': workers go from 0 to ", workers - 1));
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("the time in --slow", milliseconds, 0, kSlowMsMax));
  (*slow)[worker] = absl::Milliseconds(milliseconds);
  return absl::OkStatus();
}

absl::StatusOr<ErrorFeedback> ErrorFeedbackFrom(const std::string& text) {
  const auto known = proto::EnumOf<ErrorFeedback>(proto::kErrorFeedbacks, text);
  if (known.has_value()) return *known;
  return absl::InvalidArgumentError(absl::StrCat("--error-feedback is '", text,
                                                 "': it must be one of ",
                                                 absl::StrJoin(proto::kErrorFeedbacks, ", ")));
}

// OK if the codec can carry the model's tables, with that error feedback.
absl::Status CheckCodec(const TableSpec& table) {
  if (table.codec == compress::kAutomaticCodec && table.codecs.empty()) {
    return absl::InvalidArgumentError("--codec is auto: --codecs must list its choices");
  }
  for (const std::string& text : compress::CodecTextsOf(table)) {
    if (const auto codec = compress::MakeCodec(text); !codec.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          text == table.codec && text != compress::kAutomaticCodec ? "--codec: " : "--codecs: ",
          codec.status().message()));
    }
  }
  const absl::Status whole = compress::TableCodecsOf(table).status();
  if (whole.ok()) return whole;
  TableSpec automatic = table;
  automatic.error_feedback = ErrorFeedback::kAuto;
  const bool by_itself = compress::TableCodecsOf(automatic).ok();
  return absl::InvalidArgumentError(
      absl::StrCat(by_itself ? "--error-feedback: " : "--codec: ", whole.message()));
}

}  // namespace

absl::Status CheckUpdater(const fashion_mnist::Settings& settings) {
  fashion_mnist::Parameter parameter;
  parameter.name = "parameter";
  parameter.shape = {1};
  return MakeLocalTable(fashion_mnist::TableFor(parameter, settings)).status();
}

absl::string_view Name(ErrorFeedback feedback) {
  return proto::kErrorFeedbacks[static_cast<std::size_t>(feedback)];
}

absl::StatusOr<fashion_mnist::Settings> SettingsFrom(const TrainCommand& command) {
  LEEWAY_RETURN_IF_ERROR(CheckRanges(command));
  fashion_mnist::Settings settings;
  const absl::StatusOr<Consistency> mode = Consistency::Parse(command.mode);
  if (!mode.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--mode: ", mode.status().message()));
  }
  settings.consistency = *mode;
  settings.model = command.model;
  settings.workers = static_cast<std::uint32_t>(command.workers);
  settings.servers = static_cast<std::uint32_t>(command.servers);
  settings.batch = static_cast<std::size_t>(command.batch);
  LEEWAY_ASSIGN_OR_RETURN(settings.updater, UpdaterFrom(command));
  settings.codec = command.codec;
  settings.codecs = absl::StrSplit(command.codecs, ';', absl::SkipWhitespace());
  LEEWAY_ASSIGN_OR_RETURN(settings.error_feedback, ErrorFeedbackFrom(command.error_feedback));
  settings.rate_falls = !command.constant_rate;
  settings.epochs = static_cast<std::size_t>(command.epochs);
  settings.steps = static_cast<std::size_t>(command.steps);
  settings.seed = command.seed;
  if (!command.data.empty()) settings.data = command.data;
  for (const std::string& slow : command.slow) {
    LEEWAY_RETURN_IF_ERROR(AddSlow(slow, settings.workers, &settings.slow));
  }
  const absl::StatusOr<std::unique_ptr<fashion_mnist::Model>> model =
      fashion_mnist::MakeModel(settings.model, settings.seed);
  if (!model.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--model: ", model.status().message()));
  }
  // A user's codec has to be loaded before it is looked for.
  if (const auto config = Config::FromEnvironment(); config.ok()) {
    node::LoadCodecPlugins(config->plugins);
  }
  for (const fashion_mnist::Parameter& parameter : (*model)->parameters()) {
    const TableSpec table = fashion_mnist::TableFor(parameter, settings);
    LEEWAY_RETURN_IF_ERROR(CheckCodec(table));
    LEEWAY_RETURN_IF_ERROR(table.Validate());
  }
  return settings;
}

}  // namespace leeway::tools
