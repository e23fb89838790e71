// What a training run is told, and what it tells afterwards.
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
  // Whether the updater's learning_rate, if it is given one, falls evenly to nothing over the run.
  bool rate_falls = true;
  std::size_t epochs = 8;
  std::size_t steps = 0;  // stops after so many, whatever `epochs` says; 0: goes by epochs
  std::uint64_t seed = 1;
  std::map<std::uint32_t, absl::Duration> slow;  // by rank: how long it dawdles each step
  std::string data = kDefaultFolder;
};

// The table of one parameter tensor. In BSP a clock's pushes are averaged, so that W workers with
// batches of b take the step that one process takes with a batch of W·b.
TableSpec TableFor(const Parameter& parameter, const Settings& settings);

std::size_t TotalSteps(const Settings& settings, const Sharding& sharding);

// What a push of that step says about the learning rate; none: the table's own holds.
std::optional<double> RateAt(const Settings& settings, std::size_t step, std::size_t steps);

// The model after some steps. The training loss is the mean of what was seen since the last point:
// of worker 0's own batches when there are several workers.
struct CurvePoint {
  std::size_t epoch = 0;  // ended so far
  std::size_t step = 0;
  double seconds = 0;  // since training began
  double train_loss = 0;
  double test_loss = 0;
  double test_accuracy = 0;  // 0 to 1
};

// Of a whole run: known on worker 0 once everyone is done.
struct Outcome {
  std::vector<CurvePoint> curve;
  std::vector<Tensor> values;  // by parameter
  std::size_t steps = 0;
  std::size_t steps_taken =
      0;  // by this run: fewer than `steps` where it goes on from a checkpoint
  double wall_time_s = 0;
  std::vector<double> idle_s;  // by worker: time spent waiting for servers and other workers
  // Payload of all workers' pushes as it left them, and of their pulls as it came: encoded, where
  // the tables have a codec.
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t resends = 0;
  std::uint64_t max_staleness = 0;         // clocks, over all pulls of all workers
  std::uint64_t staleness_violations = 0;  // pulls staler than the mode allows
  std::map<std::uint64_t, std::uint64_t> staleness_histogram;  // clocks → pulls
};

// What a run tells while it goes on. Either may be empty.
struct Observer {
  std::function<void(std::size_t step, std::size_t steps, double loss)> on_step;
  std::function<void(const CurvePoint&)> on_point;
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_SETTINGS_H_
