// A worker in a storm: trains Fashion-MNIST, counts beside it (counters.h), tells its parent on
// standard output what it sees (worker_reports.h), and writes a history of what it does to other
// tables (traced_tables.h).
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
  std::string history;              // file to write it into
  std::uint64_t pushes_before = 0;  // TracerOptions
};

// The rest is in the environment. Returns an exit code.
int RunStormWorker(const WorkerOptions& options);

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_STORM_WORKER_H_
