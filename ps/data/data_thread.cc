#include "ps/data/data_thread.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "ps/data/status_json.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {
namespace {

// Of the failure timeout: longer than it takes to find a server dead, which is the commoner reason
// for a link that takes nothing.
constexpr int kLinkPatience = 2;

}  // namespace

DataThread::DataThread(const Setup& setup)
    : setup_(setup),
      limits_(van::LimitsFrom(setup.config, setup.send_queue)),
      state_(setup.loop, setup.index, setup.config.failure_timeout, this),
      reports_(&state_, setup.tell_scheduler, setup.straggler_lines),
      ticks_(&state_),
      requests_(&state_, &ticks_,
                {.serve =
                     [this](Inbound inbound) {
                       Guarded([&] { requests_.ServeReader(std::move(inbound)); });
                     },
                 .hold = [this](van::PeerId peer) { return van_->Hold(peer); },
                 .release = [this](van::PeerId peer) { van_->Release(peer); }}),
      calls_(&state_),
      replication_(&state_, &reports_, setup.config.failure_timeout),
      housekeeping_(setup.loop, [this] { OnHousekeeping(); }),
      van_(setup.factory->New(setup.loop, {.role = Role::kServer, .incarnation = setup.incarnation},
                              limits_, this)) {
  ShardContext& shards = state_.replicas.shards();
  shards.table_memory = setup.table_memory;
  shards.message_bytes_max = setup.config.message_bytes_max;
  shards.held.bytes_max = setup.config.held_bytes_max;
  shards.trailing.bytes_max = setup.config.held_bytes_max;
  shards.held_grace = setup.config.failure_timeout;
  shards.test_only_never_hold = setup.options.test_only_never_hold;
  ReplicaContext& replicas = state_.replicas.context();
  replicas.limits = {.window_bytes = setup.config.replication_window_bytes,
                     .resend_first = setup.config.resend_interval,
                     .resend_max = 8 * setup.config.resend_interval};
  replicas.log.bytes_max = setup.config.replication_log_bytes;
  state_.connections.SetVan(van_.get(), limits_.send_queue);
  state_.links.SetVan(van_.get());
}

DataThread::~DataThread() { state_.connections.Close(); }

absl::StatusOr<std::string> DataThread::Listen(absl::string_view address) {
  return van_->Listen(address);
}

void DataThread::SetPlace(const proto::Welcome& welcome) {
  state_.cluster = welcome.cluster;
  state_.server_rank = welcome.rank;
  state_.replicas.shards().block_bytes = welcome.block_bytes;
  state_.replicas.shards().start_clock = welcome.clock;
  state_.replicas.context().place = {.server_rank = welcome.rank, .thread = setup_.index};
  state_.replicas.context().replication = welcome.replication;
  reports_.SetLinkPatience(kLinkPatience * absl::Milliseconds(welcome.failure_timeout_ms));
  van::Identity identity = van_->identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  van_->SetIdentity(identity);
  if (!housekeeping_.pending()) OnHousekeeping();
}

void DataThread::TakeMap(std::shared_ptr<const proto::ClusterMap> map,
                         absl::AnyInvocable<void()> taken) {
  if (map->version <= state_.map->version) {
    if (taken != nullptr) taken();
    return;
  }
  const bool new_epoch = map->epoch != state_.map->epoch;
  state_.map = std::move(map);
  map_taken_ = std::move(taken);
  state_.links.TakeMap(state_.map);
  AdmitMembers();
  state_.replicas.shards().num_shards = static_cast<std::uint32_t>(state_.map->owners.size());
  tables().Follow(state_.map->codecs);
  FollowTableSettings();
  for (const proto::WorkerEntry& change : state_.workers.TakeMap(*state_.map)) {
    for (auto& [id, replica] : state_.replicas.all()) replica->shard().SetWorker(change);
  }
  state_.replicas.TakeMap(*state_.map);
  if (new_epoch) ticks_.OnNewEpoch();
  for (auto& [id, replica] : state_.replicas.all()) {
    if (!replica->leads()) continue;
    if (new_epoch) {
      replica->shard().RefuseEarly(
          absl::AbortedError(absl::StrCat("epoch ", state_.map->epoch, " has begun")));
    }
    replica->shard().CloseClocks();
    replica->UpdateStable();
  }
  SayTakenIfSo();
}

absl::Status DataThread::InstallTable(std::uint32_t id, const TableSpec& spec,
                                      std::unique_ptr<Updater> updater) {
  if (tables().Find(id) == nullptr) LEEWAY_RETURN_IF_ERROR(CheckMemoryFor(spec));
  absl::Status installed = tables().Install(id, spec, std::move(updater));
  tables().Follow(state_.map->codecs);  // a server that came late has the map first
  FollowTableSettings();
  return installed;
}

// The size that a dense table will have here is known, and the same for all threads.
absl::Status DataThread::CheckMemoryFor(const TableSpec& spec) const {
  const ShardContext& shards = state_.replicas.shards();
  if (shards.table_memory == nullptr || spec.kind != TableKind::kDense || shards.num_shards == 0) {
    return absl::OkStatus();
  }
  const double part = static_cast<double>(state_.replicas.all().size()) / shards.num_shards;
  const double bytes = part * static_cast<double>(spec.NumElements()) *
                       static_cast<double>(SizeOf(spec.dtype)) * setup_.config.server_threads;
  constexpr double kMost = 1e18;
  return shards.table_memory->Check(spec, static_cast<std::uint64_t>(std::min(bytes, kMost)));
}

absl::Status DataThread::CheckTableSettings(std::uint32_t id, const TableSpec& spec,
                                            const Updater& updater) {
  const Table* const table = tables().Find(id);
  if (table == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("table ", id, " is not installed on this server yet"));
  }
  return table->CouldHave(spec, updater);
}

// The scheduler has asked other servers, which can do it: this one is of no more use.
void DataThread::FollowTableSettings() {
  const absl::Status followed = tables().Follow(state_.map->table_settings);
  if (followed.ok()) return;
  runtime::LogError("this server cannot do what a table was changed to: ", followed.message());
  if (setup_.give_up != nullptr) setup_.give_up(followed);
}

void DataThread::SayTakenIfSo() {
  if (map_taken_ == nullptr) return;
  if (state_.replicas.AwaitHandover()) return;
  std::exchange(map_taken_, nullptr)();
}

void DataThread::OnLeadNow(const proto::LeadNow& lead) {
  Replica* const replica = state_.replicas.Find(lead.shard);
  if (replica == nullptr) return;
  replica->OnLeadNow(lead);
  SayTakenIfSo();
}

std::string DataThread::StatusJson() const {
  StatusView view{.server_rank = state_.server_rank,
                  .thread = setup_.index,
                  .map = state_.map.get(),
                  .counters = &state_.counters,
                  .van = van_->counters(),
                  .context = &state_.replicas.shards(),
                  .stalls = van_->stalls(),
                  .rates = rates_.Of(setup_.loop->Now(), state_.counters, van_->counters()),
                  .now = setup_.loop->Now(),
                  .log_bytes = state_.replicas.context().log.bytes,
                  .readers_waiting_bytes = state_.replicas.context().readers.bytes,
                  .transfers = state_.replicas.context().transfers,
                  .replicas = state_.replicas.List()};
  return leeway::ps::StatusJson(view);
}

// ---- van::Handler ----

void DataThread::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  state_.connections.OnUp(peer, identity);
  if (IsMember(identity)) {
    van_->Admit(peer);
  } else if (identity.role == Role::kReader && identity.cluster == state_.cluster) {
    van_->AdmitReader(peer);  // ReaderTurns
  } else {
    unknown_.insert(peer);
  }
  if (const std::optional<proto::ShardOwner> place = state_.links.OnPeerUp(peer, identity)) {
    for (auto& [id, replica] : state_.replicas.all()) replica->OnLinkUp(*place);
  }
  if (scheduler_moved_.has_value() && IsClient(identity.role)) {
    state_.connections.Send(peer, *scheduler_moved_).IgnoreError();
  }
}

// True if the newest map has that process as a living worker or server.
bool DataThread::IsMember(const van::Identity& identity) const {
  if (state_.links.ServerOf(identity).has_value()) return true;
  return identity.role == Role::kWorker &&
         std::ranges::any_of(state_.map->workers, [&](const proto::WorkerEntry& worker) {
           return worker.incarnation == identity.incarnation &&
                  worker.state == proto::WorkerState::kAlive;
         });
}

// A peer may have connected before the map that shows it came.
void DataThread::AdmitMembers() {
  if (unknown_.empty()) return;
  absl::flat_hash_set<std::uint64_t> incarnations;
  for (const proto::WorkerEntry& worker : state_.map->workers) {
    if (worker.state == proto::WorkerState::kAlive) incarnations.insert(worker.incarnation);
  }
  for (const proto::ServerEntry& server : state_.map->servers) {
    if (server.alive) incarnations.insert(server.incarnation);
  }
  std::erase_if(unknown_, [&](van::PeerId peer) {
    const van::Identity* const identity = state_.connections.Find(peer);
    const bool known = identity != nullptr && incarnations.contains(identity->incarnation);
    if (known) van_->Admit(peer);
    return known || identity == nullptr;
  });
}

void DataThread::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  unknown_.erase(peer);
  state_.connections.OnDown(peer);
  state_.links.OnPeerDown(peer);
  requests_.DropPeer(peer);
  for (auto& [id, replica] : state_.replicas.all()) replica->OnPeerDown(peer);
}

// The rank that the newest map gives the peer.
std::string DataThread::NameOf(van::PeerId /*peer*/, const van::Identity& identity) const {
  for (const proto::WorkerEntry& worker : state_.map->workers) {
    if (worker.incarnation == identity.incarnation) return absl::StrCat("worker ", worker.rank);
  }
  if (const std::optional<Peer> server = state_.links.ServerOf(identity)) {
    return absl::StrCat("server ", server->place.server_rank);
  }
  return "";
}

void DataThread::OnMessage(van::PeerId peer, van::Message message) {
  const van::Identity* const sender = state_.connections.Find(peer);
  if (sender == nullptr) return;
  absl::StatusOr<proto::AnyMessage> any = proto::Decode(
      message.header, std::span<runtime::Buffer>(message.payload.data(), message.payload.size()));
  if (!any.ok()) {
    ++state_.counters.malformed;
    return state_.connections.Violation(peer, any.status());
  }
  if (sender->role == Role::kWorker || sender->role == Role::kServer) {
    requests_.OthersSpoke();
  }
  Guarded([&] { Dispatch(peer, *sender, &*any, std::move(message.payload)); });
}

void DataThread::Guarded(absl::FunctionRef<void()> work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    // This is not a place where a request could be refused (Pushes::OutOfMemory): what has been
    // done to a shard, and what not, is not known.
    OnBroken(absl::ResourceExhaustedError(
        "there is no memory left on this server, which ends: give it more, or lower "
        "LEEWAY_TABLE_BYTES_MAX or LEEWAY_HELD_BYTES_MAX so that it refuses sooner"));
  }
  state_.connections.DropOffenders();  // now that their answers have left
}

void DataThread::Dispatch(van::PeerId peer, const van::Identity& sender, proto::AnyMessage* any,
                          Payload payload) {
  const Replies::Gathering gathering(&state_.connections.replies());
  if (auto* batch = std::get_if<proto::PushBatch>(any)) {
    requests_.OnPushBatch(peer, sender, *batch, payload[0]);
  } else if (auto* request = std::get_if<proto::Request>(any)) {
    requests_.OnRequest(sender, {peer, std::move(*request), std::move(payload)});
  } else if (auto* tick = std::get_if<proto::ClockTick>(any)) {
    ticks_.OnTick(peer, sender, std::move(*tick));
  } else if (auto* entry = std::get_if<proto::Replicate>(any)) {
    replication_.OnReplicate(peer, sender, std::move(*entry), std::move(payload));
    SayTakenIfSo();
  } else if (auto* ack = std::get_if<proto::ReplicateAck>(any)) {
    replication_.OnReplicateAck(peer, sender, *ack);
  } else if (auto* enter = std::get_if<proto::EnterClock>(any)) {
    ticks_.OnEnter(peer, sender, *enter);
  } else if (auto* call = std::get_if<proto::Call>(any)) {
    calls_.OnCall(peer, sender, *call, payload);
  } else if (auto* moved = std::get_if<proto::SchedulerMoved>(any)) {
    OnSchedulerMoved(peer, sender, *moved);
  } else if (auto* status = std::get_if<proto::StatusRequest>(any);
             status != nullptr && MayAskForStatus(sender)) {
    state_.connections
        .Send(peer, proto::StatusReply{status->request}, {runtime::Buffer::CopyOf(StatusJson())})
        .IgnoreError();
  } else {
    state_.connections.Violation(
        peer, absl::InvalidArgumentError(
                  absl::StrCat("a server's data thread takes no ", proto::NameOf(*any))));
  }
}

// The van limits the work for guests, as tools are; ReaderTurns limits that for readers' pulls
// alone.
bool DataThread::MayAskForStatus(const van::Identity& sender) {
  return sender.role != Role::kReader;
}

// The scheduler came back at another address, and repeats this until this server has been there.
// Workers and readers hear of it from their servers.
void DataThread::OnSchedulerMoved(van::PeerId peer, const van::Identity& sender,
                                  const proto::SchedulerMoved& moved) {
  const bool ours = sender.cluster == state_.cluster && moved.cluster == state_.cluster;
  const bool allowed = ours && sender.role == Role::kScheduler;
  if (!allowed) {
    return state_.connections.Violation(
        peer, absl::PermissionDeniedError(
                  absl::StrCat("only the scheduler of this cluster says where it is; this peer is "
                               "a ",
                               Name(sender.role), " of cluster ", sender.cluster)));
  }
  scheduler_moved_ = moved;
  for (const auto& [other, identity] : state_.connections.all()) {
    if (IsClient(identity.role)) state_.connections.Send(other, moved).IgnoreError();
  }
  if (setup_.scheduler_moved != nullptr) setup_.scheduler_moved(moved);
}

// ---- ReplicaHost ----

bool DataThread::SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) {
  const std::optional<van::PeerId> connection = state_.links.To(to);
  return connection.has_value() && state_.connections.Send(*connection, message, payload).ok();
}

void DataThread::OnBroken(const absl::Status& why) {
  runtime::LogError(why.message());
  if (setup_.give_up != nullptr) setup_.give_up(why);
}

// ---- from time to time ----

void DataThread::OnHousekeeping() {
  housekeeping_.SetAfter(setup_.config.heartbeat_interval);
  replication_.CheckIsolation();
  for (auto& [id, replica] : state_.replicas.all()) {
    replica->Nudge();
    replica->Pump();
    // The last word of what is committed may be lost; and the predecessor hears that this server
    // lives.
    replica->Acknowledge();
  }
  reports_.ReportLinks();
  reports_.ReportLoad();
  rates_.Note(setup_.loop->Now(), state_.counters, van_->counters());
  reports_.LogStragglers();
}

}  // namespace leeway::ps
