// The known bugs of runtime/base/mutants.h: what each breaks, and what sees it.
#ifndef LEEWAY_TESTS_MUTANTS_CATALOGUE_H_
#define LEEWAY_TESTS_MUTANTS_CATALOGUE_H_

#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway::mutants {

// What sees a bug: seeds of the simulator, unless one of the others is said.
struct KnownBug {
  absl::string_view name;     // as Planted<"…"> has it
  absl::string_view file;     // that it stands in
  absl::string_view what;     // is done wrongly
  absl::string_view promise;  // that falls
  // A test that fails with it, for what seeds cannot see: "folder/program Suite.Name", where the
  // name is a filter of GoogleTest.
  absl::string_view test = "";
  bool over_rdma = false;  // seeds over the rdma transport see it
  // Why no promise falls.
  absl::string_view harmless = "";
};

// By role, each in a file of its own; in a role, by file.
std::span<const KnownBug> ReplicaBugs();
std::span<const KnownBug> ShardBugs();
std::span<const KnownBug> ShardStateBugs();
std::span<const KnownBug> ServerBugs();
std::span<const KnownBug> VanBugs();
std::span<const KnownBug> SchedulerBugs();
std::span<const KnownBug> PlanningBugs();    // of the scheduler
std::span<const KnownBug> CheckpointBugs();  // of all
std::span<const KnownBug> WorkerBugs();
std::vector<KnownBug> Catalogue();

}  // namespace leeway::mutants

#endif  // LEEWAY_TESTS_MUTANTS_CATALOGUE_H_
