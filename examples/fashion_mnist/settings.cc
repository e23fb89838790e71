#include "examples/fashion_mnist/settings.h"

namespace leeway::fashion_mnist {

TableSpec TableFor(const Parameter& parameter, const Settings& settings) {
  TableSpec spec = TableSpec::Dense(parameter.name, parameter.shape);
  spec.initializer = parameter.initializer;
  spec.updater = settings.updater;
  spec.codec = settings.codec;
  spec.codecs = settings.codecs;
  spec.error_feedback = settings.error_feedback;
  spec.consistency = settings.consistency;
  if (spec.consistency.is_bsp() || spec.consistency.collects()) spec.aggregate = Aggregate::kMean;
  return spec;
}

std::size_t TotalSteps(const Settings& settings, const Sharding& sharding) {
  return settings.steps > 0 ? settings.steps : settings.epochs * sharding.steps_per_epoch();
}

std::optional<double> RateAt(const Settings& settings, std::size_t step, std::size_t steps) {
  const auto rate = settings.updater.parameters.find("learning_rate");
  if (!settings.rate_falls || rate == settings.updater.parameters.end()) return std::nullopt;
  return rate->second * (1 - static_cast<double>(step) / static_cast<double>(steps));
}

}  // namespace leeway::fashion_mnist
