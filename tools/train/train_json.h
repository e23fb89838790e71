// The JSON file of a training run.
#ifndef LEEWAY_TOOLS_TRAIN_TRAIN_JSON_H_
#define LEEWAY_TOOLS_TRAIN_TRAIN_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "examples/fashion_mnist/settings.h"

namespace leeway::tools {

std::string TrainJson(const fashion_mnist::Settings& settings, absl::string_view mode,
                      const fashion_mnist::Outcome& outcome);

// The part of one that `leeway compare` shows.
struct TrainFacts {
  std::string mode;
  double test_accuracy = 0;
  double wall_time_s = 0;
  std::uint64_t max_staleness = 0;
  // Payload that all workers push and pull; 0 if the file does not have it.
  double bytes_per_step = 0;
};
// INVALID_ARGUMENT names the field that is missing or wrong.
absl::StatusOr<TrainFacts> ParseTrainJson(const std::string& text);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_TRAIN_TRAIN_JSON_H_
