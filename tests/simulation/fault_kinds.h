// The kinds of fault that a simulated run may meet; each can be switched on and off by itself.
#ifndef LEEWAY_TESTS_SIMULATION_FAULT_KINDS_H_
#define LEEWAY_TESTS_SIMULATION_FAULT_KINDS_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway::simulation {

enum class FaultKind : std::uint8_t {
  kDrop,
  kDuplicate,
  kDelay,
  kReorder,
  kPartition,        // both ways, shorter than the failure timeout
  kOneWayPartition,  // likewise
  kSlowLink,
  kKillWorker,
  kRestartWorker,  // killed, and started again as a new incarnation
  kLongPartition,  // of a worker or a server, longer than the failure timeout
  kKillServer,     // and another process in its stead
  kKillFiller,     // likewise; and then who fills that one, in the moment that it counts
  kKillScheduler,  // and started again with what it has on its disk
  kDiskFull,       // the scheduler's, or the one that checkpoints lie on: nothing more fits
  kDiskErrors,     // likewise: writes fail, some of them halfway
  kClockSkew,      // a host's clock goes faster or slower
  kPriorities,     // some links are much slower than others, which changes now and then
  kAimed,          // at one message, chosen by its type (aimed_faults.h)
  // Not faults, but changes on purpose that are to go well under faults.
  kAddServer,
  kDrain,  // a server, which comes back later
  kRebalance,
  kCheckpoint,
  kSwitchCodec,    // of a table that has several
  kChangeTable,    // the staleness bound of one that has one
  kMoveScheduler,  // killed, and started again at another address
  // What workers ask for and are refused, or have too little time for.
  kRefusedPush,    // one that is not finite, to a table that takes no such (RefusingTable)
  kShortDeadline,  // of an operation, too short for what it waits for
};
inline constexpr std::size_t kFaultKinds = 27;
absl::string_view NameOf(FaultKind kind);

using FaultSet = std::bitset<kFaultKinds>;
using FaultCounts = std::array<std::uint64_t, kFaultKinds>;

FaultSet AllFaults();
// Those that are of the simulated network.
FaultSet FaultsOfLinks();
// "drop,delay", "all", "none"; with a leading "-" all but these.
absl::StatusOr<FaultSet> ParseFaults(absl::string_view text);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_FAULT_KINDS_H_
