#include "tests/simulation/mutants.h"

namespace leeway::simulation {
namespace {

using ps::Mutant;

constexpr NamedMutant kMutants[] = {
    {Mutant::kAcknowledgeBeforeReplicated, "acknowledges before it is applied everywhere"},
    {Mutant::kDedupeOff, "dedupe off"},
    {Mutant::kStaleEpochAccepted, "stale epoch accepted"},
    {Mutant::kClockBeforePushes, "clock before its pushes"},
    {Mutant::kPromoteWithoutWindows, "promoted without the dedupe windows"},
    {Mutant::kStateLostInFill, "optimizer state lost in a fill"},
    {Mutant::kHoldReleasedEarly, "hold released early"},
    {Mutant::kHandoverWithoutHeld, "handed over without what is held"},
    {Mutant::kLogTellsOpenClocks, "promoted with clocks whose pushes it lacks"},
    {Mutant::kFillNotWaitedFor, "a new replica counts before it is waited for"},
};

}  // namespace

bool HasMutants() { return ps::Is(Mutant::kDedupeOff, Mutant::kDedupeOff); }

std::span<const NamedMutant> AllMutants() { return kMutants; }

}  // namespace leeway::simulation
