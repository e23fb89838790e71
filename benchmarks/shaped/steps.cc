#include "shaped/steps.h"

#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "harness/stopwatch.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
// The number and size of layers, from the first one on.
constexpr std::pair<int, std::uint64_t> kShape[] = {
    {20, 64 * kKiB}, {15, 256 * kKiB}, {11, kMiB},    {1, 4 * kMiB},
    {1, 32 * kMiB},  {1, 16 * kMiB},   {1, 4 * kMiB},
};
// The first layer is an embedding: rows of a sparse table.
constexpr std::uint64_t kLayerRowWidth = 16;
constexpr absl::Duration kForward = absl::Milliseconds(4);   // a layer
constexpr absl::Duration kBackward = absl::Milliseconds(8);  // a layer

}  // namespace

LayeredModel::~LayeredModel() {
  for (const Layer& layer : layers_) worker_->Wait(layer.exchanged).IgnoreError();
}

absl::Status LayeredModel::Build() {
  for (const auto& [count, bytes] : kShape) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t elements = bytes / sizeof(float);
      const std::string name = absl::StrCat("layer ", layers_.size());
      std::vector<std::uint64_t> keys(layers_.empty() ? elements / kLayerRowWidth : 0);
      std::iota(keys.begin(), keys.end(), 0);
      TableSpec spec = keys.empty() ? TableSpec::Dense(name, {elements})
                                    : TableSpec::Sparse(name, kLayerRowWidth);
      spec.consistency = Consistency::Asp();
      LEEWAY_ASSIGN_OR_RETURN(const Table table, worker_->CreateTable(spec));
      layers_.push_back({.table = table,
                         .keys = std::move(keys),
                         .parameters = std::vector<float>(elements),
                         .gradient = std::vector<float>(elements, 1e-3f),
                         .exchanged = {}});
    }
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) Exchange(i, false);
  return absl::OkStatus();
}

std::uint64_t LayeredModel::bytes() const {
  std::uint64_t sum = 0;
  for (const Layer& layer : layers_) sum += layer.parameters.size() * sizeof(float);
  return sum;
}

void LayeredModel::Exchange(std::size_t index, bool priorities) {
  Layer& layer = layers_[index];
  Options options;
  options.priority = priorities ? -static_cast<int>(index) : 0;
  const std::span<const float> gradient(layer.gradient);
  const std::span<float> parameters(layer.parameters);
  layer.exchanged = layer.keys.empty()
                        ? layer.table.PushPull(gradient, parameters, options)
                        : layer.table.PushPull(layer.keys, gradient, parameters, options);
}

absl::Status LayeredModel::Step(bool priorities) {
  for (Layer& layer : layers_) {
    LEEWAY_RETURN_IF_ERROR(worker_->Wait(layer.exchanged));
    absl::SleepFor(kForward);
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    absl::SleepFor(kBackward);
    Exchange(i, priorities);
  }
  return worker_->Clock();
}

Measured LayeredModel::Measure(const Command& command) {
  Measured measured;
  const auto run = [&]() -> absl::Status {
    const bool priorities = command.op == "step_priority";
    if (!priorities && command.op != "step_fifo") {
      return absl::InvalidArgumentError(absl::StrCat("no work is called ", command.op));
    }
    LEEWAY_RETURN_IF_ERROR(Step(priorities));  // waits for the pulls of the step before
    const Stopwatch watch;
    const auto steps = static_cast<std::uint64_t>(command.in_flight);
    while (measured.operations < steps || watch.Seconds() < command.seconds) {
      LEEWAY_RETURN_IF_ERROR(Step(priorities));
      ++measured.operations;
    }
    measured.seconds = watch.Seconds();
    measured.cpu_seconds = watch.Cpu();
    measured.bytes = measured.operations * bytes();
    return absl::OkStatus();
  };
  if (const absl::Status status = run(); !status.ok()) measured.error = status.ToString();
  return measured;
}

}  // namespace leeway::bench
