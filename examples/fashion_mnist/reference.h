// TrainReference trains in one process, without a cluster: the workers of a BSP run must reproduce
// its result.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_REFERENCE_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_REFERENCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/settings.h"
#include "leeway/table_spec.h"

namespace leeway::fashion_mnist {

// A tensor in this process: starts with its description's initial values and applies a gradient by
// its updater.
class LocalTable {
 public:
  virtual ~LocalTable() = default;
  // `rate`: a learning rate instead of the table's own.
  virtual absl::Status Push(std::span<const float> gradient,
                            std::optional<double> learning_rate) = 0;
  virtual absl::Status Pull(std::span<float> values) = 0;
};
using LocalTableFactory =
    std::function<absl::StatusOr<std::unique_ptr<LocalTable>>(const TableSpec&)>;

// Trains as one worker with a batch of settings.workers × settings.batch.
absl::StatusOr<Outcome> TrainReference(const Settings& settings, const Dataset& data,
                                       const Observer& observer,
                                       const LocalTableFactory& make_table);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_REFERENCE_H_
