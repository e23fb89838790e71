// A SecondLife is what a run leaves to a cluster that goes on from one of its checkpoints: the
// files, and the run's history as of that checkpoint. With it the invariants of the first run hold
// on in the second one: a push that is in the checkpoint is there once, one that is not is never
// there, and places of floats go on in the state that the pushes in the checkpoint lead to.
#ifndef LEEWAY_TESTS_SIMULATION_SECOND_LIFE_H_
#define LEEWAY_TESTS_SIMULATION_SECOND_LIFE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/manifest.h"
#include "ps/checkpoint/shard_file.h"
#include "runtime/base/random.h"
#include "runtime/files/file_system.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/coded_checker.h"
#include "tests/simulation/counter_values.h"
#include "tests/simulation/fault_kinds.h"
#include "tests/simulation/history.h"
#include "tests/simulation/saved_place.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class SecondLife {
 public:
  // Whether a run of that seed has a second life, if it saves checkpoints.
  static bool IsPlanned(std::uint64_t seed);
  // The kinds of faults that a second life may have: those that servers which load a checkpoint
  // survive.
  static FaultSet Faults();
  // Reads one of the checkpoints that lie in kSavedFolder: half the time the newest one, else any,
  // as if the whole cluster had died when it was finished and the next ones were not. nullopt:
  // there is none.
  static absl::StatusOr<std::optional<SecondLife>> Choose(runtime::FileSystem* files,
                                                          const std::vector<SimTable>& tables,
                                                          const History& history,
                                                          std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }  // of the second run
  const checkpoint::Manifest& manifest() const { return manifest_; }
  // They are all created at the beginning, unless the checkpoint has them.
  const std::vector<SimTable>& tables() const { return tables_; }
  const History& history() const { return history_; }

  // Puts the folder of checkpoints on a new disk.
  absl::Status PutFiles(runtime::FileSystem* disk) const;
  // Tells the second run's checkers in which states places of floats begin.
  void Begin(Checker* checker, CodedChecker* coded) const;

 private:
  SecondLife(const std::vector<SimTable>& tables, const History& first, std::uint64_t seed);

  absl::Status ReadFiles(runtime::FileSystem* files, const std::vector<std::string>& unfinished);
  absl::Status ReadTables(runtime::FileSystem* files, const History& first);
  void TakePlaces(const SimTable& table, const ps::ShardContent::Table& saved);
  // `applied`: without what is collected.
  void TakeCounters(const SimTable& table, const CounterValues& values,
                    const CounterValues& applied, const History& first);

  std::vector<SimTable> tables_;
  std::uint64_t seed_;
  checkpoint::Manifest manifest_;
  std::map<std::string, std::string> files_;  // by path
  History history_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, SavedPlace> places_;  // by table, place
  // Of tables of floats that are not encoded: the first run's gradients.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::vector<float>>> gradients_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SECOND_LIFE_H_
