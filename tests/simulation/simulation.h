// RunSeed runs one seed: a cluster, its workers' scripts and its faults, all drawn from the seed;
// and in some seeds another cluster, which goes on from one of its checkpoints.
#ifndef LEEWAY_TESTS_SIMULATION_SIMULATION_H_
#define LEEWAY_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ps/data/data_thread.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/fault_kinds.h"
#include "tests/simulation/meetings.h"
#include "van/rdma/testing/fake_verbs.h"

namespace leeway::simulation {

struct SeedOptions {
  std::uint64_t seed = 1;
  FaultSet faults = AllFaults();
  bool keep_trace = false;  // SeedResult::trace
  // Over the rdma transport: its verbs fail instead of the network's links, whose kinds of faults
  // do not happen.
  bool over_rdma = false;
  // Test-only switches, to make invariants fail.
  ps::DataOptions data_options;
};

struct SeedResult {
  std::uint64_t seed = 0;
  bool over_rdma = false;
  std::optional<Violation> violation;
  std::string setting;            // the cluster and its plan of faults, in words
  std::vector<std::string> tail;  // of a failure: the last telling lines of its trace
  std::string trace;
  std::uint64_t trace_hash = 0;
  FaultCounts faults{};
  Met met{};
  std::uint64_t operations = 0, reads = 0, checkpoints = 0;
  bool second_life = false;          // another cluster went on from a checkpoint (second_life.h)
  std::uint64_t codec_switches = 0;  // that were decided
  std::uint64_t table_changes = 0;   // likewise, of tables' bounds
  std::uint64_t reader_visits = 0, reader_reads = 0;
  std::uint64_t handler_calls = 0;  // that were answered
  std::uint64_t versions = 0;       // of the published model, that readers have applied
  absl::Duration virtual_time;
  van::verbs::FakeCounters verbs{};  // over rdma
};

SeedResult RunSeed(const SeedOptions& options);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIMULATION_H_
