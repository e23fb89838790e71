// The common part of all storms: their options, the training, and its expected result.
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
  bool compares = true;      // with a training without faults
  std::string attacks;       // hostile peers: those with this in their names alone
  bool judges_times = true;  // false: they are only printed
};

ClusterOptions ClusterFor(const StormOptions& options, const std::string& mode,
                          const std::string& name);

// Prints "name   value" for tables at the end.
void PrintRow(const std::string& name, const std::string& value);

// Waits for the end of the training, checks the counters, and checks the workers' history against
// the promises. Prints both.
absl::Status Finish(Cluster* cluster);

absl::Duration MedianOf(std::vector<absl::Duration> durations);
absl::Duration LargestOf(const std::vector<absl::Duration>& durations);

// Each is OK if its promises held, and prints a table of figures.
absl::Status RunKills(const StormOptions& options);
absl::Status RunSchedulerAway(const StormOptions& options);
absl::Status RunElastic(const StormOptions& options);
absl::Status RunRestarts(const StormOptions& options);
absl::Status RunHostile(const StormOptions& options);
absl::Status RunLostWorker(const StormOptions& options);
absl::Status RunPartitions(const StormOptions& options);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_STORM_H_
