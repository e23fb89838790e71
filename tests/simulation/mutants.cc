#include "tests/simulation/mutants.h"

namespace leeway::simulation {
namespace {

using ps::Mutant;

constexpr NamedMutant kMutants[] = {
    {"acknowledges before it is applied everywhere", Mutant::kAcknowledgeBeforeReplicated},
    {"dedupe off", Mutant::kDedupeOff},
    {"stale epoch accepted", Mutant::kStaleEpochAccepted},
    {"clock before its pushes", Mutant::kClockBeforePushes},
    {"promoted without the dedupe windows", Mutant::kPromoteWithoutWindows},
    {"optimizer state lost in a fill", Mutant::kStateLostInFill},
    {"hold released early", Mutant::kHoldReleasedEarly},
    {"window dropped at restore", Mutant::kWindowsLostInRestore},
    {"handed over without what is held", Mutant::kHandoverWithoutHeld},
    {"promoted with clocks whose pushes it lacks", Mutant::kLogTellsOpenClocks},
    {"a new replica counts before it is waited for", Mutant::kFillNotWaitedFor},
    {"a checkpoint's manifest written first", Mutant::kNone, scheduler::Mutant::kManifestFirst},
};

}  // namespace

bool HasMutants() { return ps::Is(Mutant::kDedupeOff, Mutant::kDedupeOff); }

std::span<const NamedMutant> AllMutants() { return kMutants; }

}  // namespace leeway::simulation
