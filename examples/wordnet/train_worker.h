// TrainWorker learns the embeddings as one of several workers: each pulls the rows of its
// mini-batch and pushes their gradients.
#ifndef LEEWAY_EXAMPLES_WORDNET_TRAIN_WORKER_H_
#define LEEWAY_EXAMPLES_WORDNET_TRAIN_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "examples/wordnet/graph.h"
#include "leeway/table_spec.h"
#include "leeway/worker.h"

namespace leeway::wordnet {

struct Settings {
  std::size_t width = 64;  // floats a row: half as many complex numbers
  std::size_t epochs = 40;
  std::size_t batch = 128;     // triples a worker and step
  std::size_t negatives = 64;  // entities a worker and step
  std::string updater = "adagrad";
  double learning_rate = 0.2;
  bool rate_falls = true;  // linearly to 0 over the run
  double decay = 0.6;      // weight of the regulariser
  double deviation = 0.1;  // of initial values
  std::uint64_t seed = 1;
  Consistency consistency;
  std::string codec = "none";
  ErrorFeedback error_feedback = ErrorFeedback::kAuto;
  std::size_t plain_epochs = 0;  // first epochs, in which rows travel uncompressed
};

struct EpochPoint {
  std::size_t epoch = 0;  // epochs ended so far
  std::size_t epochs = 0;
  double loss = 0;  // mean over worker 0's triples of this epoch, both sides
  double seconds = 0;
};

struct Outcome {
  double mrr_untrained = 0;
  double mrr = 0;
  double hits_at_10 = 0;
  // Payload of training, all workers together, without the pulls of the evaluation.
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  double seconds = 0;  // of training
};

// Takes part until all workers are done. `on_epoch` and the outcome: on worker 0 only.
absl::StatusOr<Outcome> TrainWorker(const Settings& settings, const Graph& graph,
                                    const std::function<void(const EpochPoint&)>& on_epoch,
                                    Worker* worker);

}  // namespace leeway::wordnet

#endif  // LEEWAY_EXAMPLES_WORDNET_TRAIN_WORKER_H_
