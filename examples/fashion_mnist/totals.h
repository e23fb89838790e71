// GatherTotals adds up the workers' statistics, which they exchange through tables.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_TOTALS_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_TOTALS_H_

#include "absl/status/status.h"
#include "examples/fashion_mnist/settings.h"
#include "leeway/worker.h"

namespace leeway::fashion_mnist {

// Every worker gives its statistics before and after training; worker 0 gets the totals, in the
// outcome's fields of the same names. All workers wait for each other here.
absl::Status GatherTotals(const WorkerStats& before, const WorkerStats& after, Worker* worker,
                          Outcome* outcome);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_TOTALS_H_
