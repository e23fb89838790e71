#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/tables/text.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {
namespace {

// Every planned change makes the workers resend what is under way. Between two of them they work;
// what gets ready meanwhile goes into the next.
constexpr absl::Duration kPlanPause = absl::Milliseconds(50);
// After a death the workers find their new servers first.
constexpr absl::Duration kPlanPauseAfterDeath = absl::Milliseconds(250);

}  // namespace

void Scheduler::Impl::DealShards() {
  const std::vector<Node*>& servers = members_.servers();
  if (config_.replication > servers.size()) {
    runtime::LogWarning("LEEWAY_REPLICATION=", config_.replication, ", but there are ",
                        servers.size(), " servers (LEEWAY_NUM_SERVERS): each shard has ",
                        servers.size(), " replicas until more have joined");
  }
  std::vector<std::uint32_t> threads;
  for (const Node* server : servers) {
    threads.push_back(static_cast<std::uint32_t>(server->endpoints.size()));
  }
  planner_.Deal(threads, config_.num_shards);
}

// ---- servers come and go ----

void Scheduler::Impl::SendTo(std::uint32_t id, const proto::InstallTable& install) {
  if (const Node* server = members_.Find(id)) SendTo(*server, proto::AnyMessage(install));
}

void Scheduler::Impl::OnPrepared(std::uint32_t id) {
  const Node* server = members_.Find(id);
  if (server == nullptr || !server->alive()) return;
  if (restoration_.loading()) {
    restoration_.Prepared(id);
    return LoadIfPrepared();
  }
  // One that stands still before it has its first map would hold up all that wait for its next.
  if (!publisher_.HasTakenOne(*server) && !runtime::Planted<"late-server-holds-up">()) {
    prepared_.insert(id);
    return;
  }
  planner_.Add(server->rank, static_cast<std::uint32_t>(server->endpoints.size()));
  if (drains_.contains(server->rank) && !runtime::Planted<"drain-forgotten-in-joining">())
    planner_.Drain(server->rank);  // it was asked for meanwhile
  Balance(BalanceBy::kBytes);
}

void Scheduler::Impl::OnUnfit(std::uint32_t id, const absl::Status& why) {
  Node* server = members_.Find(id);
  if (server == nullptr || !server->alive()) return;
  Retire(server, Node::State::kDead, std::string(why.message()));
}

void Scheduler::Impl::ServerGone(const Node& server, const std::string& why) {
  late_servers_.Forget(server.id);
  prepared_.erase(server.id);
  loads_.Forget(server.rank);
  const std::size_t lost = planner_.Lost();
  const bool kept_shards = planner_.PlacesOn(server.rank) > 0;
  apart_.Forget(server.rank);
  planner_.SetApart(apart_.apart());
  planner_.Remove(server.rank);
  NextMap();
  if (kept_shards) HurryChains();
  if (planner_.Lost() > lost) {
    runtime::LogError(
        server.FullName(), " has gone (", why, ") and taken ", planner_.Lost() - lost, " of ",
        planner_.chains().size(),
        " shards with it: no other server had them (LEEWAY_REPLICATION=", config_.replication, ")");
  }
  if (kept_shards) LacksReplicas("a server had gone");
  const auto drain = drains_.find(server.rank);
  if (drain == drains_.end()) return;
  for (const AdminService::Ask& ask : drain->second) {
    if (runtime::Planted<"drain-unanswered-at-death">()) break;
    admin_service_.Answer(ask, absl::UnavailableError(absl::StrCat(
                                   server.FullName(), " has gone before it was empty")));
  }
  drains_.erase(drain);
}

// The newest map, in which chains have lost members: workers get it as soon as those that are left
// have it.
void Scheduler::Impl::HurryChains() {
  publisher_.Hurry(maps_.concerned(), Now());
  loop_->Cancel(urgent_timer_);
  urgent_timer_ = loop_->After(kUrgentPatience, [this] { publisher_.Advance(Now()); });
  PutOffPlans(kPlanPauseAfterDeath);
}

void Scheduler::Impl::LacksReplicas(absl::string_view because) {
  if (config_.replication < 2) return;
  as_whole_as_can_be_ = false;
  if (not_whole_since_.has_value()) return;
  not_whole_since_ = Now();
  not_whole_because_ = std::string(because);
}

// ---- planned changes ----

void Scheduler::Impl::On(const Sender& sender, const proto::ReplicaReady& ready) {
  if (!IsMember(sender, Role::kServer)) return;
  // From before the chain changed: who feeds it may be another now.
  if (maps_.Since(ready.shard) == 0) return;
  if (ready.epoch < maps_.Since(ready.shard) && !runtime::Planted<"old-word-of-ready">()) return;
  planner_.Ready(ready.shard, sender.node->rank);
  PlanSoon();
}

void Scheduler::Impl::On(const Sender& sender, const proto::LoadReport& report) {
  if (!IsMember(sender, Role::kServer)) return;
  loads_.Take(sender.node->rank, report, static_cast<std::uint32_t>(planner_.chains().size()));
}

void Scheduler::Impl::PutOffPlans(absl::Duration pause) {
  next_plan_ = std::max(next_plan_, Now() + pause);
}

void Scheduler::Impl::PlanSoon() {
  if (plan_timer_ != runtime::TimerId::kNone || !members_.complete()) return;
  plan_timer_ = loop_->After(std::max(next_plan_ - Now(), absl::ZeroDuration()), [this] {
    plan_timer_ = runtime::TimerId::kNone;
    Plan();
  });
}

// One change at a time: what is handed over must have arrived before the next. The last server to
// take the newest map brings us back here.
void Scheduler::Impl::Plan() {
  if (!running() || publish_timer_ != runtime::TimerId::kNone ||
      (restoration_.loading() && !runtime::Planted<"plans-while-loading">()))
    return;
  if (!publisher_.ServersHaveIt() && !runtime::Planted<"plans-before-map-is-known">()) return;
  FinishDrains();
  if (publish_timer_ != runtime::TimerId::kNone || !running()) return;
  if (Now() < next_plan_) {
    PlanSoon();
  } else if (const bool balanced = planner_.balancing(); planner_.Step()) {
    NextMap();
    PutOffPlans(kPlanPause);
    PublishSoon();
  } else {
    if (balanced && !planner_.balancing()) ++plans_;  // to be kept: there is nothing to go on with
    FailStuckDrains();
    FinishRebalances();
    SayIfWholeAgain();
  }
}

// After a server has gone: once every shard has as many replicas as it should, or, said once before
// that, as many as there are servers.
void Scheduler::Impl::SayIfWholeAgain() {
  if (!not_whole_since_.has_value() || planner_.Filling() > 0) return;
  const auto replicas = static_cast<std::uint32_t>(
      std::min<std::size_t>(config_.replication, planner_.servers().size()));
  const bool whole = replicas == config_.replication;
  if (!whole && as_whole_as_can_be_) return;
  for (const proto::Chain& chain : planner_.chains()) {
    if (!chain.members.empty() && chain.members.size() < replicas) return;
  }
  const std::size_t shards = planner_.chains().size() - planner_.Lost();
  const std::string time =
      absl::FormatDuration(absl::Floor(Now() - *not_whole_since_, absl::Milliseconds(100)));
  if (whole) {
    runtime::LogInfo("replicas are whole again, ", time, " after ", not_whole_because_, ": all ",
                     shards, " shards have ", replicas);
    not_whole_since_.reset();
  } else {
    runtime::LogWarning("replicas are as whole as they can be, ", time, " after ",
                        not_whole_because_, ": ", shards, " shards have ", replicas,
                        " each, and LEEWAY_REPLICATION=", config_.replication,
                        " needs as many servers");
  }
  as_whole_as_can_be_ = !whole;
}

void Scheduler::Impl::Balance(BalanceBy by) {
  ++plans_;
  planner_.Balance(loads_.Weights(by, static_cast<std::uint32_t>(planner_.chains().size()),
                                  config_.replication));
  PlanSoon();
}

// ---- leeway drain ----

absl::StatusOr<const Node*> Scheduler::Impl::ServerToDrain(
    const AdminService::Arguments& arguments) const {
  if (arguments.size() != 1) return absl::InvalidArgumentError("drain needs a server: server:RANK");
  absl::string_view text = arguments[0];
  (void)absl::ConsumePrefix(&text, "server:");
  std::uint32_t rank = 0;
  if (!absl::SimpleAtoi(text, &rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot drain ", proto::QuotedBriefly(arguments[0]), ": it must be server:RANK"));
  }
  LEEWAY_RETURN_IF_ERROR(Ready());
  const std::vector<Node*>& servers = members_.servers();
  if (rank >= servers.size()) {
    return absl::NotFoundError(absl::StrCat("there is no server ", rank, "; there are ",
                                            servers.size(), ", and ranks count from 0"));
  }
  if (!servers[rank]->alive()) {
    return absl::FailedPreconditionError(
        absl::StrCat(servers[rank]->FullName(), " is ", Name(servers[rank]->state)));
  }
  return servers[rank];
}

void Scheduler::Impl::DrainCommand(const AdminService::Ask& ask,
                                   const AdminService::Arguments& arguments) {
  const absl::StatusOr<const Node*> server = ServerToDrain(arguments);
  if (!server.ok()) return admin_service_.Answer(ask, server.status());
  const std::uint32_t rank = (*server)->rank;
  if (!drains_.contains(rank)) {
    const auto staying = static_cast<std::uint32_t>(
        std::count_if(planner_.servers().begin(), planner_.servers().end(), [&](const auto& other) {
          return other.first != rank &&
                 (!other.second.draining || runtime::Planted<"drain-counts-the-draining">());
        }));
    const auto now = static_cast<std::uint32_t>(planner_.servers().size());
    if (staying < std::min(config_.replication, now) &&
        !runtime::Planted<"drain-of-the-needed">()) {
      return admin_service_.Answer(
          ask, absl::FailedPreconditionError(
                   absl::StrCat("cannot drain ", (*server)->FullName(), ": ", staying, " of ", now,
                                " servers would stay, and LEEWAY_REPLICATION=", config_.replication,
                                " needs ", std::min(config_.replication, now),
                                "; start another server first (with LEEWAY_ELASTIC=1)")));
    }
    runtime::LogInfo((*server)->FullName(), " is to be drained");
    planner_.Drain(rank);
    NextMap();
    PublishSoon();
  }
  drains_[rank].push_back(ask);
  PlanSoon();
}

// Everyone has a map without it, and it has handed over what it had.
void Scheduler::Impl::FinishDrains() {
  std::vector<std::uint32_t> empty;
  for (const auto& [rank, asks] : drains_) {
    if (planner_.PlacesOn(rank) <= (runtime::Planted<"drained-with-shards">() ? 1 : 0))
      empty.push_back(rank);
  }
  for (const std::uint32_t rank : empty) {
    Node* server = members_.servers()[rank];
    const std::vector<AdminService::Ask> asks = std::move(drains_.extract(rank).mapped());
    SendTo(*server, proto::Shutdown{});
    Retire(server, Node::State::kLeft, "it was drained");
    Balance(BalanceBy::kBytes);
    for (const AdminService::Ask& ask : asks) {
      admin_service_.Answer(ask, nlohmann::json({{"drained", rank}}).dump());
    }
  }
}

void Scheduler::Impl::FailStuckDrains() {
  const std::size_t stuck = planner_.Stuck();
  if (stuck == 0 || planner_.Filling() > 0 || runtime::Planted<"stuck-drain-untold">()) return;
  for (auto& [rank, asks] : drains_) {
    for (const AdminService::Ask& ask : std::exchange(asks, {})) {
      admin_service_.Answer(
          ask, absl::FailedPreconditionError(absl::StrCat(
                   stuck, " replicas have nowhere to go: LEEWAY_REPLICATION=", config_.replication,
                   " needs as many servers that stay; server ", rank,
                   " is drained on when another server has joined")));
    }
  }
}

// ---- leeway rebalance ----

void Scheduler::Impl::RebalanceCommand(const AdminService::Ask& ask,
                                       const AdminService::Arguments& arguments) {
  if (arguments.size() > 1) {
    return admin_service_.Answer(
        ask, absl::InvalidArgumentError("rebalance takes bytes, requests or count"));
  }
  if (absl::Status ready = Ready(); !ready.ok()) return admin_service_.Answer(ask, ready);
  const absl::StatusOr<BalanceBy> by = ParseBalanceBy(arguments.empty() ? "bytes" : arguments[0]);
  if (!by.ok()) return admin_service_.Answer(ask, by.status());
  rebalances_.push_back(ask);
  Balance(*by);
}

void Scheduler::Impl::FinishRebalances() {
  if (rebalances_.empty() ||
      (planner_.balancing() && !runtime::Planted<"rebalance-answered-early">()))
    return;
  for (const AdminService::Ask& ask : std::exchange(rebalances_, {})) {
    admin_service_.Answer(ask, nlohmann::json({{"epoch", maps_.newest()->epoch}}).dump());
  }
}

void Scheduler::Impl::On(const Sender& sender, const proto::Admin& admin) {
  admin_service_.OnAdmin(sender.peer, sender.identity.incarnation, admin);
}

}  // namespace leeway::scheduler
