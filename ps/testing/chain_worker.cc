#include "ps/testing/chain_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "proto/encoding/encoding.h"

namespace leeway::ps {
namespace {

constexpr absl::Duration kResend = absl::Milliseconds(20);

}  // namespace

ChainWorker::ChainWorker(runtime::SimWorld* world, van::SimNetwork* network,
                         const std::string& host, const van::Identity& identity, std::uint32_t rank)
    : rank_(rank),
      incarnation_(identity.incarnation),
      host_(world->NewHost(host)),
      runner_(host_->Spawn("worker")),
      factory_(network->NewFactory(host)),
      van_(factory_->New(runner_->loop(), identity, {}, this)) {
  OnTimer();
}

ChainWorker::~ChainWorker() { van_.reset(); }

void ChainWorker::TakeMap(const proto::ClusterMap& map) {
  const proto::ClusterMap before = std::exchange(map_, map);
  bool moved = false;
  for (std::uint32_t shard = 0; shard < map_.owners.size(); ++shard) {
    const bool same = shard < before.owners.size() && before.owners[shard] == map_.owners[shard] &&
                      before.epoch + 1 >= map_.epoch;
    if (same) continue;
    head_since_[shard] = map_.epoch;
    moved = true;
  }
  clock_acked_.clear();
  stable_told_ = 0;
  if (moved) ResendAll(/*kept_too=*/true);
  for (const std::uint32_t server : Heads()) SendTick(server);
}

ChainWorker::Key ChainWorker::Submit(proto::Request request, Payload payload, bool held) {
  const std::uint32_t shard = request.id.shard;
  const Key key{shard, ++last_[shard]};
  request.id.worker = rank_;
  request.id.incarnation = incarnation_;
  request.id.sequence = key.second;
  open_[key] = {.request = request, .payload = std::move(payload), .held = held};
  Send(key);
  return key;
}

void ChainWorker::Tick(std::uint64_t clock) {
  clock_ = clock;
  for (const std::uint32_t server : Heads()) SendTick(server);
}

void ChainWorker::Enter() {
  entering_ = true;
  for (const std::uint32_t server : Heads()) {
    SendTo(server,
           proto::EnterClock{.worker = rank_, .incarnation = incarnation_, .epoch = map_.epoch});
  }
}

bool ChainWorker::Idle() const {
  for (const auto& [key, open] : open_) {
    if (!open.answered) return false;
  }
  for (const std::uint32_t server : Heads()) {
    auto it = clock_acked_.find(server);
    if (clock_ > 0 && (it == clock_acked_.end() || it->second < clock_)) return false;
  }
  return true;
}

bool ChainWorker::KeepsNothing() const { return open_.empty(); }

absl::Status ChainWorker::ResultOf(const Key& key) const {
  if (!Answered(key)) return absl::UnavailableError("not answered yet");
  auto it = failures_.find(key);
  return it == failures_.end() ? absl::OkStatus() : it->second;
}

std::optional<std::uint64_t> ChainWorker::entered() const {
  std::uint64_t clock = 0;
  for (const std::uint32_t server : Heads()) {
    auto it = entered_.find(server);
    if (it == entered_.end()) return std::nullopt;
    clock = std::max(clock, it->second);
  }
  return clock;
}

// ---- what comes ----

void ChainWorker::OnPeerUp(van::PeerId, const van::Identity&) {}

void ChainWorker::OnPeerDown(van::PeerId peer, const absl::Status&) {
  std::erase_if(peers_, [peer](const auto& entry) { return entry.second == peer; });
}

void ChainWorker::OnMessage(van::PeerId peer, van::Message message) {
  absl::StatusOr<proto::AnyMessage> any = proto::Decode(
      message.header, std::span<runtime::Buffer>(message.payload.data(), message.payload.size()));
  ASSERT_TRUE(any.ok()) << any.status();
  if (const auto* reply = std::get_if<proto::Reply>(&*any)) OnReply(*reply, message.payload);
  if (const auto* acks = std::get_if<proto::PushAcks>(&*any)) {
    for (const proto::PushAck& ack : acks->acks) OnReply(proto::ReplyOf(*acks, ack), {});
  }
  if (const auto* ack = std::get_if<proto::ClockAck>(&*any)) OnClockAck(peer, *ack);
  if (const auto* entered = std::get_if<proto::EnterClockReply>(&*any)) {
    if (entered->epoch != map_.epoch) return;
    for (const auto& [server, known] : peers_) {
      if (known == peer) entered_[server] = entered->clock;
    }
  }
}

void ChainWorker::OnReply(const proto::Reply& reply, const Payload& payload) {
  const Key key{reply.id.shard, reply.id.sequence};
  auto it = open_.find(key);
  if (it == open_.end()) return;
  if (absl::IsAborted(reply.result) || absl::IsUnavailable(reply.result)) return;
  if (reply.provisional) {
    it->second.answered = true;
    return;
  }
  if (!reply.result.ok()) failures_[key] = reply.result;
  if (HasPull(reply.op) && reply.result.ok()) {
    const std::span<const float> values = payload.back().as<float>();
    values_[key] = {values.begin(), values.end()};
  }
  if (reply.has_answer()) answers_[key] = std::string(payload[0].text());
  open_.erase(it);
}

void ChainWorker::OnClockAck(van::PeerId peer, const proto::ClockAck& ack) {
  if (ack.epoch != map_.epoch) return;
  stable_told_ = std::max(stable_told_, ack.stable);
  for (const auto& [server, known] : peers_) {
    if (known != peer) continue;
    clock_acked_[server] = std::max(clock_acked_[server], ack.clock);
    std::erase_if(open_, [&, server = server](const auto& entry) {
      const Open& open = entry.second;
      const std::uint32_t shard = entry.first.first;
      return open.answered && open.request.clock < ack.stable &&
             map_.owners[shard].server_rank == server && ack.epoch >= head_since_[shard];
    });
  }
}

// ---- what goes ----

void ChainWorker::Send(const Key& key) {
  Open& open = open_.at(key);
  proto::Request request = open.request;
  request.epoch = map_.epoch;
  request.after = 0;
  request.settled = request.op == proto::Op::kCall ? key.second : 0;
  for (const auto& [other, before] : open_) {
    if (other >= key) break;
    if (other.first != key.first || before.held != open.held) continue;
    if (request.after == 0 && request.settled != 0) request.settled = other.second;
    request.after = other.second;
  }
  if (key.first >= map_.owners.size()) return;
  SendTo(map_.owners[key.first].server_rank, request, open.payload);
}

void ChainWorker::SendTick(std::uint32_t server) {
  if (clock_ == 0) return;
  if (since_ == 0 && entering_) since_ = entered().value_or(0);
  proto::ClockTick tick{.worker = rank_,
                        .incarnation = incarnation_,
                        .epoch = map_.epoch,
                        .clock = clock_,
                        .watermarks = {},
                        .since = since_};
  for (std::uint32_t shard = 0; shard < map_.owners.size(); ++shard) {
    if (map_.owners[shard].server_rank != server) continue;
    std::uint64_t watermarks[2] = {0, 0};
    for (const auto& [key, open] : open_) {
      if (key.first == shard && HasPush(open.request.op) && open.request.clock < clock_) {
        watermarks[open.held] = key.second;
      }
    }
    for (const bool held : {false, true}) {
      if (watermarks[held] != 0) {
        tick.watermarks.push_back({.sequence = watermarks[held], .shard = shard, .held = held});
      }
    }
  }
  SendTo(server, tick);
}

void ChainWorker::SendTo(std::uint32_t server, const proto::AnyMessage& message, Payload payload) {
  if (server >= map_.servers.size() || !map_.servers[server].alive) return;
  auto it = peers_.find(server);
  if (it == peers_.end()) {
    absl::StatusOr<van::PeerId> peer =
        van_->Connect(map_.servers[server].endpoints.at(0), absl::Seconds(1));
    ASSERT_TRUE(peer.ok()) << peer.status();
    it = peers_.emplace(server, *peer).first;
  }
  van_->Send(it->second, {.header = proto::Encode(message), .payload = std::move(payload)})
      .IgnoreError();
}

void ChainWorker::ResendAll(bool kept_too) {
  for (const auto& [key, open] : open_) {
    if (open.answered && !kept_too) continue;
    ++resends_;
    Send(key);
  }
}

// Everything without an answer, again and again; what is kept as well where a tick is not counted.
void ChainWorker::OnTimer() {
  runner_->loop()->After(kResend, [this] { OnTimer(); });
  bool late = false;
  for (const std::uint32_t server : Heads()) {
    auto it = clock_acked_.find(server);
    const bool counted = it != clock_acked_.end() && it->second >= clock_;
    const bool keeps = std::any_of(open_.begin(), open_.end(), [this](const auto& entry) {
      return entry.second.answered && entry.second.request.clock < clock_;
    });
    late = late || !counted;
    if (!counted || keeps) SendTick(server);
  }
  ResendAll(late);
  if (entering_ && !entered().has_value()) Enter();
}

std::vector<std::uint32_t> ChainWorker::Heads() const {
  std::set<std::uint32_t> heads;
  for (const proto::ShardOwner& owner : map_.owners) {
    if (owner.server_rank != proto::kNoServer) heads.insert(owner.server_rank);
  }
  return {heads.begin(), heads.end()};
}

}  // namespace leeway::ps
