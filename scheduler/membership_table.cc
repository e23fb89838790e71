#include "scheduler/membership_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/limits.h"
#include "runtime/status_macros.h"

namespace leeway::scheduler {
namespace {

absl::string_view NumberSetting(Role role) {
  return role == Role::kServer ? "LEEWAY_NUM_SERVERS" : "LEEWAY_NUM_WORKERS";
}

absl::Status CheckAnnounced(Role role, std::uint32_t theirs, std::uint32_t ours) {
  if (theirs == ours) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has ", NumberSetting(role), "=", theirs,
                                                 ", but the scheduler has ", NumberSetting(role),
                                                 "=", ours, "; give all nodes the same number"));
}

absl::Status CheckWellFormed(const proto::Join& join, const van::Identity& identity) {
  if (join.role != Role::kServer && join.role != Role::kWorker) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", Name(join.role), " cannot join; servers and workers can"));
  }
  if (join.role != identity.role) {
    return absl::InvalidArgumentError(absl::StrCat("it joins as a ", Name(join.role),
                                                   ", but its hello said ", Name(identity.role)));
  }
  if (identity.incarnation == 0) return absl::InvalidArgumentError("its incarnation is 0");
  if (join.role == Role::kServer &&
      (join.endpoints.empty() || join.endpoints.size() > proto::kServerThreadsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", join.endpoints.size(),
                                                   " data threads (LEEWAY_SERVER_THREADS): 1 to ",
                                                   proto::kServerThreadsMax, " are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Node::Name() const { return absl::StrCat(leeway::Name(role), " ", rank); }

std::string Node::FullName() const {
  return address.empty() ? Name() : absl::StrCat(Name(), " (", address, ")");
}

absl::string_view Name(Node::State state) {
  switch (state) {
    case Node::State::kAlive:
      return "alive";
    case Node::State::kLeft:
      return "left";
    case Node::State::kDead:
      return "dead";
  }
  return "unknown";
}

MembershipTable::MembershipTable(std::uint32_t num_servers, std::uint32_t num_workers)
    : servers_(num_servers, nullptr), workers_(num_workers, nullptr) {}

absl::StatusOr<Node*> MembershipTable::Admit(const proto::Join& join,
                                             const van::Identity& identity) {
  LEEWAY_RETURN_IF_ERROR(CheckWellFormed(join, identity));
  const auto announced = [](const std::vector<Node*>& nodes) {
    return static_cast<std::uint32_t>(nodes.size());
  };
  LEEWAY_RETURN_IF_ERROR(CheckAnnounced(Role::kServer, join.num_servers, announced(servers_)));
  LEEWAY_RETURN_IF_ERROR(CheckAnnounced(Role::kWorker, join.num_workers, announced(workers_)));
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t rank, ChooseRank(join));
  if (nodes_.size() >= kNodesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("the scheduler has admitted ", kNodesMax,
                                                     " nodes already; start the cluster anew"));
  }
  Node& node = nodes_[next_id_];
  node.id = next_id_++;
  node.role = join.role;
  node.rank = rank;
  node.incarnation = identity.incarnation;
  if (join.role == Role::kServer) node.endpoints = join.endpoints;
  ids_[node.incarnation] = node.id;
  (node.role == Role::kServer ? servers_ : workers_)[rank] = &node;
  return &node;
}

absl::StatusOr<std::uint32_t> MembershipTable::ChooseRank(const proto::Join& join) const {
  const std::vector<Node*>& nodes = Of(join.role);
  const auto free = std::find(nodes.begin(), nodes.end(), nullptr);
  if (join.rank_wanted < 0) {
    if (free != nodes.end()) return static_cast<std::uint32_t>(free - nodes.begin());
    return absl::ResourceExhaustedError(absl::StrCat(
        "it would be ", Name(join.role), " number ", nodes.size() + 1, ", but ",
        NumberSetting(join.role), "=", nodes.size(), " were announced and have joined"));
  }
  const auto rank = static_cast<std::uint32_t>(join.rank_wanted);
  if (rank >= nodes.size()) {
    return absl::OutOfRangeError(absl::StrCat("LEEWAY_RANK=", rank,
                                              " is out of range: ", NumberSetting(join.role), "=",
                                              nodes.size(), ", and ranks count from 0"));
  }
  if (const Node* holder = nodes[rank]; holder != nullptr) {
    const std::string state =
        holder->alive() ? "" : absl::StrCat(", which is ", Name(holder->state));
    return absl::AlreadyExistsError(absl::StrCat(
        "LEEWAY_RANK=", rank, " is taken by ", holder->FullName(), state,
        free == nodes.end()
            ? absl::StrCat("; all ", NumberSetting(join.role), "=", nodes.size(), " have joined")
            : "; choose another rank or leave LEEWAY_RANK unset"));
  }
  return rank;
}

void MembershipTable::Retire(Node* node, Node::State state, std::string why) {
  node->state = state;
  node->gone_because = std::move(why);
  if (!complete_) (node->role == Role::kServer ? servers_ : workers_)[node->rank] = nullptr;
}

bool MembershipTable::UpdateComplete() {
  const auto full = [](const std::vector<Node*>& nodes) {
    return std::find(nodes.begin(), nodes.end(), nullptr) == nodes.end();
  };
  complete_ = complete_ || (full(servers_) && full(workers_));
  return complete_;
}

Node* MembershipTable::FindIncarnation(std::uint64_t incarnation) {
  const auto id = ids_.find(incarnation);
  return id == ids_.end() ? nullptr : Find(id->second);
}

Node* MembershipTable::Find(std::uint32_t id) {
  const auto node = nodes_.find(id);
  return node == nodes_.end() ? nullptr : &node->second;
}

std::vector<Node*> MembershipTable::Alive(Role role) const {
  std::vector<Node*> alive;
  for (Node* node : Of(role)) {
    if (node != nullptr && node->alive()) alive.push_back(node);
  }
  return alive;
}

std::vector<Node*> MembershipTable::Alive() const {
  std::vector<Node*> alive = Alive(Role::kServer);
  const std::vector<Node*> workers = Alive(Role::kWorker);
  alive.insert(alive.end(), workers.begin(), workers.end());
  return alive;
}

std::vector<const Node*> MembershipTable::Dead() const {
  std::vector<const Node*> dead;
  for (const std::vector<Node*>* nodes : {&servers_, &workers_}) {
    for (const Node* node : *nodes) {
      if (node != nullptr && node->state == Node::State::kDead) dead.push_back(node);
    }
  }
  return dead;
}

}  // namespace leeway::scheduler
