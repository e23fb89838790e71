// The chains of replicas in a running cluster: has them planned (ChainPlanner) when servers come,
// go, report or are drained, and puts each step into the cluster map.
//
// One step at a time: the next one is planned once every server has the newest map and what was
// handed over has arrived. Owns the planner, the loads that servers report, and the two classes
// that work with it: LinkReports and ServerCommands. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHAINS_CHAIN_CONTROLLER_H_
#define LEEWAY_SCHEDULER_CHAINS_CHAIN_CONTROLLER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/chains/link_reports.h"
#include "scheduler/chains/loads.h"
#include "scheduler/chains/server_commands.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"

namespace leeway::scheduler {

class ChainController {
 public:
  // All outlive it.
  ChainController(const Config* config, runtime::Loop* loop, MembershipTable* members,
                  NodeSender* sender, ClusterMaps* maps, ClusterLife* life);

  // The cluster is complete: makes the first chains.
  void Deal();
  // A late server has all tables. It is given shards once it has taken a map.
  void ServerPrepared(const Node& server);
  // The server has taken a map; true: ServerPrepared is to be called again.
  bool WaitedForMap(std::uint32_t server) { return prepared_.erase(server) > 0; }
  // The server is dead or has left: it goes off all chains.
  void ServerGone(const Node& server, const std::string& why);

  // From servers.
  void OnReady(const Node& server, const proto::ReplicaReady& ready);
  void OnLoads(const Node& server, const proto::LoadReport& report);

  // Plans the next step as soon as it is allowed.
  void PlanSoon();
  // Moves shards until the servers carry alike.
  void Balance(BalanceBy by);
  // Members have been taken off chains: makes the map that says so and has workers get it soon.
  // `because`: "a server had gone", for the log.
  void TakenOffChains(absl::string_view because);

  const ChainPlanner& planner() const { return planner_; }
  const ShardLoads& loads() const { return loads_; }
  LinkReports* links() { return &links_; }
  ServerCommands* commands() { return &commands_; }

  // Goes on where another scheduler was.
  void Restore(ChainPlanner::State state);
  // Grows with every order to balance, and when one is done: it is in the planner's state.
  std::uint64_t changes() const { return plans_; }

 private:
  void Plan();
  void PutOffPlans(absl::Duration pause);
  void Hurry();
  void LacksReplicas(absl::string_view because);
  void LogWhenWholeAgain();
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Loop* const loop_;
  MembershipTable* const members_;
  ClusterMaps* const maps_;
  ClusterLife* const life_;
  ChainPlanner planner_;
  ShardLoads loads_;
  LinkReports links_;
  ServerCommands commands_;
  std::set<std::uint32_t> prepared_;  // late servers that have all tables, and no map yet
  runtime::Timer plan_timer_;
  absl::Time next_plan_ = absl::InfinitePast();
  std::uint64_t plans_ = 0;
  std::optional<absl::Time> not_whole_since_;  // shards have too few replicas
  std::string not_whole_because_;              // "a server had gone"
  bool as_whole_as_can_be_ = false;            // that has been logged
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_CHAIN_CONTROLLER_H_
