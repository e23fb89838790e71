// RunStormWorker is a worker in a storm: it trains Fashion-MNIST, pushes to counters (counters.h),
// reports to its parent on standard output (worker_reports.h), and writes a history of its
// operations on other tables (traced_tables.h).
#ifndef LEEWAY_TESTS_STORM_STORM_WORKER_H_
#define LEEWAY_TESTS_STORM_STORM_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace leeway::storm {

struct WorkerOptions {
  std::string model = "mlp";
  std::string mode = "bsp";
  std::size_t steps = 1880;
  std::string pace;                 // file of a Pace
  std::string history;              // the file of its history
  std::uint64_t pushes_before = 0;  // TracerOptions
};

// Other settings are in the environment. Returns an exit code.
int RunStormWorker(const WorkerOptions& options);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_STORM_WORKER_H_
