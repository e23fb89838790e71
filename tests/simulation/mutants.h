// Known bugs, to show that the simulator finds them.
#ifndef LEEWAY_TESTS_SIMULATION_MUTANTS_H_
#define LEEWAY_TESTS_SIMULATION_MUTANTS_H_

#include <span>

#include "absl/strings/string_view.h"
#include "ps/mutants.h"
#include "scheduler/mutants.h"
#include "worker/mutants.h"

namespace leeway::simulation {

struct NamedMutant {
  absl::string_view name;
  ps::Mutant server = ps::Mutant::kNone;
  scheduler::Mutant scheduler = scheduler::Mutant::kNone;
  worker::Mutant worker = worker::Mutant::kNone;
};

// Whether this is a build that has them (LEEWAY_MUTANTS).
bool HasMutants();
std::span<const NamedMutant> AllMutants();

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_MUTANTS_H_
