// A CheckpointChecker reads the checkpoints that a simulated cluster writes: each is whole, and has
// exactly the pushes of the clocks below its own; places of floats that are not encoded have as
// many updates. Tables without a clock to go by (ASP, and those whose pushes are
// collected, if no table is SSP) have each push once at most, applied or collected, and all that
// were acknowledged before the checkpoint began. And the run could go on from each of them
// (restore_checker.h).
#ifndef LEEWAY_TESTS_SIMULATION_CHECKPOINT_CHECKER_H_
#define LEEWAY_TESTS_SIMULATION_CHECKPOINT_CHECKER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "checkpoint/manifest.h"
#include "ps/checkpoint/shard_file.h"
#include "runtime/files/file_system.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/checkpoint_times.h"
#include "tests/simulation/counter_values.h"
#include "tests/simulation/history.h"
#include "tests/simulation/restore_checker.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class CheckpointChecker {
 public:
  CheckpointChecker(runtime::FileSystem* files, const std::vector<SimTable>* tables,
                    const History* history, const RestoreChecker* restores, Checker* checker)
      : files_(files), tables_(tables), history_(history), restores_(restores), checker_(checker) {}

  // A message leaves a host (SimNetwork::Tap).
  void Hear(const van::Overheard& heard, absl::Time now) { times_.Hear(heard, now); }
  // Those that are there now are another cluster's, and are not checked.
  void IgnoreOlder();
  // Checks checkpoints that have come since the last call and before `now`.
  void Look(absl::Time now);
  std::uint64_t checked() const { return checked_; }

 private:
  struct Expected {
    bool must = false, may = false;
  };

  // How often each place of floats that are not encoded was updated, by table, place.
  using Updates = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;

  void Judge(const checkpoint::Manifest& manifest, absl::Time begun_after);
  std::string Take(const ps::ShardContent& content, CounterValues* values, Updates* updates) const;
  std::string JudgeTable(const checkpoint::Manifest& manifest, absl::Time begun_after,
                         const SimTable& table, const CounterValues& values) const;
  // Of a table with one writer a place, each of whose pushes is one update. (Rows that are encoded
  // are also sent when their residuals have to go.)
  std::string JudgeUpdates(const checkpoint::Manifest& manifest, absl::Time begun_after,
                           const SimTable& table, const Updates& updates) const;
  Expected Expect(const checkpoint::Manifest& manifest, absl::Time begun_after,
                  const SimTable& table, std::uint32_t worker, const Push& push) const;
  bool HasClock(const SimTable& table) const;

  runtime::FileSystem* const files_;
  const std::vector<SimTable>* const tables_;
  const History* const history_;
  const RestoreChecker* const restores_;
  Checker* const checker_;
  CheckpointTimes times_;
  std::set<std::pair<std::string, std::uint64_t>> seen_;  // by name and checksum
  // Checkpoints follow each other: the next one begins after the last was finished, and that was
  // after these.
  absl::Time looked_ = absl::InfinitePast(), next_begins_after_ = absl::InfinitePast();
  std::uint64_t checked_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CHECKPOINT_CHECKER_H_
