#include "ps/data_thread.h"

#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/codec.h"
#include "ps/handlers.h"
#include "ps/status_json.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

Engine::Setup EngineSetup(const DataThread::Setup& setup, Engine::Replier* replier,
                          Counters* counters) {
  return {.loop = setup.loop,
          .replier = replier,
          .counters = counters,
          .held_bytes_max = setup.config.held_bytes_max,
          .message_bytes_max = setup.config.message_bytes_max,
          .test_only_never_hold = setup.options.test_only_never_hold};
}

}  // namespace

DataThread::DataThread(const Setup& setup)
    : setup_(setup),
      map_(std::make_shared<const proto::ClusterMap>()),
      engine_(EngineSetup(setup_, this, &counters_)),
      van_(setup.factory->New(setup.loop, {.role = Role::kServer, .incarnation = setup.incarnation},
                              van::LimitsFrom(setup.config), this)) {}

absl::StatusOr<std::string> DataThread::Listen(absl::string_view address) {
  return van_->Listen(address);
}

void DataThread::SetPlace(const proto::Welcome& welcome) {
  cluster_ = welcome.cluster;
  server_rank_ = welcome.rank;
  block_bytes_ = welcome.block_bytes;
  van::Identity identity = van_->identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  van_->SetIdentity(identity);
}

void DataThread::TakeMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (map->version <= map_->version) return;
  const bool new_epoch = map->epoch != map_->epoch;
  map_ = std::move(map);
  engine_.SetLayout(static_cast<std::uint32_t>(map_->owners.size()), block_bytes_);
  for (const proto::WorkerEntry& change : workers_.TakeMap(*map_)) {
    engine_.SetWorker(change.rank, change.incarnation, change.state);
  }
  if (new_epoch) {
    for (const Inbound& inbound : workers_.TakeWaiting()) Refuse(inbound, CheckEpoch(inbound));
  }
  engine_.Settle();
}

absl::Status DataThread::InstallTable(std::uint32_t id, const TableSpec& spec,
                                      std::unique_ptr<Updater> updater) {
  return engine_.Install(id, spec, std::move(updater));
}

std::string DataThread::StatusJson() const {
  return leeway::ps::StatusJson({.server_rank = server_rank_,
                                 .thread = setup_.index,
                                 .map = map_.get(),
                                 .counters = &counters_,
                                 .van = van_->counters(),
                                 .engine = &engine_});
}

// ---- what the van says ----

void DataThread::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  peers_[peer] = identity;
}

void DataThread::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  peers_.erase(peer);
  engine_.DropPeer(peer);
  workers_.DropPeer(peer);
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
  if (auto* request = std::get_if<proto::Request>(&*any)) {
    OnRequest(sender->second, {peer, std::move(*request), std::move(message.payload)});
  } else if (auto* tick = std::get_if<proto::ClockTick>(&*any)) {
    OnTick(peer, sender->second, std::move(*tick));
  } else if (auto* call = std::get_if<proto::Call>(&*any)) {
    OnCall(peer, sender->second, *call, message.payload);
  } else if (auto* status = std::get_if<proto::StatusRequest>(&*any)) {
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
  const proto::RequestId& id = inbound.request.id;
  absl::StatusOr<WorkerRecord*> worker = workers_.Find(sender, cluster_, id.worker, id.incarnation);
  if (absl::IsPermissionDenied(worker.status())) return Violation(inbound.peer, worker.status());
  if (!worker.ok()) return Refuse(inbound, worker.status());
  if (absl::Status epoch = CheckEpoch(inbound); !epoch.ok()) return Refuse(inbound, epoch);
  if (!Owns(id.shard)) {
    return Refuse(inbound, absl::InvalidArgumentError(absl::StrCat(
                               "shard ", id.shard, " does not belong to thread ", setup_.index,
                               " of server ", server_rank_, " in epoch ", map_->epoch)));
  }
  AdmitInOrder(*worker, std::move(inbound));
  CountTickIfDue(*worker);
}

absl::Status DataThread::CheckEpoch(const Inbound& inbound) {
  const std::uint64_t epoch = inbound.request.epoch;
  if (map_->epoch == 0) {
    return absl::UnavailableError("this server does not serve before the cluster is complete");
  }
  if (epoch == map_->epoch) return absl::OkStatus();
  const std::string text =
      absl::StrCat("the request is of epoch ", epoch, ", this server is in epoch ", map_->epoch);
  return epoch < map_->epoch ? absl::AbortedError(text) : absl::UnavailableError(text);
}

void DataThread::AdmitInOrder(WorkerRecord* worker, Inbound inbound) {
  const proto::RequestId id = inbound.request.id;
  Stream& stream = worker->StreamOf(id.shard, workers_.budget());
  switch (stream.Judge(id.sequence)) {
    case Stream::Order::kSeen: {
      ++counters_.duplicates;
      const absl::Status outcome = stream.OutcomeOf(id.sequence);
      if (!outcome.ok()) return Refuse(inbound, outcome);
      return engine_.AnswerAgain(std::move(inbound));
    }
    case Stream::Order::kEarly:
      ++(stream.Keep(std::move(inbound)) ? counters_.early : counters_.early_dropped);
      return;
    case Stream::Order::kNext:
      AdmitNext(&stream, std::move(inbound));
      while (std::optional<Inbound> next = stream.TakeNext()) AdmitNext(&stream, *std::move(next));
  }
}

void DataThread::AdmitNext(Stream* stream, Inbound inbound) {
  const std::uint64_t sequence = inbound.request.id.sequence;
  stream->Admit();
  if (absl::Status outcome = engine_.Admit(std::move(inbound)); !outcome.ok()) {
    ++counters_.refused;
    stream->RememberFailure(sequence, std::move(outcome));
  }
}

// ---- clocks ----

void DataThread::OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick) {
  ++counters_.ticks;
  absl::StatusOr<WorkerRecord*> worker =
      workers_.Find(sender, cluster_, tick.worker, tick.incarnation);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  // It is sent again until it is acknowledged, by which time the maps agree.
  if (!worker.ok() || tick.epoch != map_->epoch || map_->epoch == 0) return;
  if (tick.clock >= kClockMax) {
    return Violation(peer, absl::InvalidArgumentError(absl::StrCat(
                               "a tick of clock ", tick.clock, "; clocks are below ", kClockMax)));
  }
  for (const proto::ShardMark& mark : tick.marks) {
    if (Owns(mark.shard)) continue;
    return Violation(peer, absl::InvalidArgumentError(
                               absl::StrCat("a tick with a mark of shard ", mark.shard,
                                            ", which does not belong to this server thread")));
  }
  if (tick.clock <= engine_.progress().ClockOf(tick.worker)) {
    Send(peer, proto::ClockAck{tick.clock}).IgnoreError();
    return;
  }
  std::optional<PendingTick>& pending = (*worker)->tick;
  if (pending.has_value() && pending->clock > tick.clock) return;
  pending = PendingTick{peer, tick.clock, std::move(tick.marks)};
  CountTickIfDue(*worker);
}

void DataThread::CountTickIfDue(WorkerRecord* worker) {
  if (!worker->TickIsDue()) return;
  const PendingTick tick = *std::exchange(worker->tick, std::nullopt);
  engine_.Advance(worker->entry.rank, worker->entry.incarnation, tick.clock);
  Send(tick.peer, proto::ClockAck{tick.clock}).IgnoreError();
  engine_.Settle();
}

// ---- calls ----

void DataThread::OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
                        const Payload& payload) {
  ++counters_.calls;
  absl::StatusOr<WorkerRecord*> worker = workers_.Find(sender, cluster_);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  proto::CallReply reply{.request = call.request, .result = worker.status()};
  std::string answer;
  if (worker.ok()) {
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

bool DataThread::Owns(std::uint32_t shard) const {
  return shard < map_->owners.size() &&
         map_->owners[shard] == proto::ShardOwner{server_rank_, setup_.index};
}

void DataThread::SendReply(van::PeerId peer, proto::Reply reply, Payload payload) {
  const absl::Status sent = Send(peer, reply, std::move(payload));
  if (sent.ok()) return;
  ++counters_.replies_unsent;
  if (!absl::IsInvalidArgument(sent)) return;  // the peer is gone or its queue full: it asks again
  reply.result = absl::OutOfRangeError(
      absl::StrCat("the answer does not fit into one message (", sent.message(),
                   "): pull fewer keys at once or raise LEEWAY_MESSAGE_BYTES_MAX"));
  reply.keys = 0;
  reply.elements = 0;
  Send(peer, reply).IgnoreError();
}

void DataThread::Refuse(const Inbound& inbound, const absl::Status& why) {
  ++(absl::IsAborted(why)       ? counters_.stale_epoch
     : absl::IsUnavailable(why) ? counters_.unavailable
                                : counters_.refused);
  engine_.Refuse(inbound, why);
}

void DataThread::Violation(van::PeerId peer, const absl::Status& why) {
  ++counters_.violations;
  runtime::LogWarning("dropping ", van_->AddressOf(peer), ": ", why.message());
  van_->Disconnect(peer, why);
}

absl::Status DataThread::Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload) {
  return van_->Send(peer, {.header = proto::Encode(message), .payload = std::move(payload)});
}

}  // namespace leeway::ps
