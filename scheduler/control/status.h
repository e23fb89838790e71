// The status of the scheduler, as JSON for people and tools. A pure function of its sources.
#ifndef LEEWAY_SCHEDULER_CONTROL_STATUS_H_
#define LEEWAY_SCHEDULER_CONTROL_STATUS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/chains/shard_loads.h"
#include "scheduler/checkpoints/checkpoints.h"
#include "scheduler/control/protocol_errors.h"
#include "scheduler/members/barriers.h"
#include "scheduler/members/failure_detector.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/state/state_keeper.h"
#include "scheduler/tables/codec_switches.h"
#include "scheduler/tables/table_catalogue.h"
#include "scheduler/tables/table_changes.h"
#include "van/van.h"

namespace leeway::scheduler {

struct StatusSources {
  std::string address;
  absl::Time now;
  absl::Time started;                // the scheduler
  std::uint64_t resident_bytes = 0;  // of its process; 0: not known
  std::uint64_t cluster = 0;
  std::uint32_t replication = 1;
  const proto::ClusterMap& map;
  const ChainPlanner& planner;
  const ShardLoads& loads;
  const MembershipTable& members;
  std::size_t readers = 0;
  const FailureDetector& detector;
  const Barriers& barriers;
  const TableCatalogue& catalogue;
  const CodecSwitches& switches;
  const TableChanges& table_changes;
  const std::map<std::uint32_t, std::string>& codec_reasons;  // by table
  const std::set<std::uint32_t>& pinned;  // tables with codec auto whose codec a command has set
  const ProtocolErrors& protocol_errors;
  std::optional<Checkpoints::View> checkpoint;  // that is being saved
  const Checkpoints::History& checkpoints;
  std::string restoring;                // how far that is; empty: it is not
  const StateKeeper* keeper = nullptr;  // null: nothing is kept
  van::Counters van;
  std::vector<van::Stall> stalls;
};

std::string StatusToJson(const StatusSources& sources);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_STATUS_H_
