// What all storms have in common: how they are asked for, the training they go over, and what is
// expected of it in the end.
#ifndef LEEWAY_TESTS_STORM_STORM_H_
#define LEEWAY_TESTS_STORM_STORM_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/storm/acknowledged_pushes.h"
#include "tests/storm/cluster.h"

namespace leeway::storm {

struct StormOptions {
  std::uint32_t kills = 50;
  std::uint64_t seed = 1;
  std::vector<std::string> modes = {"bsp", "ssp:3"};
  std::string model = "mlp";
  std::size_t steps = 1880;  // eight times through the training images
  std::string folder = "out/storm";
  std::map<std::string, std::string> settings;
  bool stops = true;         // some servers are stopped for longer than the failure timeout instead
  bool compares = true;      // with a training that nothing happens to
  bool judges_times = true;  // otherwise they are only printed
};

ClusterOptions ClusterFor(const StormOptions& options, const std::string& mode,
                          const std::string& name);

// Prints "name   value" for tables at the end.
void PrintRow(const std::string& name, const std::string& value);

// Waits for the end of the training, and says whether the counters are right, and whether the
// history of the workers breaks no promise. Prints both.
absl::Status Finish(Cluster* cluster);

absl::Duration MedianOf(std::vector<absl::Duration> durations);
absl::Duration LargestOf(const std::vector<absl::Duration>& durations);

// Each OK if what it promises was held, and a table of figures printed.
absl::Status RunKills(const StormOptions& options);
absl::Status RunSchedulerAway(const StormOptions& options);
absl::Status RunElastic(const StormOptions& options);
absl::Status RunRestarts(const StormOptions& options);
absl::Status RunHostile(const StormOptions& options);
absl::Status RunLostWorker(const StormOptions& options);
absl::Status RunPartitions(const StormOptions& options);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_STORM_H_
