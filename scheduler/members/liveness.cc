#include "scheduler/members/liveness.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
Liveness::Liveness(const Config* config, runtime::Loop* loop, MembershipTable* members,
                   Readers* readers, Owner* owner)
    : config_(config),
      loop_(loop),
      members_(members),
      readers_(readers),
      owner_(owner),
      detector_(config->failure_timeout,
                std::max(config->heartbeat_interval, absl::Milliseconds(1))) {}

void Liveness::Heard(std::uint32_t node) {
  detector_.Heard(node, Now());
  Trust(node);
}

void Liveness::Forget(std::uint32_t node) {
  detector_.Forget(node);
  Trust(node);
}

void Liveness::FindDead() {
  const std::vector<std::uint32_t> silent = detector_.Silent(Now());
  if (IsCutOff(!silent.empty())) return;
  for (std::uint32_t id : silent) {
    if (const Node* const reader = readers_->Find(id)) owner_->OnReaderSilent(*reader);
    Node* const node = members_->Find(id);
    if (node == nullptr || !node->alive() || !owner_->running()) continue;
    owner_->OnDead(node, absl::StrCat("not heard for ", runtime::FormatDuration(SilentFor(id)),
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
    if (SilentFor(node->id) < quiet) continue;
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
    for (const Node* node : members_->Alive()) detector_.Heard(node->id, Now());
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
  if (!owner_->running() || !node.alive() || node.peer != 0 || node.pulse != 0) return;
  if (!members_->complete()) return;
  if (node.role == Role::kServer && config_->replication < 2) return;
  const auto [suspect, first] =
      suspects_.try_emplace(node.id, loop_, [this, id = node.id] { SuspicionOver(id); });
  if (first) suspect->second.SetAfter(SuspicionPatience());
}

void Liveness::SuspicionOver(std::uint32_t node) {
  suspects_.erase(node);
  Node* const silent = members_->Find(node);
  if (silent == nullptr || !silent->alive() || !owner_->running() || !CanBeSpared(*silent)) {
    return;
  }
  owner_->OnDead(
      silent, absl::StrCat("its connections broke, and it has not come back for ",
                           runtime::FormatDuration(SuspicionPatience()), " (LEEWAY_SUSPICION_MS=",
                           absl::ToInt64Milliseconds(config_->suspicion), ")"));
}

absl::Duration Liveness::SuspicionPatience() const {
  return std::min(config_->suspicion, config_->failure_timeout);
}

// True if another server is connected, and, where the node is a server, others have every shard of
// it. If none is connected, the scheduler's own connections broke. The last replica of a shard is
// waited for until the failure timeout (FindDead), since nothing can replace it.
bool Liveness::CanBeSpared(const Node& node) const {
  if (node.role == Role::kServer && owner_->IsLastReplica(node.rank)) {
    return false;
  }
  const std::vector<Node*> servers = members_->Alive(Role::kServer);
  return std::ranges::any_of(servers, [&node](const Node* other) {
    return other->id != node.id && (other->peer != 0 || other->pulse != 0);
  });
}

void Liveness::Trust(std::uint32_t node) { suspects_.erase(node); }

absl::Duration Liveness::SilentFor(std::uint32_t node) const {
  return detector_.SilentFor(node, Now());
}

std::string Liveness::LastHeard(std::uint32_t node) const {
  return absl::StrCat("last heard ", runtime::FormatDuration(SilentFor(node)), " ago");
}

std::string Liveness::MostSilentWorker() const {
  const std::vector<Node*> workers = members_->Alive(Role::kWorker);
  const auto heard_before = [this](const Node* a, const Node* b) {
    return SilentFor(a->id) < SilentFor(b->id);
  };
  const auto most = std::max_element(workers.begin(), workers.end(), heard_before);
  return most == workers.end() ? ""
                               : absl::StrCat((*most)->FullName(), ", ", LastHeard((*most)->id));
}

}  // namespace leeway::scheduler
