// The kinds of faults that a simulated run may have; each can be switched on and off.
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
  kPartition,        // in both directions, shorter than the failure timeout
  kOneWayPartition,  // likewise
  kSlowLink,
  kKillWorker,
  kRestartWorker,       // killed, and started again as a new incarnation
  kLongPartition,       // of a worker or a server, longer than the failure timeout
  kKillServer,          // and another process starts in its place
  kKillTransferSource,  // likewise; and then the sender of its state transfer, at the critical
                        // moment
  kKillScheduler,       // and another one starts from its disk
  kDiskFull,            // the scheduler's, or that of checkpoints: no more bytes fit
  kDiskErrors,          // likewise: writes fail, some of them halfway
  kClockSkew,           // a host's clock goes faster or slower
  kPriorities,          // some links are much slower than others, which changes now and then
  kAimed,               // at one message, chosen by its type (aimed_faults.h)
  // No faults, but changes that have to succeed under faults.
  kAddServer,
  kDrain,  // a server, which comes back later
  kRebalance,
  kCheckpoint,
  kSwitchCodec,    // of a table that has several codecs
  kChangeTable,    // the staleness bound of a table that has one
  kMoveScheduler,  // killed, and started again at another address
  kLeaveWorker,    // in order, within a clock; another process takes its rank at once, or soon
  kStranger,       // a process that is no member floods nodes with requests (sim_stranger.h)
  // Operations that are refused, or have too little time.
  kRefusedPush,    // values that are not finite, to a table that refuses them (RefusingTable)
  kShortDeadline,  // too short for what the operation waits for
  kPublish,        // no fault: a version of the model of the dense counter tables
};
inline constexpr std::size_t kFaultKinds = 30;
absl::string_view NameOf(FaultKind kind);

using FaultSet = std::bitset<kFaultKinds>;
using FaultCounts = std::array<std::uint64_t, kFaultKinds>;

FaultSet AllFaults();
// The kinds that need the simulated network.
FaultSet FaultsOfLinks();
// "drop,delay", "all", "none"; with a leading "-" all but these.
absl::StatusOr<FaultSet> ParseFaults(absl::string_view text);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_FAULT_KINDS_H_
