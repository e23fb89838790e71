// The commands `drain` and `rebalance`: checks them, begins what they ask for, and answers them
// when that is done or cannot be done.
//
// A drained server leaves once it has handed over all its shards. The drain goes on after a failed
// answer, and after a restart of the scheduler, whose commands then have nobody to answer. Belongs
// to the ChainController; lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHAINS_SERVER_COMMANDS_H_
#define LEEWAY_SCHEDULER_CHAINS_SERVER_COMMANDS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"

namespace leeway::scheduler {

class ChainController;

class ServerCommands {
 public:
  // The objects that it uses; all outlive it.
  struct Parts {
    const Config* config;
    MembershipTable* members;
    NodeSender* sender;
    ClusterMaps* maps;
    ClusterLife* life;
    ChainPlanner* planner;
    ChainController* chains;
  };
  explicit ServerCommands(const Parts& parts) : parts_(parts) {}

  // drain server:RANK [node:ID]. Answered once the server has left. With the id of a process, as
  // status shows it, no other process that has the rank is drained; asked again, it is answered for
  // that process: so may a command be repeated whose answer was lost.
  void Drain(const AdminService::Arguments& arguments, const AdminService::Answer& answer);
  // rebalance [bytes|requests|count]. Answered once no more shards are moved.
  void Rebalance(const AdminService::Arguments& arguments, const AdminService::Answer& answer);

  // Every server has the newest map: servers that have been emptied leave.
  void FinishDrains();
  // There is nothing left to plan.
  void FailStuckDrains();
  void FinishRebalances();
  // Its drain has come to nothing.
  void ServerGone(const Node& server);

  // True while the server of that rank is being drained.
  bool drains(std::uint32_t rank) const { return drains_.contains(rank); }
  // A drain that was under way before a restart of the scheduler.
  void GoOn(std::uint32_t rank) { drains_[rank]; }

 private:
  absl::StatusOr<const Node*> ServerToDrain(const AdminService::Arguments& arguments) const;
  absl::StatusOr<const Node*> ServerOfRank(std::uint32_t rank) const;
  // The process that is named, whoever has its rank now.
  absl::StatusOr<const Node*> NamedServer(std::uint32_t rank, absl::string_view name) const;

  const Parts parts_;
  std::map<std::uint32_t, std::vector<AdminService::Answer>> drains_;  // by rank
  std::vector<AdminService::Answer> rebalances_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_SERVER_COMMANDS_H_
