// Settings are the options of a training run, and Outcome its result.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_SETTINGS_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/sharding.h"
#include "leeway/table_spec.h"

namespace leeway::fashion_mnist {

struct Settings {
  std::string model = "mlp";
  Consistency consistency;
  std::uint32_t workers = 4;
  std::uint32_t servers = 2;
  std::size_t batch = 64;  // samples a worker and step
  UpdaterSpec updater;
  std::string codec = "none";       // of every table, as TableSpec::codec
  std::vector<std::string> codecs;  // as TableSpec::codecs
  ErrorFeedback error_feedback = ErrorFeedback::kAuto;
  // True: the updater's learning_rate, if it is given, falls linearly to 0 over the run.
  bool rate_falls = true;
  std::size_t epochs = 8;
  std::size_t steps = 0;  // number of steps, instead of `epochs`; 0: by epochs
  std::uint64_t seed = 1;
  std::map<std::uint32_t, absl::Duration> slow;  // by rank: time that it sleeps in each step
  std::string data = kDefaultFolder;
};

// The table of one parameter tensor. In BSP a clock's pushes are averaged, so that W workers with
// batches of b take the step that one process takes with a batch of W·b.
TableSpec TableFor(const Parameter& parameter, const Settings& settings);

std::size_t TotalSteps(const Settings& settings, const Sharding& sharding);

// The learning rate that a push of that step carries; nullopt: the table's own holds.
std::optional<double> RateAt(const Settings& settings, std::size_t step, std::size_t steps);

// The model after some steps. The training loss is the mean since the last point: of worker 0's own
// batches if there are several workers.
struct CurvePoint {
  std::size_t epoch = 0;  // epochs ended so far
  std::size_t step = 0;
  double seconds = 0;  // since training began
  double train_loss = 0;
  double test_loss = 0;
  double test_accuracy = 0;  // 0 to 1
};

// The result of a whole run, known to worker 0 once all workers are done.
struct Outcome {
  std::vector<CurvePoint> curve;
  std::vector<Tensor> values;  // by parameter
  std::size_t steps = 0;
  std::size_t steps_taken = 0;  // of this run: fewer than `steps` if it goes on from a checkpoint
  double wall_time_s = 0;
  std::vector<double> idle_s;  // by worker: time spent waiting for servers and other workers
  // Payload of all workers' pushes and pulls on the wire: encoded, if the tables have a codec.
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t resends = 0;
  std::uint64_t max_staleness = 0;         // clocks, over all pulls of all workers
  std::uint64_t staleness_violations = 0;  // pulls staler than the mode allows
  std::map<std::uint64_t, std::uint64_t> staleness_histogram;  // clocks → pulls
};

// Callbacks during a run. Either may be empty.
struct Observer {
  std::function<void(std::size_t step, std::size_t steps, double loss)> on_step;
  std::function<void(const CurvePoint&)> on_point;
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_SETTINGS_H_
