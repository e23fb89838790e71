// Known bugs that can be planted one at a time, to show that the simulator finds them. A release
// build has none of them: there every question below is a constant.
#ifndef LEEWAY_PS_MUTANTS_H_
#define LEEWAY_PS_MUTANTS_H_

#include <cstdint>

namespace leeway::ps {

enum class Mutant : std::uint8_t {
  kNone = 0,
  kAcknowledgeBeforeReplicated,  // answers do not wait for the other replicas
  kDedupeOff,                    // a push that was seen before is applied again
  kStaleEpochAccepted,           // neither requests nor items are fenced by the map
  kClockBeforePushes,            // a tick counts before the pushes it speaks of
  kPromoteWithoutWindows,        // a new head does not know what its predecessor admitted
  kStateLostInFill,              // a new replica gets values, but not the optimiser's state
  kHoldReleasedEarly,            // a pull is answered one clock too early
  kWindowsLostInRestore,         // a restored shard does not know which pushes are in it
  kHandoverWithoutHeld,          // what waits for its clock to close is not handed over
  kLogTellsOpenClocks,           // a new head knows of ticks, but not what was held for them
  kFillNotWaitedFor,             // a new replica is said to be full, and not waited for yet
  kFeedbackLostInFill,           // a new replica gets all but the feedback slot
  kFeedbackLostInFailover,       // a new head begins with empty feedback slots
  kVersionNotLogged,             // the head makes a version that its replicas are not told of
  kVersionLostInFill,            // a new replica does not know which version workers hold
  kReadUncommitted,              // readers are answered with what a failover may undo
  kReaderCounts,                 // a reader is counted among the workers, at the clock 0
  kReaderClockAhead,             // readers are told the clock of the fastest worker
  kSettingsWhenHeard,            // a table's settings hold as soon as they are known
  kMessagesSinceAnother,         // an answer lacks the first of the messages that it should have
};

#ifdef LEEWAY_MUTANTS
inline bool Is(Mutant planted, Mutant asked) { return planted == asked; }
#else
constexpr bool Is(Mutant, Mutant) { return false; }
#endif

}  // namespace leeway::ps

#endif  // LEEWAY_PS_MUTANTS_H_
