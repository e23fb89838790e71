#include "scheduler/members/membership_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {
namespace {

absl::string_view NumberSetting(Role role) {
  return role == Role::kServer ? "LEEWAY_NUM_SERVERS" : "LEEWAY_NUM_WORKERS";
}

absl::Status CheckNumber(Role role, std::uint32_t theirs, std::uint32_t ours) {
  if (theirs == ours) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "it has ", NumberSetting(role), "=", theirs, ", but the scheduler has ", NumberSetting(role),
      "=", ours,
      "; give all nodes the same number (or LEEWAY_ELASTIC=1 to one that comes on top)"));
}

std::uint32_t RanksMax(Role role) {
  return role == Role::kServer ? proto::kServersMax : proto::kWorkersMax;
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

absl::Duration Node::SilentFor(absl::Time now) const {
  return heard == absl::InfinitePast() ? absl::ZeroDuration() : now - heard;
}

std::string Node::LastHeard(absl::Time now) const {
  return absl::StrCat("last heard ", runtime::FormatDuration(SilentFor(now)), " ago");
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
    : num_servers_(num_servers),
      num_workers_(num_workers),
      servers_(num_servers, nullptr),
      workers_(num_workers, nullptr) {}

absl::StatusOr<Node*> MembershipTable::Admit(const proto::Join& join,
                                             const van::Identity& identity) {
  LEEWAY_RETURN_IF_ERROR(CheckWellFormed(join, identity));
  LEEWAY_RETURN_IF_ERROR(CheckAnnounced(join));
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t rank, ChooseRank(join));
  LEEWAY_RETURN_IF_ERROR(CheckLeavingIsKnown(join.role, rank));
  if (next_id_ >= kFirstReaderNode) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the scheduler has admitted ", kFirstReaderNode, " nodes already; start the cluster anew"));
  }
  ++changes_;
  Node& node = nodes_[next_id_];
  node.id = next_id_++;
  node.role = join.role;
  node.rank = rank;
  node.incarnation = identity.incarnation;
  node.late = complete_;
  if (join.role == Role::kServer) node.endpoints = join.endpoints;
  node.codecs = join.codecs;
  ids_[node.incarnation] = node.id;
  std::vector<Node*>& ranks = Ranks(node.role);
  if (rank == ranks.size()) ranks.push_back(nullptr);
  if (const Node* const before = std::exchange(ranks[rank], &node)) NoteReplaced(*before);
  return &node;
}

// An elastic node need not know the announced numbers.
absl::Status MembershipTable::CheckAnnounced(const proto::Join& join) const {
  if (join.elastic) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(CheckNumber(Role::kServer, join.num_servers, num_servers_));
  return CheckNumber(Role::kWorker, join.num_workers, num_workers_);
}

absl::StatusOr<std::uint32_t> MembershipTable::ChooseRank(const proto::Join& join) const {
  if (join.rank_wanted >= 0) return CheckRank(join, static_cast<std::uint32_t>(join.rank_wanted));
  if (const std::optional<std::uint32_t> free = FreeRank(join.role)) return *free;
  const std::size_t ranks = Of(join.role).size();
  if (!join.elastic || ranks >= RanksMax(join.role)) return Full(join);
  return static_cast<std::uint32_t>(ranks);
}

absl::Status MembershipTable::CheckLeavingIsKnown(Role role, std::uint32_t rank) const {
  const std::vector<Node*>& nodes = Of(role);
  const Node* const before = rank < nodes.size() ? nodes[rank] : nullptr;
  if (before == nullptr || before->left_in == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(before->FullName(),
                   " has left, and not every server has heard of that yet; its "
                   "rank is given again when all have"));
}

// A rank that no node has had; then that of a dead node; then that of one that has left, rather of
// one that all servers know to have left.
std::optional<std::uint32_t> MembershipTable::FreeRank(Role role) const {
  const std::vector<Node*>& nodes = Of(role);
  const auto rank_where = [&](auto holds) -> std::optional<std::uint32_t> {
    const auto found = std::find_if(nodes.begin(), nodes.end(), holds);
    if (found == nodes.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - nodes.begin());
  };
  const auto in_state = [](Node::State state) {
    return [state](const Node* node) { return node != nullptr && node->state == state; };
  };
  if (auto rank = rank_where([](const Node* node) { return node == nullptr; })) return rank;
  if (auto rank = rank_where(in_state(Node::State::kDead))) return rank;
  if (auto rank = rank_where(
          [](const Node* node) { return node->state == Node::State::kLeft && node->left_in == 0; }))
    return rank;
  return rank_where(in_state(Node::State::kLeft));
}

absl::Status MembershipTable::Full(const proto::Join& join) const {
  const std::size_t ranks = Of(join.role).size();
  if (ranks >= RanksMax(join.role)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", ranks, " ", Name(join.role), "s, and there cannot be more"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "it would be ", Name(join.role), " number ", ranks + 1, ", but ", NumberSetting(join.role),
      "=", ranks, " were announced and have joined; LEEWAY_ELASTIC=1 lets it come on top"));
}

absl::StatusOr<std::uint32_t> MembershipTable::CheckRank(const proto::Join& join,
                                                         std::uint32_t rank) const {
  const std::vector<Node*>& nodes = Of(join.role);
  if (rank == nodes.size() && join.elastic && rank < RanksMax(join.role)) return rank;
  if (rank >= nodes.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("LEEWAY_RANK=", rank, " is out of range: ", NumberSetting(join.role), "=",
                     nodes.size(), ", and ranks count from 0",
                     join.elastic ? "; the next to come on top is the last + 1" : ""));
  }
  const Node* holder = nodes[rank];
  if (holder == nullptr || !holder->alive()) return rank;
  return absl::AlreadyExistsError(absl::StrCat(
      "LEEWAY_RANK=", rank, " is taken by ", holder->FullName(),
      FreeRank(join.role).has_value()
          ? "; choose another rank or leave LEEWAY_RANK unset"
          : absl::StrCat("; all ", NumberSetting(join.role), "=", nodes.size(), " have joined")));
}

void MembershipTable::Retire(Node* node, Node::State state, std::string why) {
  ++changes_;
  node->state = state;
  node->gone_because = std::move(why);
  node->codecs.clear();  // the dead are many
  if (complete_) return;
  Ranks(node->role)[node->rank] = nullptr;
  NoteReplaced(*node);
}

void MembershipTable::NoteReplaced(const Node& node) {
  replaced_.push_back(node.id);
  while (replaced_.size() > kReplacedMax) {
    const auto oldest = nodes_.find(replaced_.front());
    replaced_.pop_front();
    ids_.erase(oldest->second.incarnation);
    nodes_.erase(oldest);
  }
}

void MembershipTable::LeavingIsIn(Node* worker, std::uint64_t version) {
  if (complete_) {
    worker->left_in = version;
  }
}

void MembershipTable::ServersHave(std::uint64_t version) {
  for (Node* worker : workers_) {
    if (worker != nullptr && worker->left_in <= version) worker->left_in = 0;
  }
}

void MembershipTable::Restore(const std::vector<Node>& nodes, std::uint32_t next_id,
                              bool complete) {
  complete_ = complete;
  next_id_ = next_id;
  for (const Node& node : nodes) {
    Node& own = nodes_[node.id] = node;
    ids_[own.incarnation] = own.id;
    if (!complete && !own.alive()) {
      replaced_.push_back(own.id);
      continue;
    }
    std::vector<Node*>& ranks = Ranks(own.role);
    if (ranks.size() <= own.rank) ranks.resize(own.rank + 1, nullptr);
    // By id: a node that joined later has taken the rank.
    if (const Node* const before = std::exchange(ranks[own.rank], &own)) {
      replaced_.push_back(before->id);
    }
  }
}

bool MembershipTable::UpdateComplete() {
  const auto full = [](const std::vector<Node*>& nodes) {
    return std::find(nodes.begin(), nodes.end(), nullptr) == nodes.end();
  };
  if (!complete_ && full(servers_) && full(workers_)) {
    ++changes_;
    complete_ = true;
  }
  return complete_;
}

Node* MembershipTable::FindIncarnation(std::uint64_t incarnation) {
  const auto id = ids_.find(incarnation);
  return id == ids_.end() ? nullptr : Find(id->second);
}

Node* MembershipTable::Find(std::uint32_t id) {
  if (id >= kFirstReaderNode) return readers_.Find(id);
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

std::vector<Node*> MembershipTable::AllById() {
  std::vector<Node*> all;
  for (auto& [id, node] : nodes_) all.push_back(&node);
  const std::vector<Node*> readers = readers_.All();
  all.insert(all.end(), readers.begin(), readers.end());
  return all;
}

std::vector<std::uint32_t> MembershipTable::AliveIds(Role role) const {
  std::vector<std::uint32_t> ids;
  for (const Node* node : Alive(role)) ids.push_back(node->id);
  return ids;
}

std::vector<std::uint32_t> MembershipTable::AwaitedWorkers() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank] == nullptr || workers_[rank]->alive()) ranks.push_back(rank);
  }
  return ranks;
}

std::string MembershipTable::DescribeServer(std::uint32_t id) const {
  for (const Node* server : servers_) {
    if (server != nullptr && server->id == id) return server->FullName();
  }
  return absl::StrCat("node ", id);
}

std::string MembershipTable::LastHeard(std::uint32_t id, absl::Time now) const {
  const Node* const node = Find(id);
  return (node == nullptr ? Node() : *node).LastHeard(now);
}

std::string MembershipTable::MostSilentWorker(absl::Time now) const {
  const std::vector<Node*> workers = Alive(Role::kWorker);
  const auto most = std::ranges::max_element(
      workers, {}, [now](const Node* worker) { return worker->SilentFor(now); });
  if (most == workers.end()) return "";
  return absl::StrCat((*most)->FullName(), ", ", (*most)->LastHeard(now));
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

// ---- readers ----

std::size_t ReadersMax() {
  const std::optional<std::uint64_t> files = runtime::DescriptorsMax();
  return files.has_value() ? std::clamp<std::size_t>(*files / 4, 4, kReadersMax) : kReadersMax;
}

absl::StatusOr<Node*> Readers::Admit(const van::Identity& identity) {
  if (identity.incarnation == 0) return absl::InvalidArgumentError("its incarnation is 0");
  if (readers_.size() >= most_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", most_,
        " readers (LEEWAY_READ_ONLY) already, and there cannot be more at a time",
        most_ < kReadersMax ? " with the scheduler's limit of open files (ulimit -n)" : ""));
  }
  const std::uint32_t id = FreeId(identity);
  Node& node = readers_[id];
  node.id = id;
  node.role = Role::kReader;
  node.rank = id - kFirstReaderNode;  // for people: it has none
  node.incarnation = identity.incarnation;
  ids_[node.incarnation] = id;
  return &node;
}

// A random one, so that readers that come back to a restarted scheduler find theirs free.
std::uint32_t Readers::FreeId(const van::Identity& identity) const {
  const bool had_one = identity.node >= kFirstReaderNode;
  std::uint32_t id =
      had_one
          ? identity.node
          : kFirstReaderNode | static_cast<std::uint32_t>(identity.incarnation % kFirstReaderNode);
  while (readers_.contains(id)) id = kFirstReaderNode | (id + 1);
  return id;
}

void Readers::Forget(std::uint32_t id) {
  const auto found = readers_.find(id);
  if (found == readers_.end()) return;
  ids_.erase(found->second.incarnation);
  readers_.erase(found);
}

Node* Readers::FindIncarnation(std::uint64_t incarnation) {
  const auto id = ids_.find(incarnation);
  return id == ids_.end() ? nullptr : Find(id->second);
}

Node* Readers::Find(std::uint32_t id) {
  const auto found = readers_.find(id);
  return found == readers_.end() ? nullptr : &found->second;
}

std::vector<Node*> Readers::All() {
  std::vector<Node*> all;
  all.reserve(readers_.size());
  for (auto& [id, node] : readers_) all.push_back(&node);
  return all;
}

}  // namespace leeway::scheduler
