// Known bugs of the scheduler that can be planted one at a time, as ps/mutants.h has the servers'.
#ifndef LEEWAY_SCHEDULER_MUTANTS_H_
#define LEEWAY_SCHEDULER_MUTANTS_H_

#include <cstdint>

namespace leeway::scheduler {

enum class Mutant : std::uint8_t {
  kNone = 0,
  kManifestFirst,          // a checkpoint is there before all of its files are
  kSwitchTooLate,          // a codec is switched at a clock that workers have passed
  kSettingsLostInRestart,  // a scheduler that is started again has no table's settings
};

#ifdef LEEWAY_MUTANTS
inline bool Is(Mutant planted, Mutant asked) { return planted == asked; }
#else
constexpr bool Is(Mutant, Mutant) { return false; }
#endif

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MUTANTS_H_
