#include "scheduler/members/liveness.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {

Liveness::Liveness(const Config* config, runtime::Loop* loop, MembershipTable* members,
                   ClusterLife* life)
    : config_(config),
      loop_(loop),
      members_(members),
      life_(life),
      interval_(std::max(config->heartbeat_interval, absl::Milliseconds(1))) {}

void Liveness::Heard(Node* node) {
  node->heard = Now();
  suspects_.erase(node->id);
}

void Liveness::Forget(Node* node) {
  node->heard = absl::InfinitePast();
  suspects_.erase(node->id);
}

// The nodes that were not heard for the failure timeout, by id. Time in which this was not called
// does not count.
std::vector<std::uint32_t> Liveness::Silent() {
  const absl::Time now = Now();
  const absl::Duration delay =
      asked_ == absl::InfinitePast() ? absl::ZeroDuration() : now - asked_ - interval_;
  asked_ = now;
  std::vector<std::uint32_t> silent;
  for (Node* const node : members_->AllById()) {
    if (node->heard == absl::InfinitePast()) continue;
    if (delay > interval_) node->heard = std::min(now, node->heard + delay);
    if (node->SilentFor(now) > config_->failure_timeout) silent.push_back(node->id);
  }
  return silent;
}

void Liveness::FindDead() {
  const std::vector<std::uint32_t> silent = Silent();
  if (IsCutOff(!silent.empty())) return;
  for (const std::uint32_t id : silent) {
    Node* const node = members_->Find(id);
    if (node == nullptr || !node->alive()) continue;
    if (node->role == Role::kReader) {
      life_->OnReaderSilent(*node);
      continue;
    }
    if (!life_->running()) continue;
    life_->Retire(node, Node::State::kDead,
                  absl::StrCat("not heard for ", runtime::FormatDuration(node->SilentFor(Now())),
                               " (LEEWAY_FAILURE_TIMEOUT_MS=",
                               absl::ToInt64Milliseconds(config_->failure_timeout), ")"));
  }
}

// True if no server is heard any more (if there is but one: nor most of the other nodes), although
// connections stand, or, after a restart, have not come yet. Then it is the scheduler that is cut
// off. To declare the servers dead would help nobody, since none is left to take over, and would
// end a healthy cluster.
bool Liveness::HearsNobody() const {
  const absl::Duration quiet =
      std::min(3 * config_->heartbeat_interval, config_->failure_timeout / 2);
  std::size_t servers = 0, quiet_servers = 0, quiet_nodes = 0;
  bool connected = nobody_came_back_;
  const std::vector<Node*> alive = members_->Alive();
  for (const Node* node : alive) {
    const bool is_server = node->role == Role::kServer;
    servers += is_server;
    if (node->SilentFor(Now()) < quiet) continue;
    ++quiet_nodes;
    quiet_servers += is_server;
    connected = connected || node->peer != 0 || node->pulse != 0;
  }
  const bool most = servers > 1 || 2 * quiet_nodes > alive.size();
  return connected && quiet_servers == servers && most;
}

// True for at most Config::scheduler_timeout, which is how long nodes go on without a scheduler.
bool Liveness::IsCutOff(bool somebody_is_silent) {
  if (!HearsNobody()) {
    if (!cut_off_since_.has_value()) return false;
    cut_off_since_.reset();
    runtime::LogInfo("nodes are heard again");
    // The other nodes were cut off from the scheduler as well.
    for (Node* const node : members_->Alive()) node->heard = Now();
    return true;
  }
  if (!cut_off_since_.has_value()) {
    if (!somebody_is_silent) return false;
    cut_off_since_ = Now();
    runtime::LogWarning(
        "no server is heard any more: the scheduler takes itself for cut off, and nobody "
        "for dead, for ",
        runtime::FormatDuration(config_->scheduler_timeout), " (LEEWAY_SCHEDULER_TIMEOUT_MS)");
  }
  return Now() - *cut_off_since_ < config_->scheduler_timeout;
}

// Only a member without connections is suspected: a worker, whose process has ended without leaving
// or soon comes back, and a server whose shards have other replicas.
void Liveness::Suspect(const Node& node) {
  if (!life_->running() || !node.alive() || node.peer != 0 || node.pulse != 0) return;
  if (node.role == Role::kServer && config_->replication < 2) return;
  const auto [suspect, first] =
      suspects_.try_emplace(node.id, loop_, [this, id = node.id] { SuspicionOver(id); });
  if (first) suspect->second.over.SetAfter(SuspicionPatience());
}

// Asks again for as long as the node has to live on: what keeps it alive may pass. It has the whole
// patience after that, since what kept it from coming back may have passed at the same moment.
void Liveness::SuspicionOver(std::uint32_t node) {
  Suspicion& suspicion = suspects_.at(node);
  Node* const silent = members_->Find(node);
  if (silent == nullptr || !silent->alive() || !life_->running()) {
    suspects_.erase(node);
    return;
  }
  const bool may_die = MayDieSoon(*silent);
  if (!std::exchange(suspicion.may_die, may_die) || !may_die) {
    suspicion.over.SetAfter(std::max(SuspicionPatience(), interval_));
    return;
  }
  suspects_.erase(node);
  life_->Retire(silent, Node::State::kDead,
                absl::StrCat("its connections broke, and it has not come back for ",
                             runtime::FormatDuration(SuspicionPatience()), " (LEEWAY_SUSPICION_MS=",
                             absl::ToInt64Milliseconds(config_->suspicion), ")"));
}

absl::Duration Liveness::SuspicionPatience() const {
  return std::min(config_->suspicion, config_->failure_timeout);
}

// True if the cluster is complete, another server is connected, and, where the node is a server,
// others have every shard of it. If no server is connected, the scheduler's own connections broke.
// The last replica of a shard is waited for until the failure timeout (FindDead), since nothing can
// replace it.
bool Liveness::MayDieSoon(const Node& node) const {
  if (!members_->complete()) return false;
  if (node.role == Role::kServer && life_->IsLastReplica(node.rank)) {
    return false;
  }
  const std::vector<Node*> servers = members_->Alive(Role::kServer);
  return std::ranges::any_of(servers, [&node](const Node* other) {
    return other->id != node.id && (other->peer != 0 || other->pulse != 0);
  });
}

}  // namespace leeway::scheduler
