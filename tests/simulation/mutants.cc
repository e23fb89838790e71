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
    {.name = "a checkpoint's manifest written first",
     .scheduler = scheduler::Mutant::kManifestFirst},
    {"feedback slot lost in a fill", Mutant::kFeedbackLostInFill},
    {"feedback slot lost in a failover", Mutant::kFeedbackLostInFailover},
    {"version not logged", Mutant::kVersionNotLogged},
    {"number of a version lost in a fill", Mutant::kVersionLostInFill},
    {"messages since another version", Mutant::kMessagesSinceAnother},
    {"readers told what may be undone", Mutant::kReadUncommitted},
    {"readers counted among the workers", Mutant::kReaderCounts},
    {"readers told a clock that is not over", Mutant::kReaderClockAhead},
    {"settings of a table used when they are heard", Mutant::kSettingsWhenHeard},
    {.name = "settings lost in a restart of the scheduler",
     .scheduler = scheduler::Mutant::kSettingsLostInRestart},
    {.name = "encoded again when sent again", .worker = worker::Mutant::kEncodesAgain},
    {.name = "late answer added to a later version", .worker = worker::Mutant::kLateAnswerApplied},
    {.name = "whole block not taken", .worker = worker::Mutant::kWholeNotTaken},
    {.name = "codec switched at a clock that is past",
     .scheduler = scheduler::Mutant::kSwitchTooLate},
    {.name = "pushes sent while their codec is undecided",
     .worker = worker::Mutant::kSendsUndecided},
    {.name = "residual lost where the codec changes", .worker = worker::Mutant::kResidualDropped},
};

}  // namespace

bool HasMutants() { return ps::Is(Mutant::kDedupeOff, Mutant::kDedupeOff); }

std::span<const NamedMutant> AllMutants() { return kMutants; }

}  // namespace leeway::simulation
