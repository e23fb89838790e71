#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"

namespace leeway::scheduler {
namespace {

// A thousand years: what a node says of itself is shown, and must not overflow.
constexpr std::uint64_t kUptimeMsMax = 1000ull * 365 * 24 * 3600 * 1000;

std::uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      absl::ToInt64Milliseconds(duration), 1, std::numeric_limits<std::uint32_t>::max()));
}

// What a node is known by in messages to people.
std::string AddressFor(const proto::Join& join, const std::string& peer_address) {
  if (!join.endpoints.empty()) return join.endpoints.front();
  return join.host.empty() ? peer_address : join.host;
}

}  // namespace

// ---- connections ----

void Scheduler::Impl::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  if (moved_ != nullptr && moved_->OnPeerUp(peer)) return;
  peers_[peer] = identity;
}

std::string Scheduler::Impl::NameOf(van::PeerId /*peer*/, const van::Identity& identity) const {
  const Node* node = members_.FindIncarnation(identity.incarnation);
  return node == nullptr ? "" : node->Name();
}

void Scheduler::Impl::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  if (moved_ != nullptr && moved_->OnPeerDown(peer)) return;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Node* node = NodeOf(found->second);
  peers_.erase(found);
  turned_away_.erase(peer);
  if (node == nullptr || (node->peer != peer && node->pulse != peer)) return;
  // A broken connection alone is not death: it may come back.
  const bool was_pulse = node->pulse == peer;
  (was_pulse ? node->pulse : node->peer) = 0;
  if (node->role == Role::kReader) return ReaderIsCutOff(*node);
  Suspect(*node);
  if (was_pulse) return;
  if (!running() && (why.ok() || !node->alive())) {
    ending_->Gone(node->id);
    FinishIfAllGone();
  }
}

void Scheduler::Impl::OnMessage(van::PeerId peer, van::Message raw) {
  const auto identity = peers_.find(peer);
  if (identity == peers_.end() || done_ == nullptr) return;  // it is over
  absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (!message.ok()) {
    LogProtocolError(++protocol_errors_.malformed, message.status().message(), peer);
    van_->Disconnect(peer, message.status());
    return;
  }
  const Role role = identity->second.role;
  // Also of somebody new: it is not the scheduler then that is cut off.
  if (role == Role::kServer || role == Role::kWorker) nobody_came_back_ = false;
  Sender sender{peer, identity->second, NodeOf(identity->second)};
  if (sender.node != nullptr && sender.node->role != sender.identity.role) sender.node = nullptr;
  if (sender.node != nullptr && sender.node->alive()) {
    van_->Admit(peer);
    detector_.Heard(sender.node->id, Now());
    Trust(sender.node->id);
    // On a new connection what was waiting to be sent comes before Join, and is answered as well.
    const bool beats = std::holds_alternative<proto::Heartbeat>(*message);
    if (sender.node->peer == 0 && !beats) sender.node->peer = peer;
    if (beats) sender.node->pulse = peer;
  }
  std::visit([&](const auto& value) { On(sender, value); }, *message);
}

template <class Message>
void Scheduler::Impl::On(const Sender& sender, const Message& message) {
  const absl::Status why = absl::InvalidArgumentError(
      absl::StrCat("a ", proto::NameOf(message), " is nothing one says to a scheduler"));
  LogProtocolError(++protocol_errors_.forbidden, why.message(), sender.peer);
  van_->Disconnect(sender.peer, why);
}

void Scheduler::Impl::OutOfTurn(const Sender& sender, absl::string_view what) {
  LogProtocolError(++protocol_errors_.out_of_turn, what, sender.peer);
}

void Scheduler::Impl::LogProtocolError(std::uint64_t count, absl::string_view what,
                                       van::PeerId peer) {
  log_.Warning("protocol error",
               absl::StrCat("from ", van_->AddressOf(peer), ": ", what, " (", count, " so far)"));
}

void Scheduler::Impl::Send(van::PeerId peer, van::Message message, absl::string_view what) {
  if (keeper_ == nullptr) return SendNow(peer, std::move(message), what);
  keeper_->Once([this, peer, what, message = std::move(message)]() mutable {
    SendNow(peer, std::move(message), what);
  });
}

void Scheduler::Impl::SendNow(van::PeerId peer, van::Message message, absl::string_view what) {
  if (absl::Status sent = van_->Send(peer, std::move(message)); !sent.ok()) {
    runtime::LogDebug(what, " not sent: ", sent.message());
  }
}

void Scheduler::Impl::SendTo(van::PeerId peer, const proto::AnyMessage& message) {
  van::Message raw;
  raw.header = proto::Encode(message);
  Send(peer, std::move(raw), proto::NameOf(message));
}

void Scheduler::Impl::SendTo(const Node& node, const proto::AnyMessage& message) {
  if (node.peer != 0) SendTo(node.peer, message);
}

void Scheduler::Impl::SendMap(const Node& node, const proto::ClusterMap& map) {
  if (node.peer == 0) return;
  if (encoded_version_ != map.version) {
    encoded_map_ = proto::Encode(map);
    encoded_version_ = map.version;
  }
  van::Message raw;
  raw.header = encoded_map_;
  Send(node.peer, std::move(raw), "ClusterMap");
}

// ---- joining, living, leaving ----

void Scheduler::Impl::On(const Sender& sender, const proto::Join& join) {
  const std::uint64_t cluster = sender.identity.cluster;
  if (cluster != 0 && cluster != identity_.cluster) {
    Refuse(sender, absl::FailedPreconditionError(
                       "it belongs to another cluster; this scheduler was started after it"));
    return;
  }
  if (Node* known = NodeOf(sender.identity); known != nullptr) {
    JoinAgain(known, sender, join);
    return;
  }
  if (!running()) {
    Refuse(sender, absl::FailedPreconditionError("the cluster is over"));
    return;
  }
  if (join.role == Role::kReader) return ReaderJoins(sender, join);
  if (IsOfUnknownPast(sender)) return;
  // It comes on top of a whole cluster.
  if (join.elastic && !Ready().ok()) return NotYet(sender, Ready());
  absl::StatusOr<Node*> admitted = members_.Admit(join, sender.identity);
  if (!admitted.ok()) {
    if (!MayBecomeFree(sender, join)) Refuse(sender, admitted.status());
    return;
  }
  turned_away_.erase(sender.peer);
  Node* node = *admitted;
  van_->Admit(sender.peer);
  node->peer = sender.peer;
  node->address = AddressFor(join, van_->AddressOf(sender.peer));
  detector_.Heard(node->id, Now());
  runtime::LogInfo(node->FullName(), " has joined");
  Welcome(*node);
  Joined(node);
}

// Somebody who holds such a rank has lost its connections, and is perhaps about to be found dead:
// a process started in its stead asks again until that is known. That connections have broken may
// itself be known only a little later.
bool Scheduler::Impl::MayBecomeFree(const Sender& sender, const proto::Join& join) {
  if (!members_.complete() || (join.role != Role::kServer && join.role != Role::kWorker)) {
    return false;
  }
  const absl::Time first = turned_away_.try_emplace(sender.peer, Now()).first->second;
  if (Now() - first < std::min(config_.suspicion, config_.failure_timeout)) return true;
  const std::vector<Node*> alive = members_.Alive(join.role);
  return std::any_of(alive.begin(), alive.end(), [&](const Node* node) {
    const bool wanted =
        join.rank_wanted < 0 || node->rank == static_cast<std::uint32_t>(join.rank_wanted);
    return wanted && node->peer == 0 && node->pulse == 0 &&
           !runtime::Planted<"successor-refused-at-once">();
  });
}

void Scheduler::Impl::JoinAgain(Node* node, const Sender& sender, const proto::Join& join) {
  if (join.role != node->role || sender.identity.role != node->role) {
    OutOfTurn(sender, "joins again in another role");
    Refuse(sender,
           absl::InvalidArgumentError(absl::StrCat("it has joined as ", node->Name(), " already")));
  } else if (!node->alive() && !runtime::Planted<"dead-join-again">()) {
    Refuse(sender,
           absl::AbortedError(absl::StrCat(node->Name(), " is ", Name(node->state), ": ",
                                           node->gone_because, "; only a new process can join")));
  } else {
    node->peer = sender.peer;
    if (moved_ != nullptr) moved_->Forget(node->id);
    Welcome(*node);
    publisher_.OnRejoin(*node, Now());
    if (!running()) SendTo(*node, proto::Shutdown{ending_->word()});
  }
}

void Scheduler::Impl::Refuse(const Sender& sender, absl::Status why) {
  LogProtocolError(++protocol_errors_.joins_refused,
                   absl::StrCat("a ", Name(sender.identity.role), " is refused: ", why.message()),
                   sender.peer);
  SendTo(sender.peer, proto::Refused{std::move(why)});
}

// It asks again until its deadline, and can say then what it waited for.
void Scheduler::Impl::NotYet(const Sender& sender, absl::Status why) {
  SendTo(sender.peer, proto::Refused{std::move(why)});
}

void Scheduler::Impl::Welcome(const Node& node) {
  proto::Welcome welcome;
  welcome.node = node.id;
  welcome.rank = node.role == Role::kReader ? 0 : node.rank;
  welcome.cluster = identity_.cluster;
  welcome.num_servers = config_.num_servers;
  welcome.num_workers = config_.num_workers;
  welcome.heartbeat_interval_ms = Milliseconds(config_.heartbeat_interval);
  welcome.failure_timeout_ms = Milliseconds(config_.failure_timeout);
  welcome.block_bytes = config_.block_bytes;
  welcome.replication = config_.replication;
  welcome.clock = restoration_.state().clock;
  SendTo(node, welcome);
}

void Scheduler::Impl::On(const Sender& sender, const proto::Heartbeat& beat) {
  Node* node = sender.node;
  if (node == nullptr && sender.identity.role == Role::kReader) {
    // One that was forgotten: it connects, and joins, again.
    van_->Disconnect(sender.peer, absl::UnavailableError("this reader has to join again"));
  } else if (node == nullptr || beat.node != node->id || beat.incarnation != node->incarnation) {
    OutOfTurn(sender, "a Heartbeat of nobody that has joined");
  } else if (node->state == Node::State::kDead) {
    proto::NodeDown down;
    down.node = node->id;
    down.role = node->role;
    down.rank = node->rank;
    down.incarnation = node->incarnation;
    down.reason = node->gone_because;
    down.epoch = maps_.newest()->epoch;
    if (!runtime::Planted<"dead-hear-nothing">()) SendTo(sender.peer, down);
  } else {
    node->uptime = absl::Milliseconds(std::min(beat.uptime_ms, kUptimeMsMax));
    node->uptime_told = Now();
    node->resident_bytes = beat.resident_bytes;
    van::Message raw;
    raw.header = proto::Encode(proto::HeartbeatAck{beat.number});
    SendNow(sender.peer, std::move(raw), "HeartbeatAck");
    // A server that was drained may not have heard that it can go.
    if (node->role == Role::kServer && !node->alive() &&
        !runtime::Planted<"drained-not-told-again">())
      SendTo(*node, proto::Shutdown{});
  }
}

void Scheduler::Impl::On(const Sender& sender, const proto::MapAck& ack) {
  if (sender.node == nullptr || !sender.node->alive()) {
    OutOfTurn(sender, "a MapAck of nobody that has joined");
  } else if (ack.version == 0 && !members_.complete()) {
    SendMap(*sender.node, *maps_.newest());  // it wants to say whom it waits for
  } else if (sender.node->role == Role::kReader) {
    // It is no member: what it says decides nothing.
    publisher_.OnAck(*sender.node, std::min(ack.version, maps_.newest()->version), Now());
  } else if (recovered() && ack.version > maps_.newest()->version &&
             !runtime::Planted<"old-copy-goes-on">()) {
    EndAsOutdated(absl::StrCat(sender.node->FullName(), " has version ", ack.version,
                               " of the cluster's map, and the newest one here is ",
                               maps_.newest()->version));
  } else {
    state_is_newest_ = state_is_newest_ || ack.version == maps_.newest()->version ||
                       runtime::Planted<"any-map-proves-the-newest">();
    publisher_.OnAck(*sender.node, ack.version, Now());
    if (sender.node->role == Role::kWorker && ack.version <= maps_.newest()->version) {
      switches_.OnAck(sender.node->id, ack.version, ack.clock);
      table_changes_.OnAck(sender.node->id, ack.version, ack.clock);
    }
    if (prepared_.erase(sender.node->id) > 0) OnPrepared(sender.node->id);
    if (sender.node->role != Role::kServer || !publisher_.ServersHaveIt()) return;
    LoadIfPrepared();
    FinishRenewals();
    PlanSoon();
  }
}

void Scheduler::Impl::On(const Sender& sender, const proto::Leave& leave) {
  Node* node = sender.node;
  if (node != nullptr && node->role == Role::kReader) {
    SendTo(sender.peer, proto::LeaveAck{});
    return ForgetReader(*node, "it left");
  }
  const bool leaves = node != nullptr && node->alive();
  if (leaves && running()) {
    node->peer = sender.peer;
    Retire(node, Node::State::kLeft, leave.reason.empty() ? "it left" : leave.reason);
  }
  SendTo(sender.peer, proto::LeaveAck{});
  if (leaves && node->alive()) {  // the cluster is over
    ending_->Gone(node->id);
    FinishIfAllGone();
  }
}

// A member of that role, alive; otherwise the message is none of its business.
bool Scheduler::Impl::IsMember(const Sender& sender, Role role) {
  const Node* node = sender.node;
  if (node != nullptr && node->alive() && node->role == role) return true;
  OutOfTurn(sender, absl::StrCat("what only a member says as a ", Name(role), ", from a ",
                                 Name(sender.identity.role)));
  return false;
}

// ---- barriers, tables, status ----

void Scheduler::Impl::On(const Sender& sender, const proto::BarrierEnter& enter) {
  if (!IsMember(sender, Role::kWorker)) return;
  const Node& worker = *sender.node;
  barriers_.Enter({.rank = worker.rank, .late = worker.late ? worker.incarnation : 0}, enter,
                  Now());
  ArmBarrierTimer();
}

// Tables are for complete clusters: they are installed on every server.
bool Scheduler::Impl::IsComplete(const Node& worker, std::uint64_t request) {
  const absl::Status ready = Ready();
  if (ready.ok()) return true;
  proto::TableReply reply;
  reply.request = request;
  reply.result = ready;
  SendTo(worker, reply);
  return false;
}

void Scheduler::Impl::On(const Sender& sender, const proto::CreateTable& create) {
  if (!IsMember(sender, Role::kWorker) || !IsComplete(*sender.node, create.request)) return;
  if (!Renews(*sender.node, create)) catalogue_.Create(sender.node->id, create, Now());
}

void Scheduler::Impl::On(const Sender& sender, const proto::OpenTable& open) {
  if (!MayOpenTables(sender) || !IsComplete(*sender.node, open.request)) return;
  if (sender.node->role == Role::kWorker) {
    if (IsRenewed(open.name)) return;  // it asks again
    catalogue_.Touch(open.name);
  }
  catalogue_.Open(sender.node->id, open);
}

void Scheduler::Impl::On(const Sender& sender, const proto::InstallTableReply& reply) {
  if (!IsMember(sender, Role::kServer)) return;
  if (late_servers_.OnInstalled(sender.node->id, reply)) return;
  if (table_changes_.OnInstalled(sender.node->id, reply)) return;
  catalogue_.OnInstalled(sender.node->id, reply);
}

void Scheduler::Impl::On(const Sender& sender, const proto::StatusRequest& request) {
  van::Message raw;
  raw.header = proto::Encode(proto::StatusReply{request.request});
  raw.payload.push_back(runtime::Buffer::CopyOf(StatusJson()));
  SendNow(sender.peer, std::move(raw), "StatusReply");
}

}  // namespace leeway::scheduler
