// Reads the checkpoints that a simulated cluster writes: each that is there is whole, and has
// exactly the pushes of the clocks below its own. Tables that have no clock to go by (ASP, where no
// other table is SSP) have each push once at most, and all that were acknowledged before it began.
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
#include "runtime/file_system.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class CheckpointChecker {
 public:
  CheckpointChecker(runtime::FileSystem* files, const std::vector<SimTable>* tables,
                    const History* history, Checker* checker)
      : files_(files), tables_(tables), history_(history), checker_(checker) {}

  // At those that are there and were not when it looked last, before `now`.
  void Look(absl::Time now);
  std::uint64_t checked() const { return checked_; }

 private:
  // By table and place: the elements.
  using Values = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>>;

  struct Expected {
    bool must = false, may = false;
  };

  std::string Judge(const checkpoint::Manifest& manifest, absl::Time begun_after) const;
  std::string ReadInto(const checkpoint::Manifest& manifest, Values* values) const;
  std::string JudgeTable(const checkpoint::Manifest& manifest, absl::Time begun_after,
                         const SimTable& table, const Values& values) const;
  Expected Expect(const checkpoint::Manifest& manifest, absl::Time begun_after,
                  const SimTable& table, std::uint32_t worker, const Push& push) const;
  bool HasClock(const SimTable& table) const;

  runtime::FileSystem* const files_;
  const std::vector<SimTable>* const tables_;
  const History* const history_;
  Checker* const checker_;
  std::set<std::pair<std::string, std::uint64_t>> seen_;  // by name and checksum
  // They are taken one after another: the next one begins after the last was finished, and that was
  // after these.
  absl::Time looked_ = absl::InfinitePast(), next_begins_after_ = absl::InfinitePast();
  std::uint64_t checked_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CHECKPOINT_CHECKER_H_
