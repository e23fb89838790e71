#include "worker/links/servers.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "van/address/tcp_address.h"

namespace leeway::worker {
namespace {

constexpr absl::Duration kReconnectDelayMin = absl::Milliseconds(50);
constexpr absl::Duration kReconnectDelayMax = absl::Seconds(2);
// An attempt to connect that takes longer is reported, and another one made.
constexpr absl::Duration kAttemptMax = absl::Seconds(5);
constexpr absl::Duration kReportInterval = absl::Minutes(1);

}  // namespace

Servers::Servers(const Config& config, runtime::Loop* loop, van::Factory* factory,
                 const van::Identity& identity, Listener* listener)
    : connect_timeout_(std::min(config.connect_timeout, kAttemptMax)),
      loop_(loop),
      listener_(listener),
      van_(factory->New(loop, identity, van::LimitsFrom(config), this)) {}

void Servers::Follow(const proto::ClusterMap& map) {
  for (const proto::ServerEntry& server : map.servers) {
    for (std::uint32_t thread = 0; thread < server.endpoints.size(); ++thread) {
      Place(server, thread);
    }
  }
}

void Servers::Place(const proto::ServerEntry& server, std::uint32_t thread) {
  std::unique_ptr<Link>& slot = links_[{server.rank, thread}];
  if (slot == nullptr) {
    slot = std::make_unique<Link>();
    slot->server_rank = server.rank;
    slot->thread = thread;
    slot->alive = false;
    slot->reconnect =
        std::make_unique<runtime::Timer>(loop_, [this, link = slot.get()] { Connect(link); });
  }
  Link* link = slot.get();
  const std::string& address = server.endpoints[thread];
  if (!server.alive) {
    link->address = address;
    link->alive = false;
    const auto death = deaths_.find(server.node);
    link->death = death == deaths_.end() ? "the scheduler has given it up" : death->second;
    Drop(link, absl::OkStatus());
    return;
  }
  if (link->alive && link->node == server.node && link->incarnation == server.incarnation &&
      link->address == address) {
    return;
  }
  const bool replaced = link->alive && link->generation > 0;
  Drop(link, absl::OkStatus());
  link->node = server.node;
  link->incarnation = server.incarnation;
  ++link->generation;
  link->alive = true;
  link->death.clear();
  link->address = address;
  link->down_since = link->reported_unreachable = absl::InfinitePast();
  link->trouble = absl::OkStatus();
  link->reconnect_delay = kReconnectDelayMin;
  if (replaced) {
    listener_->OnLinkDown(link, absl::UnavailableError("another process took its place"));
  }
  Connect(link);
}

void Servers::NoteDeath(std::uint32_t node, std::string reason) {
  deaths_[node] = std::move(reason);
}

Link* Servers::Find(std::uint32_t server_rank, std::uint32_t thread) const {
  const auto found = links_.find({server_rank, thread});
  return found == links_.end() ? nullptr : found->second.get();
}

absl::Status Servers::Send(Link* link, const proto::AnyMessage& message,
                           std::span<const runtime::Buffer> payload, van::SendDone done) {
  SendBatch(link);
  van::Message out;
  out.header = proto::Encode(message);
  out.payload.assign(payload.begin(), payload.end());
  return van_->Send(link->peer, std::move(out), std::move(done));
}

bool Servers::SendWithOthers(Link* link, const proto::Request& request,
                             std::span<const runtime::Buffer> payload) {
  if (!PushBatch::Takes(request, payload) || !Writable(link)) return false;
  if (!link->batch.Fits(request, payload[0].size())) SendBatch(link);
  if (link->batch.empty()) {
    if (with_batch_.empty()) {
      loop_->BeforeSleep([this, alive = lifetime_.watch()] {
        if (alive) SendBatches();
      });
    }
    with_batch_.push_back(link);
  }
  link->batch.Add(request, payload[0]);
  return true;
}

void Servers::SendBatches() {
  for (Link* link : std::exchange(with_batch_, {})) SendBatch(link);
}

// A batch that cannot be sent is lost; its requests are sent again because no answer comes.
void Servers::SendBatch(Link* link) {
  if (link->batch.empty()) return;
  PushBatch::Message batch = link->batch.Take();
  van::Message out;
  out.header = proto::Encode(batch.header);
  out.payload.push_back(std::move(batch.values));
  if (const absl::Status sent = van_->Send(link->peer, std::move(out)); !sent.ok()) {
    link->trouble = sent;
  }
}

void Servers::Connect(Link* link) {
  if (!link->alive || link->peer != 0 || van_ == nullptr) return;
  if (link->down_since == absl::InfinitePast()) link->down_since = loop_->Now();
  absl::StatusOr<van::PeerId> peer = van_->Connect(link->address, connect_timeout_);
  if (!peer.ok()) {
    // Only a change of the reason is logged.
    if (link->trouble != peer.status()) {
      runtime::LogWarning("cannot connect to ", link->Describe(), ": ", peer.status().message());
    }
    link->trouble = peer.status();
    ConnectLater(link);
    return;
  }
  link->peer = *peer;
  by_peer_[*peer] = link;
}

void Servers::ConnectLater(Link* link) {
  link->reconnect->SetBy(loop_->Now() + link->reconnect_delay);
  link->reconnect_delay = std::min(2 * link->reconnect_delay, kReconnectDelayMax);
}

void Servers::Reconnect(Link* link) {
  if (link->peer == 0) return;
  Drop(link, absl::OkStatus());
  listener_->OnLinkDown(link, absl::UnavailableError("dropped to free the user's memory"));
  ConnectLater(link);
}

// Reports of the van about that peer are not for this link from here on.
void Servers::Drop(Link* link, const absl::Status& why) {
  link->reconnect->Clear();
  link->up = false;
  link->batch.Clear();
  if (link->peer == 0 || van_ == nullptr) return;
  const van::PeerId peer = std::exchange(link->peer, 0);
  by_peer_.erase(peer);
  van_->Disconnect(peer, why);
}

void Servers::Close() {
  by_peer_.clear();
  for (auto& [place, link] : links_) {
    link->reconnect->Clear();
    link->up = false;
    link->peer = 0;
    link->batch.Clear();
  }
  van_.reset();  // last: it reports the end of sends that are under way
}

Link* Servers::Of(van::PeerId peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second;
}

std::string Servers::NameOf(van::PeerId peer, const van::Identity& /*identity*/) const {
  const Link* link = Of(peer);
  return link == nullptr ? ""
                         : absl::StrCat("server ", link->server_rank, " thread ", link->thread);
}

// Another process at the same address does not have what this worker has pushed.
absl::Status Servers::CheckPeer(const Link& link, const van::Identity& identity) {
  if (identity.role != Role::kServer) {
    return absl::UnavailableError(
        absl::StrCat(link.address, " is a ", Name(identity.role), ", not a server"));
  }
  if (identity.node != link.node ||
      (link.incarnation != 0 && identity.incarnation != link.incarnation)) {
    return absl::UnavailableError(
        absl::StrCat("another process than the cluster map says listens at ", link.address));
  }
  return absl::OkStatus();
}

void Servers::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  Link* link = Of(peer);
  if (link == nullptr) return;
  if (const absl::Status known = CheckPeer(*link, identity); !known.ok()) {
    link->trouble = known;
    Drop(link, absl::OkStatus());
    ConnectLater(link);
    return;
  }
  link->up = true;
  link->heard = loop_->Now();
  link->trouble = absl::OkStatus();
  link->reconnect_delay = kReconnectDelayMin;
  if (std::exchange(link->reported_unreachable, absl::InfinitePast()) != absl::InfinitePast()) {
    runtime::LogInfo("connected to ", link->Describe(), " after ",
                     runtime::FormatDuration(loop_->Now() - link->down_since));
  }
  link->down_since = absl::InfinitePast();
  listener_->OnLinkUp(link);
}

// Logs that a link does not come up, at most once a minute for each.
void Servers::ReportUnreachable(Link* link, const absl::Status& why) {
  const absl::Time now = loop_->Now();
  if (now - link->down_since < kAttemptMax / 2 ||
      now - link->reported_unreachable < kReportInterval)
    return;
  link->reported_unreachable = now;
  runtime::LogWarning("cannot reach ", link->Describe(), " for ",
                      runtime::FormatDuration(now - link->down_since), ": ", van::ReasonOf(why),
                      "; trying on. If it runs, but at an address that ",
                      "this machine has no way to, set LEEWAY_HOST or LEEWAY_INTERFACE there");
}

void Servers::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  Link* link = Of(peer);
  if (link == nullptr) return;
  by_peer_.erase(peer);
  if (!link->up) ReportUnreachable(link, why);
  link->peer = 0;
  link->up = false;
  link->batch.Clear();
  link->trouble = why.ok() ? absl::UnavailableError("it said goodbye") : why;
  runtime::LogDebug("lost ", link->Describe(), ": ", link->trouble.message());
  ConnectLater(link);
  listener_->OnLinkDown(link, link->trouble);
}

void Servers::OnMessage(van::PeerId peer, van::Message message) {
  Link* link = Of(peer);
  if (link == nullptr) return;
  link->heard = loop_->Now();
  const std::span<runtime::Buffer> payload(message.payload.data(), message.payload.size());
  absl::StatusOr<proto::AnyMessage> decoded = proto::Decode(message.header, payload);
  if (decoded.ok()) {
    if (const auto* reply = std::get_if<proto::Reply>(&*decoded)) {
      return reply_listener_->OnReply(link, *reply, payload);
    }
    if (const auto* acks = std::get_if<proto::PushAcks>(&*decoded)) {
      return reply_listener_->OnAcks(link, *acks);
    }
    return listener_->OnServerMessage(link, *std::move(decoded), payload);
  }
  runtime::LogWarning(link->Describe(), " sent what cannot be read: ", decoded.status().message());
  Drop(link, decoded.status());
  link->trouble = decoded.status();
  ConnectLater(link);
  listener_->OnLinkDown(link, link->trouble);
}

}  // namespace leeway::worker
