// The catalogue of the known bugs of runtime/base/mutants.h: what each breaks, and what finds it.
#ifndef LEEWAY_TESTS_MUTANTS_CATALOGUE_H_
#define LEEWAY_TESTS_MUTANTS_CATALOGUE_H_

#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace leeway::mutants {

// A known bug. Seeds of the simulator find it, unless one of the last fields says otherwise.
struct KnownBug {
  absl::string_view name;     // the name in Planted<"…">
  absl::string_view file;     // the file that contains it
  absl::string_view what;     // the wrong behaviour
  absl::string_view promise;  // the promise that it breaks
  // A test that fails with it, if seeds cannot find it: "folder/program Suite.Name", where the name
  // is a filter of GoogleTest.
  absl::string_view test = "";
  bool seeds_too = false;  // seeds find it as well, within 2,000 (--seeds-only --seeds 2000)
  bool over_rdma = false;  // seeds over the rdma transport find it
  // The reason why it breaks no promise.
  absl::string_view harmless = "";
};

// The bugs of each role, in a file of its own, in the order of their files.
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
