#include "scheduler/chains/chain_controller.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

// Every planned change makes workers resend what is under way. They work for so long between two
// of them; replicas that get ready meanwhile go into the next.
constexpr absl::Duration kPlanPause = absl::Milliseconds(50);
// After a death workers find their new servers first.
constexpr absl::Duration kPlanPauseAfterDeath = absl::Milliseconds(250);

}  // namespace

ChainController::ChainController(const Config* config, runtime::Loop* loop,
                                 MembershipTable* members, NodeSender* sender, ClusterMaps* maps,
                                 ClusterLife* life)
    : config_(config),
      loop_(loop),
      members_(members),
      maps_(maps),
      life_(life),
      planner_(config->replication),
      links_({.config = config,
              .loop = loop,
              .members = members,
              .sender = sender,
              .maps = maps,
              .life = life,
              .planner = &planner_,
              .chains = this}),
      commands_({.config = config,
                 .members = members,
                 .sender = sender,
                 .maps = maps,
                 .life = life,
                 .planner = &planner_,
                 .chains = this}),
      plan_timer_(loop, [this] { Plan(); }) {}

void ChainController::Deal() {
  const std::vector<Node*>& servers = members_->servers();
  if (config_->replication > servers.size()) {
    runtime::LogWarning("LEEWAY_REPLICATION=", config_->replication, ", but there are ",
                        servers.size(), " servers (LEEWAY_NUM_SERVERS): each shard has ",
                        servers.size(), " replicas until more have joined");
  }
  std::vector<std::uint32_t> threads;
  for (const Node* server : servers) {
    threads.push_back(static_cast<std::uint32_t>(server->endpoints.size()));
  }
  planner_.Deal(threads, config_->num_shards);
}

// ---- servers come and go ----

void ChainController::ServerPrepared(const Node& server) {
  // A server that stalls before it has its first map would hold up all that wait for its next.
  if (!maps_->publisher()->HasTakenOne(server)) {
    prepared_.insert(server.id);
    return;
  }
  planner_.Add(server.rank, static_cast<std::uint32_t>(server.endpoints.size()));
  if (commands_.drains(server.rank))
    planner_.Drain(server.rank);  // the drain was asked for meanwhile
  Balance(BalanceBy::kBytes);
}

void ChainController::ServerGone(const Node& server, const std::string& why) {
  prepared_.erase(server.id);
  loads_.Forget(server.rank);
  const std::size_t lost = planner_.Lost();
  const bool kept_shards = planner_.PlacesOn(server.rank) > 0;
  links_.ServerGone(server.rank);
  planner_.Remove(server.rank);
  maps_->Change();
  if (kept_shards) Hurry();
  if (planner_.Lost() > lost) {
    runtime::LogError(server.FullName(), " has gone (", why, ") and taken ", planner_.Lost() - lost,
                      " of ", planner_.chains().size(),
                      " shards with it: no other server had them (LEEWAY_REPLICATION=",
                      config_->replication, ")");
  }
  if (kept_shards) LacksReplicas("a server had gone");
  commands_.ServerGone(server);
}

void ChainController::TakenOffChains(absl::string_view because) {
  maps_->Change();
  Hurry();
  LacksReplicas(because);
  maps_->PublishSoon();
}

void ChainController::Hurry() {
  maps_->Hurry();
  PutOffPlans(kPlanPauseAfterDeath);
}

void ChainController::LacksReplicas(absl::string_view because) {
  if (config_->replication < 2) return;
  as_whole_as_can_be_ = false;
  if (not_whole_since_.has_value()) return;
  not_whole_since_ = Now();
  not_whole_because_ = std::string(because);
}

void ChainController::Restore(ChainPlanner::State state) {
  planner_.Restore(std::move(state));
  for (const auto& [rank, server] : planner_.servers()) {
    if (server.draining) commands_.GoOn(rank);
  }
}

// ---- planned changes ----

void ChainController::OnReady(const Node& server, const proto::ReplicaReady& ready) {
  // A message from before the chain changed does not count: another member may feed the replica
  // now.
  if (maps_->Since(ready.shard) == 0) return;
  if (ready.epoch < maps_->Since(ready.shard)) return;
  planner_.Ready(ready.shard, server.rank);
  PlanSoon();
}

void ChainController::OnLoads(const Node& server, const proto::LoadReport& report) {
  loads_.Take(server.rank, report, static_cast<std::uint32_t>(planner_.chains().size()));
}

void ChainController::PutOffPlans(absl::Duration pause) {
  next_plan_ = std::max(next_plan_, Now() + pause);
}

void ChainController::PlanSoon() {
  if (plan_timer_.pending() || !members_->complete()) return;
  plan_timer_.SetBy(next_plan_);
}

// When a map is not taken yet, the acknowledgement of the last server calls PlanSoon again.
void ChainController::Plan() {
  if (!life_->running() || maps_->publish_pending() || life_->loading()) return;
  if (!maps_->publisher()->ServersHaveIt()) return;
  commands_.FinishDrains();
  if (maps_->publish_pending() || !life_->running()) return;
  if (Now() < next_plan_) {
    PlanSoon();
  } else if (const bool balanced = planner_.balancing(); planner_.Step()) {
    maps_->Change();
    PutOffPlans(kPlanPause);
    maps_->PublishSoon();
  } else {
    if (balanced && !planner_.balancing()) ++plans_;  // a restart has nothing to go on with
    commands_.FailStuckDrains();
    commands_.FinishRebalances();
    LogWhenWholeAgain();
  }
}

// Logs once that every shard has as many replicas as it should, or, before that, as many as there
// are servers.
void ChainController::LogWhenWholeAgain() {
  if (!not_whole_since_.has_value() || planner_.Joining() > 0) return;
  const auto replicas = static_cast<std::uint32_t>(
      std::min<std::size_t>(config_->replication, planner_.servers().size()));
  const bool whole = replicas == config_->replication;
  if (!whole && as_whole_as_can_be_) return;
  for (const proto::Chain& chain : planner_.chains()) {
    if (!chain.members.empty() && chain.members.size() < replicas) return;
  }
  const std::size_t shards = planner_.chains().size() - planner_.Lost();
  const std::string time = runtime::FormatDuration(Now() - *not_whole_since_);
  if (whole) {
    runtime::LogInfo("replicas are whole again, ", time, " after ", not_whole_because_, ": all ",
                     shards, " shards have ", replicas);
    not_whole_since_.reset();
  } else {
    runtime::LogWarning("replicas are as whole as they can be, ", time, " after ",
                        not_whole_because_, ": ", shards, " shards have ", replicas,
                        " each, and LEEWAY_REPLICATION=", config_->replication,
                        " needs as many servers");
  }
  as_whole_as_can_be_ = !whole;
}

void ChainController::Balance(BalanceBy by) {
  ++plans_;
  planner_.Balance(loads_.Weights(by, static_cast<std::uint32_t>(planner_.chains().size()),
                                  config_->replication));
  PlanSoon();
}

}  // namespace leeway::scheduler
