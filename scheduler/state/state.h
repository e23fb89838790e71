// The durable state of a scheduler, from which it goes on after a restart, and its JSON form, of
// the whole or of what changed in it (RFC 7396, "JSON Merge Patch"). state_file.h keeps it.
#ifndef LEEWAY_SCHEDULER_STATE_STATE_H_
#define LEEWAY_SCHEDULER_STATE_STATE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/checkpoints/restoration.h"
#include "scheduler/members/barriers.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/tables/table_catalogue.h"

namespace leeway::scheduler {

struct State {
  std::uint64_t cluster = 0;
  std::string address;  // the scheduler's, as nodes know it
  // The settings that a cluster keeps for its life.
  std::uint32_t num_servers = 0, num_workers = 0, replication = 0;
  std::uint64_t block_bytes = 0;

  std::vector<Node> nodes;  // MembershipTable::nodes, by id; without their connections
  std::uint32_t next_node = 0;
  bool complete = false;
  std::uint64_t version = 0, epoch = 0;  // of the newest map
  ChainPlanner::State chains;
  std::vector<TableCatalogue::Entry> tables;  // that are installed, by id
  std::uint32_t next_table = 1;
  Barriers::State barriers;
  std::vector<proto::CodecSwitch> codecs;            // CodecSwitches::entries
  std::vector<proto::TableSettings> table_settings;  // TableChanges::entries
  std::set<std::uint32_t> ever_bounded;              // TableChanges::ever_bounded
  std::set<std::uint32_t> pinned;        // tables with codec auto whose codec a command has set
  std::vector<proto::Published> models;  // Publications::models
  Restoration::State restoration;
};

// OK if a scheduler with these settings may go on with the state; the error names the setting.
absl::Status CheckStateFits(const State& state, const Config& config);

nlohmann::json ToJson(const State& state);
// What merges ToJson(before) into ToJson(after). Takes time for what changed, and little for each
// node and table that did not.
nlohmann::json ChangesBetween(const State& before, const State& after);
// Throws an exception of the library, or std::invalid_argument, for anything that ToJson has not
// made.
State StateFrom(const nlohmann::json& json);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_STATE_STATE_H_
