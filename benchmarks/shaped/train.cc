#include "shaped/train.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/normal_values.h"
#include "harness/stopwatch.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kLayers = 5;
constexpr std::uint64_t kElements = 500'000;  // of a layer
constexpr std::uint64_t kModelBytes = kLayers * kElements * sizeof(float);

}  // namespace

CodedModels::~CodedModels() {
  for (const auto& [codec, model] : models_) {
    for (const Layer& layer : model) worker_->Wait(layer.pushed).IgnoreError();
  }
}

absl::StatusOr<CodedModels::Model*> CodedModels::ModelOf(const std::string& codec) {
  const auto [found, is_new] = models_.try_emplace(codec);
  Model& model = found->second;
  if (!is_new) return &model;
  for (std::size_t i = 0; i < kLayers; ++i) {
    TableSpec spec = TableSpec::Dense(absl::StrCat(codec, " ", i), {kElements});
    spec.consistency = Consistency::Bsp();
    spec.codec = codec;
    if (codec == "auto") spec.codecs = {"none", "zstd", "onebit"};
    absl::StatusOr<Table> table = worker_->CreateTable(spec);
    if (!table.ok()) {
      models_.erase(found);
      return table.status();
    }
    model.push_back({.table = *std::move(table),
                     .parameters = std::vector<float>(kElements),
                     .gradient = NormalValues(kElements, i),
                     .pushed = {}});
  }
  return &model;
}

absl::Status CodedModels::Step(Model* model) {
  std::vector<Ticket> pulled;
  for (Layer& layer : *model) {
    pulled.push_back(layer.table.Pull(std::span<float>(layer.parameters)));
  }
  LEEWAY_RETURN_IF_ERROR(worker_->Wait(pulled));
  for (Layer& layer : *model) {
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(layer.pushed));
    layer.pushed = layer.table.Push(std::span<const float>(layer.gradient));
  }
  return worker_->Clock();
}

Measured CodedModels::Measure(const Command& command) {
  Measured measured;
  const auto run = [&]() -> absl::Status {
    absl::string_view codec = command.op;
    if (!absl::ConsumePrefix(&codec, "train:")) {
      return absl::InvalidArgumentError(absl::StrCat("no work is called ", command.op));
    }
    LEEWAY_ASSIGN_OR_RETURN(Model* const model, ModelOf(std::string(codec)));
    LEEWAY_RETURN_IF_ERROR(Step(model));
    LEEWAY_RETURN_IF_ERROR(Step(model));  // waits for the pushes of the step before
    const Stopwatch watch;
    const auto steps = static_cast<std::uint64_t>(command.in_flight);
    while (measured.operations < steps || watch.Seconds() < command.seconds) {
      LEEWAY_RETURN_IF_ERROR(Step(model));
      ++measured.operations;
    }
    measured.seconds = watch.Seconds();
    measured.cpu_seconds = watch.Cpu();
    measured.bytes = measured.operations * kModelBytes;
    return absl::OkStatus();
  };
  if (const absl::Status status = run(); !status.ok()) measured.error = status.ToString();
  return measured;
}

// The bytes of a step's pushes show the tables' codec: each choice takes at most half of the bytes
// of another.
Measured CodedModels::MeasureSwitch(const Command& command,
                                    const std::function<absl::Status()>& reshape) {
  Measured measured;
  const auto run = [&]() -> absl::Status {
    LEEWAY_ASSIGN_OR_RETURN(Model* const model, ModelOf("auto"));
    const auto pushed_by = [&]() -> absl::StatusOr<std::uint64_t> {
      const std::uint64_t before = worker_->stats().bytes_pushed;
      LEEWAY_RETURN_IF_ERROR(Step(model));
      return worker_->stats().bytes_pushed - before;
    };
    LEEWAY_RETURN_IF_ERROR(Step(model));
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t at_first, pushed_by());
    LEEWAY_RETURN_IF_ERROR(reshape());
    const Stopwatch watch;
    while (watch.Seconds() < command.seconds) {
      LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t now, pushed_by());
      ++measured.operations;
      measured.bytes += now;
      if (2 * now < at_first || now > 2 * at_first) break;
    }
    measured.seconds = watch.Seconds();
    measured.cpu_seconds = watch.Cpu();
    return absl::OkStatus();
  };
  if (const absl::Status status = run(); !status.ok()) measured.error = status.ToString();
  return measured;
}

}  // namespace leeway::bench
