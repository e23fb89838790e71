#include "examples/fashion_mnist/settings.h"

namespace leeway::fashion_mnist {

TableSpec TableFor(const Parameter& parameter, const Settings& settings) {
  TableSpec spec = TableSpec::Dense(parameter.name, parameter.shape);
  spec.initializer = parameter.initializer;
  spec.updater = settings.updater;
  spec.consistency = settings.consistency;
  if (spec.consistency.is_bsp()) spec.aggregate = Aggregate::kMean;
  return spec;
}

std::size_t TotalSteps(const Settings& settings, const Sharding& sharding) {
  return settings.steps > 0 ? settings.steps : settings.epochs * sharding.steps_per_epoch();
}

}  // namespace leeway::fashion_mnist
