#include "ps/data_thread.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/codec.h"
#include "ps/handlers.h"
#include "ps/status_json.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"

namespace leeway::ps {

DataThread::DataThread(const Setup& setup)
    : setup_(setup),
      map_(std::make_shared<const proto::ClusterMap>()),
      van_(setup.factory->New(setup.loop, {.role = Role::kServer, .incarnation = setup.incarnation},
                              van::LimitsFrom(setup.config), this)) {
  context_.loop = setup.loop;
  context_.replier = this;
  context_.counters = &counters_;
  context_.message_bytes_max = setup.config.message_bytes_max;
  context_.held.bytes_max = setup.config.held_bytes_max;
  context_.test_only_never_hold = setup.options.test_only_never_hold;
}

absl::StatusOr<std::string> DataThread::Listen(absl::string_view address) {
  return van_->Listen(address);
}

void DataThread::SetPlace(const proto::Welcome& welcome) {
  cluster_ = welcome.cluster;
  server_rank_ = welcome.rank;
  context_.block_bytes = welcome.block_bytes;
  van::Identity identity = van_->identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  van_->SetIdentity(identity);
}

void DataThread::TakeMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (map->version <= map_->version) return;
  const bool new_epoch = map->epoch != map_->epoch;
  map_ = std::move(map);
  context_.num_shards = static_cast<std::uint32_t>(map_->owners.size());
  const std::vector<proto::WorkerEntry> changes = workers_.TakeMap(*map_);
  for (auto& [id, shard] : shards_) {
    for (const proto::WorkerEntry& change : changes) shard->SetWorker(change);
  }
  TakeShards();
  if (new_epoch) {
    workers_.ForgetTicks();
    for (auto& [id, shard] : shards_) {
      shard->RefuseEarly(absl::AbortedError(absl::StrCat("epoch ", map_->epoch, " has begun")));
    }
  }
  for (auto& [id, shard] : shards_) shard->Settle();
}

void DataThread::TakeShards() {
  std::map<std::uint32_t, std::unique_ptr<Shard>> mine;
  for (std::uint32_t id = 0; id < map_->owners.size(); ++id) {
    if (map_->owners[id] != proto::ShardOwner{server_rank_, setup_.index}) continue;
    std::unique_ptr<Shard>& shard = mine[id];
    if (auto it = shards_.find(id); it != shards_.end()) {
      shard = std::move(it->second);
      continue;
    }
    shard = std::make_unique<Shard>(id, &context_);
    for (const proto::WorkerEntry& worker : map_->workers) shard->SetWorker(worker);
  }
  shards_ = std::move(mine);
}

Shard* DataThread::Find(std::uint32_t shard) const {
  auto it = shards_.find(shard);
  return it == shards_.end() ? nullptr : it->second.get();
}

absl::Status DataThread::InstallTable(std::uint32_t id, const TableSpec& spec,
                                      std::unique_ptr<Updater> updater) {
  return context_.tables.Install(id, spec, std::move(updater));
}

std::string DataThread::StatusJson() const {
  StatusView view{.server_rank = server_rank_,
                  .thread = setup_.index,
                  .map = map_.get(),
                  .counters = &counters_,
                  .van = van_->counters(),
                  .context = &context_,
                  .shards = {}};
  for (const auto& [id, shard] : shards_) view.shards.push_back(shard.get());
  return leeway::ps::StatusJson(view);
}

// ---- what the van says ----

void DataThread::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  peers_[peer] = identity;
}

void DataThread::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  peers_.erase(peer);
  for (auto& [id, shard] : shards_) shard->DropPeer(peer);
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
  Shard* shard = Find(id.shard);
  if (shard == nullptr) {
    return Refuse(inbound, absl::InvalidArgumentError(absl::StrCat(
                               "shard ", id.shard, " does not belong to thread ", setup_.index,
                               " of server ", server_rank_, " in epoch ", map_->epoch)));
  }
  if (shard->TakeRequest(std::move(inbound))) AcknowledgeTickIfDue(*worker);
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
    if (Find(mark.shard) != nullptr) continue;
    return Violation(peer, absl::InvalidArgumentError(
                               absl::StrCat("a tick with a mark of shard ", mark.shard,
                                            ", which does not belong to this server thread")));
  }
  if (tick.clock >= (*worker)->tick_clock) {
    (*worker)->tick_clock = tick.clock;
    (*worker)->tick_peer = peer;
  }
  TellShards(*worker, &tick);
  AcknowledgeTickIfDue(*worker);
}

// Every shard hears of it, with its own mark where it has one.
void DataThread::TellShards(WorkerRecord* worker, proto::ClockTick* tick) {
  std::vector<proto::ShardMark>& marks = tick->marks;
  std::sort(marks.begin(), marks.end(), [](const proto::ShardMark& a, const proto::ShardMark& b) {
    return std::tie(a.shard, a.sequence) < std::tie(b.shard, b.sequence);
  });
  auto mark = marks.begin();
  for (auto& [id, shard] : shards_) {
    std::uint64_t sequence = 0;
    for (; mark != marks.end() && mark->shard == id; ++mark) sequence = mark->sequence;
    shard->TakeTick(worker->entry.rank, worker->entry.incarnation, tick->clock, sequence);
  }
}

void DataThread::AcknowledgeTickIfDue(WorkerRecord* worker) {
  if (worker->tick_clock == 0) return;
  for (const auto& [id, shard] : shards_) {
    if (shard->progress().ClockOf(worker->entry.rank) < worker->tick_clock) return;
  }
  const std::uint64_t clock = std::exchange(worker->tick_clock, 0);
  Send(worker->tick_peer, proto::ClockAck{.clock = clock, .epoch = map_->epoch}).IgnoreError();
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
  CountRefusal(why, &counters_);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  SendReply(inbound.peer, std::move(reply), {});
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
