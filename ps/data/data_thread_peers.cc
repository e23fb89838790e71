// What a data thread has to do with those of other servers: its replicas, where the map puts them,
// and what these say to each other.
#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "ps/data/data_thread.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {

// ---- the map ----

// The shards that the map says are here, those that are still being handed over to others, and no
// more.
void DataThread::TakeShards() {
  for (std::uint32_t id = 0; id < map_->owners.size(); ++id) {
    auto it = replicas_.find(id);
    if (it == replicas_.end()) {
      const proto::Chain chain = proto::ChainOf(*map_, id);
      const auto here = [this](const proto::ShardOwner& place) {
        return place == replica_context_.place;
      };
      if (std::none_of(chain.members.begin(), chain.members.end(), here) &&
          std::none_of(chain.filling.begin(), chain.filling.end(), here)) {
        continue;
      }
      it = replicas_.emplace(id, std::make_unique<Replica>(id, &replica_context_)).first;
      for (const proto::WorkerEntry& worker : map_->workers) it->second->shard().SetWorker(worker);
    }
    it->second->TakeMap(*map_);
  }
  std::erase_if(replicas_, [](const auto& entry) { return entry.second->gone(); });
}

void DataThread::SayTakenIfSo() {
  if (map_taken_ == nullptr) return;
  for (const auto& [id, replica] : replicas_) {
    if (replica->awaits_handover() && !runtime::Planted<"map-taken-before-handover">()) return;
  }
  std::exchange(map_taken_, nullptr)();
}

Replica* DataThread::FindReplica(std::uint32_t shard) const {
  auto it = replicas_.find(shard);
  return it == replicas_.end() ? nullptr : it->second.get();
}

// ---- what other servers say ----

// The workers of this thread do not know yet. It is said until this server has been there.
void DataThread::OnSchedulerMoved(van::PeerId peer, const van::Identity& sender,
                                  const proto::SchedulerMoved& moved) {
  const bool ours = sender.cluster == cluster_ && moved.cluster == cluster_;
  const bool allowed = ours && sender.role == Role::kScheduler;
  if (!allowed && !runtime::Planted<"scheduler-moved-by-anybody">()) {
    return Violation(peer, absl::PermissionDeniedError(absl::StrCat(
                               "only the scheduler of this cluster says where it is; this peer is "
                               "a ",
                               Name(sender.role), " of cluster ", sender.cluster)));
  }
  scheduler_moved_ = moved;
  for (const auto& [other, identity] : peers_) {
    if (IsClient(identity.role)) Send(other, moved).IgnoreError();
  }
  if (setup_.scheduler_moved != nullptr) setup_.scheduler_moved(moved);
}

// PERMISSION_DENIED: it is not what it claims. UNAVAILABLE: the newest map here does not have it.
absl::StatusOr<Peer> DataThread::ServerFrom(const van::Identity& sender) const {
  if (sender.role != Role::kServer || sender.cluster != cluster_) {
    return absl::PermissionDeniedError(
        absl::StrCat("only servers of this cluster replicate shards; this peer is a ",
                     Name(sender.role), " of cluster ", sender.cluster));
  }
  if (const std::optional<Peer> server = links_.ServerOf(sender)) return *server;
  return absl::UnavailableError(
      absl::StrCat("node ", sender.node, " is no living server that this one knows"));
}

void DataThread::OnReplicate(van::PeerId peer, const van::Identity& sender, proto::Replicate header,
                             Payload payload) {
  absl::StatusOr<Peer> server = ServerFrom(sender);
  if (absl::IsPermissionDenied(server.status())) return Violation(peer, server.status());
  Replica* replica = FindReplica(header.shard);
  // It will be sent again, by who still has reason to.
  if (!server.ok() || replica == nullptr) return;
  replica_heard_ = setup_.loop->Now();
  const bool ready = replica->ready();
  EnsureOwned(&payload);
  replica->OnEntry(*server, peer, {std::move(header), std::move(payload)});
  if (!ready && replica->ready()) SayReady(*replica);
  SayTakenIfSo();
}

void DataThread::OnReplicateAck(van::PeerId peer, const van::Identity& sender,
                                const proto::ReplicateAck& ack) {
  absl::StatusOr<Peer> server = ServerFrom(sender);
  if (absl::IsPermissionDenied(server.status())) return Violation(peer, server.status());
  if (!server.ok()) return;
  replica_heard_ = setup_.loop->Now();
  auto it = replicas_.find(ack.shard);
  if (it == replicas_.end()) {
    if (ack.stream != 0) return;
    // A new head asks for a shard that has been handed over, or has never been here.
    proto::Replicate nothing{.shard = ack.shard, .epoch = map_->epoch, .stream = 0, .entry = 1};
    nothing.kind = proto::LogEntryKind::kHandoverEnd;
    const proto::Chain chain = proto::ChainOf(*map_, ack.shard);
    if (chain.members.empty() || chain.members[0].server_rank != server->place.server_rank) return;
    return SendBack(peer, nothing);
  }
  const std::uint32_t fills = replica_context_.fills;
  it->second->OnAck(*server, peer, ack);
  if (it->second->gone()) replicas_.erase(it);
  if (replica_context_.fills >= fills) return;
  for (auto& [id, replica] : replicas_) replica->Nudge();  // another fill may begin
}

// ---- what is said to them ----

bool DataThread::SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) {
  const std::optional<van::PeerId> connection = links_.To(to);
  return connection.has_value() && Send(*connection, message, payload).ok();
}

void DataThread::SendBack(van::PeerId connection, const proto::AnyMessage& message) {
  Send(connection, message).IgnoreError();
}

void DataThread::AcknowledgeSoon(std::uint32_t shard) {
  CallSoon(&Replica::Acknowledge, shard, &to_acknowledge_);
}

void DataThread::ConfirmSoon(std::uint32_t shard) {
  CallSoon(&Replica::Confirm, shard, &to_confirm_);
}

// Once for each of `shards`, a member of this, however often it is asked for until then.
void DataThread::CallSoon(void (Replica::*call)(), std::uint32_t shard,
                          std::set<std::uint32_t>* shards) {
  const bool posted = !shards->empty();
  shards->insert(shard);
  if (posted) return;
  setup_.loop->Post([this, call, shards, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    for (const std::uint32_t one : std::exchange(*shards, {})) {
      if (Replica* replica = FindReplica(one)) (replica->*call)();
    }
  });
}

void DataThread::ResendAt(absl::Time time) {
  if (time >= resend_at_) return;  // it fires early at worst, and is set again
  setup_.loop->Cancel(resend_timer_);
  resend_at_ = time;
  resend_timer_ = setup_.loop->After(time - setup_.loop->Now(), [this] { OnResendTimer(); });
}

void DataThread::OnResendTimer() {
  resend_timer_ = runtime::TimerId::kNone;
  resend_at_ = absl::InfiniteFuture();
  const absl::Time now = setup_.loop->Now();
  for (auto& [id, replica] : replicas_) {
    replica->ResendIfDue(now);
    if (replica->due() != absl::InfiniteFuture()) ResendAt(replica->due());
  }
}

// ---- from time to time ----

void DataThread::OnHousekeeping() {
  housekeeping_ =
      setup_.loop->After(setup_.config.heartbeat_interval, [this] { OnHousekeeping(); });
  LookWhetherIsolated();
  for (auto& [id, replica] : replicas_) {
    replica->Nudge();
    replica->Pump();
    // The last word of what is committed may be lost; and the one before hears that this one lives.
    if (!runtime::Planted<"commit-said-once">()) replica->Acknowledge();
  }
  if (!runtime::Planted<"links-not-reported">()) ReportLinks();
  Report();
  rates_.Note(setup_.loop->Now(), counters_, van_->counters());
  SayWhoHoldsUpWhom();
}

std::vector<const Replica*> DataThread::AllReplicas() const {
  std::vector<const Replica*> replicas;
  for (const auto& [id, replica] : replicas_) replicas.push_back(replica.get());
  return replicas;
}

void DataThread::SayWhoHoldsUpWhom() {
  if (context_.held.bytes == 0) return;  // no pull waits
  const absl::Time now = setup_.loop->Now();
  const std::vector<Straggler> stragglers = FindStragglers(AllReplicas());
  const auto longest =
      std::min_element(stragglers.begin(), stragglers.end(),
                       [](const Straggler& a, const Straggler& b) { return a.since < b.since; });
  if (longest == stragglers.end() || now - longest->since < kStragglerLoggedAfter) return;
  if (!straggler_lines_->Take(now)) return;
  runtime::LogWarning(Describe(*longest, context_.tables.Find(longest->table)->spec().name, now));
}

// Again and again, until the map shows it as a member.
void DataThread::SayReady(const Replica& replica) {
  if (setup_.tell_scheduler == nullptr) return;
  setup_.tell_scheduler(proto::ReplicaReady{.epoch = map_->epoch, .shard = replica.shard().id()});
}

// Again and again, until the scheduler has changed the chain or the other one takes something.
void DataThread::ReportLinks() {
  const absl::Time now = setup_.loop->Now();
  for (auto& [id, replica] : replicas_) {
    const std::optional<proto::LinkReport> report = replica->LookAtLink(now, link_patience_);
    if (report.has_value() && setup_.tell_scheduler != nullptr) setup_.tell_scheduler(*report);
  }
}

void DataThread::OnLeadNow(const proto::LeadNow& lead) {
  Replica* const replica = FindReplica(lead.shard);
  if (replica == nullptr) return;
  replica->OnLeadNow(lead);
  SayTakenIfSo();
}

void DataThread::Report() {
  if (setup_.tell_scheduler == nullptr) return;
  proto::LoadReport report;
  for (auto& [id, replica] : replicas_) {
    if (replica->ready()) SayReady(*replica);
    if (!replica->is_member()) continue;
    std::uint64_t bytes = 0;
    for (const auto& [table, store] : replica->shard().stores()) {
      bytes += store->stats().value_bytes;
    }
    report.shards.push_back({.shard = id, .bytes = bytes, .requests = replica->shard().requests()});
  }
  setup_.tell_scheduler(std::move(report));  // also of none any more
}

void DataThread::SetSchedulerHeard(bool heard) {
  scheduler_heard_ = heard;
  LookWhetherIsolated();
}

void DataThread::OnBroken(const absl::Status& why) {
  runtime::LogError(why.message());
  if (setup_.give_up != nullptr) setup_.give_up(why);
}

// Then another server may lead the shards by now, and what is read here may be old.
void DataThread::LookWhetherIsolated() {
  replica_context_.isolated =
      !scheduler_heard_ && (setup_.loop->Now() - replica_heard_ > setup_.config.failure_timeout ||
                            runtime::Planted<"isolated-though-replicas-are-heard">());
}

}  // namespace leeway::ps
