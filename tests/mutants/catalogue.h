// The catalogue of the known bugs of tests/mutants/edits/: what each breaks, and what finds it.
#ifndef LEEWAY_TESTS_MUTANTS_CATALOGUE_H_
#define LEEWAY_TESTS_MUTANTS_CATALOGUE_H_

#include <span>

#include "absl/strings/string_view.h"

namespace leeway::mutants {

// A known bug. Seeds of the simulator find it, unless one of the last fields says otherwise.
struct KnownBug {
  absl::string_view name;     // the name in Planted<"…">
  absl::string_view file;     // the source that it is in
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

// In the order of the files of edits.
std::span<const KnownBug> Catalogue();

}  // namespace leeway::mutants

#endif  // LEEWAY_TESTS_MUTANTS_CATALOGUE_H_
