#include "ps/data/data_thread.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "ps/data/handlers.h"
#include "ps/data/status_json.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// Of the failure timeout: longer than it takes to find a server dead, which is the commoner reason
// for a link that takes nothing.
constexpr int kLinkPatience = 2;

// Of an answer that holds a dense block as it is: what the worker may have posted its array for.
std::uint64_t ReceiveTokenFor(const proto::Reply& reply, const van::Message& out) {
  const bool plain = reply.kind == TableKind::kDense && !reply.coded && out.payload.size() == 1;
  return plain && reply.op == proto::Op::kPull ? proto::ReceiveTokenOf(reply.id) : 0;
}

}  // namespace

DataThread::DataThread(const Setup& setup)
    : setup_(setup),
      log_(setup.loop),
      straggler_lines_(setup.straggler_lines != nullptr ? setup.straggler_lines
                                                        : std::make_shared<StragglerLines>()),
      map_(std::make_shared<const proto::ClusterMap>()),
      links_(setup.config.failure_timeout),
      replies_(
          setup.loop,
          [this](van::PeerId peer, const proto::AnyMessage& message, Payload payload,
                 van::SendDone done) {
            return Send(peer, message, std::move(payload), std::move(done));
          },
          [this](van::PeerId peer) { return van_->Writable(peer); },
          [this](van::PeerId peer, proto::Reply reply, const absl::Status& why) {
            OnUnsent(peer, std::move(reply), why);
          }),
      reader_turns_(
          setup.loop,
          {.serve = [this](Inbound inbound) { Guarded([&] { ServeReader(std::move(inbound)); }); },
           .hold = [this](van::PeerId peer) { return van_->Hold(peer); },
           .release = [this](van::PeerId peer) { van_->Release(peer); }}),
      replica_heard_(setup.loop->Now()),
      van_(setup.factory->New(setup.loop, {.role = Role::kServer, .incarnation = setup.incarnation},
                              van::LimitsFrom(setup.config), this)) {
  context_.loop = setup.loop;
  context_.counters = &counters_;
  context_.table_memory = setup.table_memory;
  context_.message_bytes_max = setup.config.message_bytes_max;
  context_.held.bytes_max = setup.config.held_bytes_max;
  context_.late.bytes_max = setup.config.held_bytes_max;
  context_.held_grace = setup.config.failure_timeout;
  context_.test_only_never_hold = setup.options.test_only_never_hold;
  replica_context_.host = this;
  replica_context_.shards = &context_;
  replica_context_.limits = {.window_bytes = setup.config.replication_window_bytes,
                             .resend_first = setup.config.resend_interval,
                             .resend_max = 8 * setup.config.resend_interval};
  replica_context_.log.bytes_max = setup.config.replication_log_bytes;
  links_.SetVan(van_.get());
}

DataThread::~DataThread() {
  setup_.loop->Cancel(resend_timer_);
  setup_.loop->Cancel(housekeeping_);
  replies_.Clear();
}

absl::StatusOr<std::string> DataThread::Listen(absl::string_view address) {
  return van_->Listen(address);
}

void DataThread::SetPlace(const proto::Welcome& welcome) {
  cluster_ = welcome.cluster;
  server_rank_ = welcome.rank;
  context_.block_bytes = welcome.block_bytes;
  context_.start_clock = welcome.clock;
  replica_context_.place = {.server_rank = welcome.rank, .thread = setup_.index};
  replica_context_.replication = welcome.replication;
  link_patience_ = kLinkPatience * absl::Milliseconds(welcome.failure_timeout_ms);
  van::Identity identity = van_->identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  van_->SetIdentity(identity);
  if (housekeeping_ == runtime::TimerId::kNone) OnHousekeeping();
}

void DataThread::TakeMap(std::shared_ptr<const proto::ClusterMap> map,
                         absl::AnyInvocable<void()> taken) {
  if (map->version <= map_->version && !runtime::Planted<"older-map-taken-by-shards">()) {
    if (taken != nullptr) taken();
    return;
  }
  const bool new_epoch = map->epoch != map_->epoch;
  map_ = std::move(map);
  map_taken_ = std::move(taken);
  links_.TakeMap(map_);
  context_.num_shards = static_cast<std::uint32_t>(map_->owners.size());
  context_.tables.Follow(map_->codecs);
  FollowSettings();
  for (const proto::WorkerEntry& change : workers_.TakeMap(*map_)) {
    for (auto& [id, replica] : replicas_) replica->shard().SetWorker(change);
  }
  TakeShards();
  if (new_epoch) {
    if (!runtime::Planted<"ticks-kept-over-epoch">()) workers_.ForgetTicks();
    stable_told_ = 0;
  }
  for (auto& [id, replica] : replicas_) {
    if (!replica->leads()) continue;
    if (new_epoch && !runtime::Planted<"early-not-refused-in-new-epoch">()) {
      replica->shard().RefuseEarly(
          absl::AbortedError(absl::StrCat("epoch ", map_->epoch, " has begun")));
    }
    replica->shard().Settle();
    replica->UpdateStable();
  }
  SayTakenIfSo();
}

absl::Status DataThread::InstallTable(std::uint32_t id, const TableSpec& spec,
                                      std::unique_ptr<Updater> updater) {
  if (context_.tables.Find(id) == nullptr) LEEWAY_RETURN_IF_ERROR(CheckMemoryFor(spec));
  absl::Status installed = context_.tables.Install(id, spec, std::move(updater));
  context_.tables.Follow(map_->codecs);  // a server that came late has the map first
  FollowSettings();
  return installed;
}

// Of a dense table it is known how large it becomes here, all threads alike.
absl::Status DataThread::CheckMemoryFor(const TableSpec& spec) const {
  if (context_.table_memory == nullptr || spec.kind != TableKind::kDense ||
      context_.num_shards == 0) {
    return absl::OkStatus();
  }
  const double part = static_cast<double>(replicas_.size()) / context_.num_shards;
  const double bytes = part * static_cast<double>(spec.NumElements()) *
                       static_cast<double>(SizeOf(spec.dtype)) * setup_.config.server_threads;
  constexpr double kMost = 1e18;
  return context_.table_memory->Check(spec, static_cast<std::uint64_t>(std::min(bytes, kMost)));
}

absl::Status DataThread::CheckSettings(std::uint32_t id, const TableSpec& spec,
                                       const Updater& updater) {
  const Table* const table = context_.tables.Find(id);
  if (table == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("table ", id, " is not installed on this server yet"));
  }
  return table->CouldHave(spec, updater);
}

// Other servers could do it: the scheduler has asked them.
void DataThread::FollowSettings() {
  const absl::Status followed = context_.tables.Follow(map_->settings);
  if (followed.ok()) return;
  runtime::LogError("this server cannot do what a table was changed to: ", followed.message());
  if (setup_.give_up != nullptr) setup_.give_up(followed);
}

std::string DataThread::StatusJson() const {
  StatusView view{.server_rank = server_rank_,
                  .thread = setup_.index,
                  .map = map_.get(),
                  .counters = &counters_,
                  .van = van_->counters(),
                  .context = &context_,
                  .stalls = van_->stalls(),
                  .rates = rates_.Of(setup_.loop->Now(), counters_, van_->counters()),
                  .now = setup_.loop->Now(),
                  .log_bytes = replica_context_.log.bytes,
                  .readers_waiting_bytes = replica_context_.readers.bytes,
                  .fills = replica_context_.fills,
                  .replicas = AllReplicas()};
  return leeway::ps::StatusJson(view);
}

std::string DataThread::UnderWay() const {
  std::string text;
  for (const auto& [name, amount] : {std::pair("held bytes", context_.held.bytes),
                                     std::pair("early bytes", context_.early.bytes),
                                     std::pair("late bytes", context_.late.bytes),
                                     std::pair("log bytes", replica_context_.log.bytes),
                                     std::pair("bytes for readers", replica_context_.readers.bytes),
                                     std::pair("fills", std::uint64_t{replica_context_.fills})}) {
    if (amount != 0) absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", amount);
  }
  return text;
}

// ---- what the van says ----

void DataThread::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  peers_[peer] = identity;
  if (const std::optional<proto::ShardOwner> place = links_.OnPeerUp(peer, identity)) {
    for (auto& [id, replica] : replicas_) replica->OnLinkUp(*place);
  }
  if (scheduler_moved_.has_value() && IsClient(identity.role)) {
    Send(peer, *scheduler_moved_).IgnoreError();
  }
}

void DataThread::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  peers_.erase(peer);
  links_.OnPeerDown(peer);
  replies_.DropPeer(peer);
  reader_turns_.DropPeer(peer);
  for (auto& [id, replica] : replicas_) replica->OnPeerDown(peer);
}

// As the newest map has it.
std::string DataThread::NameOf(van::PeerId /*peer*/, const van::Identity& identity) const {
  for (const proto::WorkerEntry& worker : map_->workers) {
    if (worker.incarnation == identity.incarnation) return absl::StrCat("worker ", worker.rank);
  }
  if (const std::optional<Peer> server = links_.ServerOf(identity)) {
    return absl::StrCat("server ", server->place.server_rank);
  }
  return "";
}

void DataThread::OnMessage(van::PeerId peer, van::Message message) {
  auto sender = peers_.find(peer);
  if (sender == peers_.end()) return;
  absl::StatusOr<proto::AnyMessage> any = proto::Decode(
      message.header, std::span<runtime::Buffer>(message.payload.data(), message.payload.size()));
  if (!any.ok()) {
    ++counters_.malformed;
    return Violation(peer, any.status());
  }
  if (sender->second.role == Role::kWorker || sender->second.role == Role::kServer) {
    reader_turns_.OthersSpoke();
  }
  Guarded([&] { Dispatch(peer, sender->second, &*any, std::move(message.payload)); });
}

void DataThread::Guarded(absl::FunctionRef<void()> work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    // Not where a request could be refused: what has been done to a shard, and what not, is not
    // known.
    OnBroken(absl::ResourceExhaustedError(
        "there is no memory left on this server, which ends: give it more, or lower "
        "LEEWAY_TABLE_BYTES_MAX or LEEWAY_HELD_BYTES_MAX so that it refuses sooner"));
  }
  // After what they are answered has left.
  for (const auto& [offender, why] : std::exchange(offenders_, {})) {
    ++counters_.malformed;
    Violation(offender, why);
  }
}

void DataThread::Dispatch(van::PeerId peer, const van::Identity& sender, proto::AnyMessage* any,
                          Payload payload) {
  const Replies::Gathering gathering(&replies_);
  if (auto* batch = std::get_if<proto::PushBatch>(any)) {
    OnPushBatch(peer, sender, *batch, payload[0]);
  } else if (auto* request = std::get_if<proto::Request>(any)) {
    OnRequest(sender, {peer, std::move(*request), std::move(payload)});
  } else if (auto* tick = std::get_if<proto::ClockTick>(any)) {
    OnTick(peer, sender, std::move(*tick));
  } else if (auto* entry = std::get_if<proto::Replicate>(any)) {
    OnReplicate(peer, sender, std::move(*entry), std::move(payload));
  } else if (auto* ack = std::get_if<proto::ReplicateAck>(any)) {
    OnReplicateAck(peer, sender, *ack);
  } else if (auto* enter = std::get_if<proto::EnterClock>(any)) {
    OnEnter(peer, sender, *enter);
  } else if (auto* call = std::get_if<proto::Call>(any)) {
    OnCall(peer, sender, *call, payload);
  } else if (auto* moved = std::get_if<proto::SchedulerMoved>(any)) {
    OnSchedulerMoved(peer, sender, *moved);
  } else if (auto* status = std::get_if<proto::StatusRequest>(any)) {
    Send(peer, proto::StatusReply{status->request}, {runtime::Buffer::CopyOf(StatusJson())})
        .IgnoreError();
  } else {
    Violation(peer, absl::InvalidArgumentError(
                        absl::StrCat("a server's data thread takes no ", proto::NameOf(*any))));
  }
}

// ---- requests ----

void DataThread::OnRequest(const van::Identity& sender, Inbound inbound) {
  ++counters_.requests;
  if (sender.role == Role::kReader) return OnRead(sender, std::move(inbound));
  const proto::RequestId& id = inbound.request.id;
  const absl::StatusOr<WorkerRecord*> worker =
      WorkerFor(sender, id.worker, id.incarnation, inbound.request.epoch);
  if (absl::IsPermissionDenied(worker.status())) return Violation(inbound.peer, worker.status());
  if (!worker.ok()) return Refuse(inbound, worker.status());
  TakeRequest(*worker, std::move(inbound));
}

// No map knows of readers, and the cluster's id is no secret: what they may take of memory
// (Replies) and of time (ReaderTurns) is limited, as that of peers about whom nothing else is
// known.
absl::Status DataThread::CheckReader(const van::Identity& reader,
                                     const proto::Request& request) const {
  if (reader.cluster != cluster_ && !runtime::Planted<"reader-of-another-cluster">()) {
    return absl::PermissionDeniedError(
        absl::StrCat("this reader belongs to another cluster: it says ", reader.cluster,
                     ", this server is in ", cluster_, "; check LEEWAY_SCHEDULER"));
  }
  if (request.id.incarnation != reader.incarnation) {
    return absl::PermissionDeniedError(
        "a request names another incarnation than the hello of its sender");
  }
  if (request.op != proto::Op::kPull && !runtime::Planted<"reader-may-push">()) {
    return absl::PermissionDeniedError("a reader (LEEWAY_READ_ONLY=1) has sent a push");
  }
  return absl::OkStatus();
}

void DataThread::OnRead(const van::Identity& reader, Inbound inbound) {
  const absl::Status allowed = CheckReader(reader, inbound.request);
  if (!allowed.ok()) return Violation(inbound.peer, allowed);
  if (absl::Status room = reader_turns_.Check(inbound); !room.ok()) return Refuse(inbound, room);
  reader_turns_.Add(std::move(inbound));
}

// When it is its turn.
void DataThread::ServeReader(Inbound inbound) {
  const absl::Status room = replies_.CheckReader(inbound.peer);
  if (absl::IsPermissionDenied(room)) {
    reader_turns_.DropPeer(inbound.peer);
    return Violation(inbound.peer, room);
  }
  if (!room.ok()) return Refuse(inbound, room);
  if (absl::Status same = CheckEpoch(inbound.request.epoch); !same.ok()) {
    return Refuse(inbound, same);
  }
  const std::uint32_t shard = inbound.request.id.shard;
  Replica* const replica = FindReplica(shard);
  const bool there =
      replica != nullptr && (replica->is_head() || runtime::Planted<"reader-at-a-follower">());
  if (!there) return Refuse(inbound, NotHere(shard));
  if (absl::Status ready = replica->CanTake(inbound.request); !ready.ok()) {
    return Refuse(inbound, ready);
  }
  replica->shard().Read(std::move(inbound));
}

void DataThread::OnPushBatch(van::PeerId peer, const van::Identity& sender,
                             const proto::PushBatch& batch, const runtime::Buffer& values) {
  counters_.requests += batch.pushes.size();
  const absl::StatusOr<WorkerRecord*> worker =
      WorkerFor(sender, batch.worker, batch.incarnation, batch.epoch);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  ForEachPush(peer, batch, values, [&](Inbound inbound) {
    worker.ok() ? TakeRequest(*worker, std::move(inbound)) : Refuse(inbound, worker.status());
  });
}

// Who asks, if its requests may be admitted at all.
absl::StatusOr<WorkerRecord*> DataThread::WorkerFor(const van::Identity& sender, std::uint32_t rank,
                                                    std::uint64_t incarnation,
                                                    std::uint64_t epoch) {
  absl::StatusOr<WorkerRecord*> worker = workers_.Find(sender, cluster_, rank, incarnation);
  if (!worker.ok()) return worker;
  LEEWAY_RETURN_IF_ERROR(CheckEpoch(epoch));
  return worker;
}

void DataThread::TakeRequest(WorkerRecord* worker, Inbound inbound) {
  const proto::RequestId& id = inbound.request.id;
  Replica* replica = FindReplica(id.shard);
  if (replica == nullptr || !replica->is_head()) return Refuse(inbound, NotHere(id.shard));
  if (absl::Status ready = replica->CanTake(inbound.request); !ready.ok()) {
    return Refuse(inbound, ready);
  }
  if (replica->shard().TakeRequest(std::move(inbound))) {
    AcknowledgeTickIfDue(worker);
    replica->UpdateStable();
  }
}

absl::Status DataThread::NotHere(std::uint32_t shard) const {
  if (shard < map_->owners.size() && map_->owners[shard].server_rank == proto::kNoServer) {
    return absl::UnavailableError(
        absl::StrCat("shard ", shard,
                     " is lost: all servers that held it are gone; what it held can come from "
                     "a checkpoint only (LEEWAY_REPLICATION keeps more than one replica)"));
  }
  return absl::InvalidArgumentError(absl::StrCat("shard ", shard, " does not belong to thread ",
                                                 setup_.index, " of server ", server_rank_,
                                                 " in epoch ", map_->epoch));
}

absl::Status DataThread::CheckEpoch(std::uint64_t epoch) const {
  if (map_->epoch == 0) {
    return absl::UnavailableError("this server does not serve before the cluster is complete");
  }
  if (epoch == map_->epoch || runtime::Planted<"request-of-another-epoch">()) {
    return absl::OkStatus();
  }
  const std::string text =
      absl::StrCat("the request is of epoch ", epoch, ", this server is in epoch ", map_->epoch);
  return epoch < map_->epoch ? absl::AbortedError(text) : absl::UnavailableError(text);
}

// ---- calls ----

void DataThread::OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
                        const Payload& payload) {
  ++counters_.calls;
  absl::StatusOr<WorkerRecord*> worker = workers_.Find(sender, cluster_);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  proto::CallReply reply{.request = call.request, .result = worker.status()};
  std::string answer;
  if (worker.ok() && call.handler != proto::kProbeHandler) {
    absl::StatusOr<RequestHandler> handler = FindHandler(call.handler);
    reply.result = handler.status();
    if (handler.ok()) {
      const HandlerContext context{.worker_rank = (*worker)->entry.rank,
                                   .server_rank = server_rank_,
                                   .thread = setup_.index};
      absl::StatusOr<std::string> result = (*handler)(context, payload[0].text());
      reply.result = result.status();
      if (result.ok()) answer = *std::move(result);
    }
  }
  const absl::Status sent = Send(peer, reply, {runtime::Buffer::CopyOf(answer)});
  if (!absl::IsInvalidArgument(sent)) return;
  reply.result = absl::OutOfRangeError(
      absl::StrCat("the answer of handler ", call.handler, " has ", answer.size(),
                   " bytes, more than LEEWAY_MESSAGE_BYTES_MAX of server ", server_rank_));
  Send(peer, reply, {runtime::Buffer()}).IgnoreError();
}

// ---- answers ----

void DataThread::SendReply(van::PeerId peer, proto::Reply reply, Payload payload) {
  const auto to = peers_.find(peer);
  if (to != peers_.end()) {
    const bool reader = to->second.role == Role::kReader;
    return replies_.Add(peer, std::move(reply), std::move(payload), reader);
  }
  ++counters_.replies_unsent;
}

void DataThread::OnUnsent(van::PeerId peer, proto::Reply reply, const absl::Status& why) {
  ++counters_.replies_unsent;
  if (!absl::IsInvalidArgument(why)) return;  // the peer is gone or its queue full: it asks again
  const std::string text =
      absl::StrCat("the answer does not fit into one message (", why.message(),
                   "): pull fewer keys at once or raise LEEWAY_MESSAGE_BYTES_MAX");
  // UNKNOWN, as Shard::RefusePull says it: what was pushed along has been taken.
  reply.result = HasPush(reply.op) ? absl::UnknownError(text) : absl::OutOfRangeError(text);
  reply.keys = reply.elements = reply.version = 0;
  Send(peer, reply).IgnoreError();
}

void DataThread::Refuse(const Inbound& inbound, const absl::Status& why) {
  CountRefusal(why, &counters_);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  SendReply(inbound.peer, std::move(reply), {});
}

void DataThread::DropSoon(van::PeerId peer, const absl::Status& why) {
  offenders_.emplace_back(peer, why);
}

void DataThread::Violation(van::PeerId peer, const absl::Status& why) {
  ++counters_.violations;
  log_.Warning("violation", absl::StrCat("dropping ", van_->AddressOf(peer), ": ", why.message(),
                                         " (", counters_.violations, " so far)"));
  van_->Disconnect(peer, why);
}

absl::Status DataThread::Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload,
                              van::SendDone done) {
  replies_.SendGathered(peer);
  van::Message out{.header = proto::Encode(message), .payload = std::move(payload)};
  if (const auto* reply = std::get_if<proto::Reply>(&message)) {
    out.receive_token = ReceiveTokenFor(*reply, out);
  }
  return van_->Send(peer, std::move(out), std::move(done));
}

}  // namespace leeway::ps
