// TrainWorker trains as one of several workers: the loop that a user of Leeway writes.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_TRAIN_WORKER_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_TRAIN_WORKER_H_

#include "absl/status/statusor.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/settings.h"
#include "leeway/worker.h"

namespace leeway::fashion_mnist {

// Takes part in the training until all workers are done. The outcome is complete on worker 0 and
// empty on the others; `observer` is called on worker 0 only.
absl::StatusOr<Outcome> TrainWorker(const Settings& settings, const Dataset& data,
                                    const Observer& observer, Worker* worker);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_TRAIN_WORKER_H_
