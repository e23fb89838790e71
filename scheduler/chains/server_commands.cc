#include "scheduler/chains/server_commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/tables/text.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "scheduler/chains/chain_controller.h"

namespace leeway::scheduler {
namespace {

// Why a server has left that was drained (Node::gone_because).
constexpr absl::string_view kDrained = "it was drained";

std::string DrainedJson(const Node& server) {
  return nlohmann::json({{"drained", server.rank}, {"node", server.id}}).dump();
}

}  // namespace

// ---- drain ----

absl::StatusOr<const Node*> ServerCommands::ServerToDrain(
    const AdminService::Arguments& arguments) const {
  if (arguments.empty() || arguments.size() > 2) {
    return absl::InvalidArgumentError("drain needs a server: server:RANK [node:ID]");
  }
  absl::string_view text = arguments[0];
  (void)absl::ConsumePrefix(&text, "server:");
  std::uint32_t rank = 0;
  if (!absl::SimpleAtoi(text, &rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot drain ", proto::QuotedBriefly(arguments[0]), ": it must be server:RANK"));
  }
  LEEWAY_RETURN_IF_ERROR(parts_.life->Ready());
  if (arguments.size() == 1) {
    return ServerOfRank(rank);
  }
  return NamedServer(rank, arguments[1]);
}

absl::StatusOr<const Node*> ServerCommands::ServerOfRank(std::uint32_t rank) const {
  const std::vector<Node*>& servers = parts_.members->servers();
  if (rank >= servers.size()) {
    return absl::NotFoundError(absl::StrCat("there is no server ", rank, "; there are ",
                                            servers.size(), ", and ranks count from 0"));
  }
  return servers[rank];
}

absl::StatusOr<const Node*> ServerCommands::NamedServer(std::uint32_t rank,
                                                        absl::string_view name) const {
  absl::string_view text = name;
  std::uint32_t id = 0;
  if (!absl::ConsumePrefix(&text, "node:") || !absl::SimpleAtoi(text, &id)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot drain server ", rank, " as ",
                                                   proto::QuotedBriefly(name),
                                                   ": it must be node:ID, as status shows it"));
  }
  const Node* const node = parts_.members->Find(id);
  if (node == nullptr || node->role != Role::kServer || node->rank != rank) {
    return absl::NotFoundError(
        absl::StrCat("node ", id, " is no server that has, or had, rank ", rank));
  }
  return node;
}

void ServerCommands::Drain(const AdminService::Arguments& arguments,
                           const AdminService::Answer& answer) {
  const absl::StatusOr<const Node*> server = ServerToDrain(arguments);
  if (!server.ok()) return answer(server.status());
  if (!(*server)->alive()) {
    if (arguments.size() == 2 && (*server)->gone_because == kDrained)
      return answer(DrainedJson(**server));
    return answer(absl::FailedPreconditionError(absl::StrCat(
        (*server)->FullName(), " is ", Name((*server)->state), ": ", (*server)->gone_because)));
  }
  const std::uint32_t rank = (*server)->rank;
  if (!drains_.contains(rank)) {
    const ChainServers& servers = parts_.planner->servers();
    const auto staying = static_cast<std::uint32_t>(std::count_if(
        servers.begin(), servers.end(),
        [&](const auto& other) { return other.first != rank && !other.second.draining; }));
    const auto now = static_cast<std::uint32_t>(servers.size());
    const std::uint32_t needed = std::min(parts_.config->replication, now);
    if (staying < needed) {
      return answer(absl::FailedPreconditionError(
          absl::StrCat("cannot drain ", (*server)->FullName(), ": ", staying, " of ", now,
                       " servers would stay, and LEEWAY_REPLICATION=", parts_.config->replication,
                       " needs ", needed, "; start another server first (with LEEWAY_ELASTIC=1)")));
    }
    runtime::LogInfo((*server)->FullName(), " is to be drained");
    parts_.planner->Drain(rank);
    parts_.maps->ChangeAndPublish();
  }
  drains_[rank].push_back(answer);
  parts_.chains->PlanSoon();
}

void ServerCommands::FinishDrains() {
  std::vector<std::uint32_t> empty;
  for (const auto& [rank, answers] : drains_) {
    if (parts_.planner->PlacesOn(rank) <= 0) empty.push_back(rank);
  }
  for (const std::uint32_t rank : empty) {
    Node* const server = parts_.members->servers()[rank];
    const std::vector<AdminService::Answer> answers = std::move(drains_.extract(rank).mapped());
    parts_.sender->SendTo(*server, proto::Shutdown{});
    parts_.life->Retire(server, Node::State::kLeft, std::string(kDrained));
    parts_.chains->Balance(BalanceBy::kBytes);
    for (const AdminService::Answer& answer : answers) answer(DrainedJson(*server));
  }
}

void ServerCommands::FailStuckDrains() {
  const std::size_t stuck = parts_.planner->Stuck();
  if (stuck == 0 || parts_.planner->Joining() > 0) return;
  for (auto& [rank, answers] : drains_) {
    for (const AdminService::Answer& answer : std::exchange(answers, {})) {
      answer(absl::FailedPreconditionError(absl::StrCat(
          stuck, " replicas have nowhere to go: LEEWAY_REPLICATION=", parts_.config->replication,
          " needs as many servers that stay; server ", rank,
          " is drained on when another server has joined")));
    }
  }
}

void ServerCommands::ServerGone(const Node& server) {
  const auto drain = drains_.find(server.rank);
  if (drain == drains_.end()) return;
  for (const AdminService::Answer& answer : drain->second) {
    answer(
        absl::UnavailableError(absl::StrCat(server.FullName(), " has gone before it was empty")));
  }
  drains_.erase(drain);
}

// ---- rebalance ----

void ServerCommands::Rebalance(const AdminService::Arguments& arguments,
                               const AdminService::Answer& answer) {
  if (arguments.size() > 1) {
    return answer(absl::InvalidArgumentError("rebalance takes bytes, requests or count"));
  }
  if (const absl::Status ready = parts_.life->Ready(); !ready.ok()) return answer(ready);
  const absl::StatusOr<BalanceBy> by = ParseBalanceBy(arguments.empty() ? "bytes" : arguments[0]);
  if (!by.ok()) return answer(by.status());
  rebalances_.push_back(answer);
  parts_.chains->Balance(*by);
}

void ServerCommands::FinishRebalances() {
  if (rebalances_.empty() || parts_.planner->balancing()) return;
  for (const AdminService::Answer& answer : std::exchange(rebalances_, {})) {
    answer(nlohmann::json({{"epoch", parts_.maps->newest()->epoch}}).dump());
  }
}

}  // namespace leeway::scheduler
