#include "scheduler/control/member_service.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "node/membership.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "scheduler/control/cluster_end.h"
#include "scheduler/control/recovery.h"

namespace leeway::scheduler {
namespace {

// A thousand years: what a node says of itself is shown, and must not overflow.
constexpr std::uint64_t kUptimeMsMax = 1000ull * 365 * 24 * 3600 * 1000;

std::uint32_t WholeMilliseconds(absl::Duration duration) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      absl::ToInt64Milliseconds(duration), 1, std::numeric_limits<std::uint32_t>::max()));
}

// The address of a node in messages to people.
std::string AddressFor(const proto::Join& join, const std::string& peer_address) {
  if (!join.endpoints.empty()) return join.endpoints.front();
  return join.host.empty() ? peer_address : join.host;
}

proto::NodeDown DownOf(const Node& node, std::uint64_t epoch) {
  proto::NodeDown down;
  down.node = node.id;
  down.role = node.role;
  down.rank = node.rank;
  down.incarnation = node.incarnation;
  down.left = node.state == Node::State::kLeft;
  down.reason = node.gone_because;
  down.epoch = epoch;
  return down;
}

}  // namespace

MemberService::MemberService(const Services* services)
    : s_(services), nobody_timer_(services->loop, [this] { NobodyCame(); }) {}

Node* MemberService::NodeOf(const van::Identity& identity) {
  return identity.role == Role::kReader
             ? s_->members->readers().FindIncarnation(identity.incarnation)
             : s_->members->FindIncarnation(identity.incarnation);
}

// ---- joining ----

void MemberService::OnJoin(const Sender& sender, const proto::Join& join) {
  const std::uint64_t cluster = sender.identity.cluster;
  if (cluster != 0 && cluster != s_->identity->cluster) {
    Refuse(sender, absl::FailedPreconditionError(
                       "it belongs to another cluster; this scheduler was started after it"));
    return;
  }
  if (Node* const known = NodeOf(sender.identity); known != nullptr) {
    return JoinAgain(known, sender, join);
  }
  if (!s_->end->running()) {
    return Refuse(sender, absl::FailedPreconditionError("the cluster is over"));
  }
  if (join.role == Role::kReader) return ReaderJoins(sender, join);
  if (s_->members->IsForgotten(sender.identity.node)) {
    return Refuse(sender,
                  absl::AbortedError("it left the cluster, or was given up, long ago: start "
                                     "it anew"));
  }
  if (s_->recovery->IsOfUnknownPast(sender)) return;
  // An elastic node joins a complete cluster.
  if (join.elastic) {
    if (const absl::Status ready = s_->life->Ready(); !ready.ok()) return NotYet(sender, ready);
  }
  s_->members->ServersHave(s_->maps->publisher()->VersionOfAllServers());
  const absl::StatusOr<Node*> admitted = s_->members->Admit(join, sender.identity);
  if (absl::IsUnavailable(admitted.status())) return NotYet(sender, admitted.status());
  if (!admitted.ok()) {
    if (!MayBecomeFree(sender, join)) Refuse(sender, admitted.status());
    return;
  }
  turned_away_.erase(sender.peer);
  Node* const node = *admitted;
  van::Van* const van = s_->sender->van();
  van->Admit(sender.peer);
  node->peer = sender.peer;
  node->address = AddressFor(join, van->AddressOf(sender.peer));
  s_->liveness->Heard(node);
  runtime::LogInfo(node->FullName(), " has joined");
  Welcome(*node);
  Joined(node);
}

void MemberService::Joined(Node* node) {
  const bool was_complete = s_->members->complete();
  if (!s_->members->UpdateComplete()) {
    PutOffNobodyCame();
  } else if (!was_complete) {
    StopWaiting();
    s_->chains->Deal();
    s_->restoration->LoadIfWanted();
  }
  s_->maps->Change();
  if (s_->members->complete() && !was_complete) {
    runtime::LogInfo("the cluster is complete: ", Missing());
  } else if (node->late && node->role == Role::kServer) {
    s_->tables->ServerCame(node->id);
  } else if (node->late) {
    s_->end->WorkerCame();
  }
  s_->maps->PublishSoon();
}

void MemberService::ServerPrepared(std::uint32_t id) {
  const Node* const server = s_->members->Find(id);
  if (server == nullptr || !server->alive()) return;
  if (s_->restoration->loading()) return s_->restoration->ServerPrepared(id);
  s_->chains->ServerPrepared(*server);
}

// True if a member that has such a rank has lost its connections, and may be found dead soon. A
// process started in its stead asks again until that is known. The scheduler may learn only a
// little later that connections have broken.
bool MemberService::MayBecomeFree(const Sender& sender, const proto::Join& join) {
  if (!s_->members->complete() || (join.role != Role::kServer && join.role != Role::kWorker)) {
    return false;
  }
  const absl::Time first = turned_away_.try_emplace(sender.peer, s_->Now()).first->second;
  if (s_->Now() - first < std::min(s_->config->suspicion, s_->config->failure_timeout)) return true;
  const std::vector<Node*> alive = s_->members->Alive(join.role);
  return std::any_of(alive.begin(), alive.end(), [&](const Node* node) {
    const bool wanted =
        join.rank_wanted < 0 || node->rank == static_cast<std::uint32_t>(join.rank_wanted);
    return wanted && node->peer == 0 && node->pulse == 0;
  });
}

// On a new connection a member joins again.
void MemberService::JoinAgain(Node* node, const Sender& sender, const proto::Join& join) {
  if (join.role != node->role || sender.identity.role != node->role) {
    s_->errors->Note(ProtocolErrors::Kind::kOutOfTurn, "joins again in another role", sender.peer);
    Refuse(sender,
           absl::InvalidArgumentError(absl::StrCat("it has joined as ", node->Name(), " already")));
  } else if (!node->alive()) {
    s_->recovery->CameBack(node->id);
    Refuse(sender,
           absl::AbortedError(absl::StrCat(node->Name(), " is ", Name(node->state), ": ",
                                           node->gone_because, "; only a new process can join")));
  } else {
    node->peer = sender.peer;
    s_->recovery->CameBack(node->id);
    Welcome(*node);
    s_->maps->publisher()->OnRejoin(*node, s_->Now());
    if (!s_->end->running()) s_->sender->SendTo(*node, proto::Shutdown{s_->end->word()});
  }
}

void MemberService::Refuse(const Sender& sender, absl::Status why) {
  s_->errors->Note(ProtocolErrors::Kind::kJoinRefused,
                   absl::StrCat("a ", Name(sender.identity.role), " is refused: ", why.message()),
                   sender.peer);
  s_->sender->SendToPeer(sender.peer, proto::Refused{std::move(why)});
}

// The node asks again until its deadline, and names the reason then.
void MemberService::NotYet(const Sender& sender, absl::Status why) {
  s_->sender->SendToPeer(sender.peer, proto::Refused{std::move(why)});
}

void MemberService::Welcome(const Node& node) {
  const Config& config = *s_->config;
  proto::Welcome welcome;
  welcome.node = node.id;
  welcome.rank = node.role == Role::kReader ? 0 : node.rank;
  welcome.cluster = s_->identity->cluster;
  welcome.num_servers = config.num_servers;
  welcome.num_workers = config.num_workers;
  welcome.heartbeat_interval_ms = WholeMilliseconds(config.heartbeat_interval);
  welcome.failure_timeout_ms = WholeMilliseconds(config.failure_timeout);
  welcome.block_bytes = config.block_bytes;
  welcome.replication = config.replication;
  welcome.clock = s_->restoration->state().clock;
  s_->sender->SendTo(node, welcome);
  for (const auto& [name, model] : s_->publications->models()) s_->sender->SendTo(node, model);
}

// ---- living ----

void MemberService::OnHeartbeat(const Sender& sender, const proto::Heartbeat& beat) {
  Node* const node = sender.node;
  if (node == nullptr && sender.identity.role == Role::kReader) {
    // A reader that was forgotten connects and joins again.
    s_->sender->van()->Disconnect(sender.peer,
                                  absl::UnavailableError("this reader has to join again"));
  } else if (node == nullptr || beat.node != node->id || beat.incarnation != node->incarnation) {
    s_->errors->Note(ProtocolErrors::Kind::kOutOfTurn, "a Heartbeat of nobody that has joined",
                     sender.peer);
  } else if (node->state == Node::State::kDead) {
    s_->sender->SendToPeer(sender.peer, DownOf(*node, s_->maps->newest()->epoch));
  } else {
    node->uptime = absl::Milliseconds(std::min(beat.uptime_ms, kUptimeMsMax));
    node->uptime_told = s_->Now();
    node->resident_bytes = beat.resident_bytes;
    van::Message raw;
    raw.header = proto::Encode(proto::HeartbeatAck{beat.number});
    s_->sender->SendNow(sender.peer, std::move(raw), "HeartbeatAck");
    // A drained server may have missed its Shutdown.
    if (node->role == Role::kServer && !node->alive()) s_->sender->SendTo(*node, proto::Shutdown{});
  }
}

// A broken connection alone does not make a node dead: it may connect again.
void MemberService::OnPeerDown(van::PeerId peer, Node* node, const absl::Status& why) {
  turned_away_.erase(peer);
  if (node == nullptr || (node->peer != peer && node->pulse != peer)) return;
  const bool was_pulse = node->pulse == peer;
  (was_pulse ? node->pulse : node->peer) = 0;
  if (node->role == Role::kReader) {
    // Nobody waits for a reader: its place is free with its last connection.
    if (s_->end->running() && node->peer == 0 && node->pulse == 0) {
      ForgetReader(*node, "its connections are gone");
    }
    return;
  }
  s_->liveness->Suspect(*node);
  if (was_pulse) return;
  if (!s_->end->running() && (why.ok() || !node->alive())) s_->end->Gone(node->id);
}

// ---- leaving ----

void MemberService::OnLeave(const Sender& sender, const proto::Leave& leave) {
  Node* const node = sender.node;
  if (node != nullptr && node->role == Role::kReader) {
    s_->sender->SendToPeer(sender.peer, proto::LeaveAck{});
    return ForgetReader(*node, "it left");
  }
  const bool leaves = node != nullptr && node->alive();
  if (leaves && s_->end->running()) {
    node->peer = sender.peer;
    if (node->role == Role::kWorker) {
      s_->codecs->switches()->OnLeave(node->id, leave.clock);
      s_->tables->table_changes()->OnLeave(node->id, leave.clock);
    }
    Retire(node, Node::State::kLeft, leave.reason.empty() ? "it left" : leave.reason);
  }
  s_->sender->SendToPeer(sender.peer, proto::LeaveAck{});
  if (leaves && node->alive()) s_->end->Gone(node->id);  // the cluster is over
}

void MemberService::Retire(Node* node, Node::State state, const std::string& why) {
  s_->members->Retire(node, state, why);
  s_->liveness->Forget(node);
  const bool is_worker = node->role == Role::kWorker;
  if (is_worker) s_->tables->ClientGone(node->id);
  const bool left = state == Node::State::kLeft;
  const std::string line = absl::StrCat(node->FullName(), left ? " has left: " : " is dead: ", why);
  left ? runtime::LogInfo(line) : runtime::LogWarning(line);

  if (node->role == Role::kServer) {
    s_->tables->ServerGone(node->id);
    s_->chains->ServerGone(*node, why);
  } else {
    s_->maps->Change();
    if (left) s_->members->LeavingIsIn(node, s_->maps->newest()->version);
  }
  proto::NodeDown down = DownOf(*node, s_->maps->newest()->epoch);
  // The map alone says that a worker has left; nodes need not be told more.
  if (s_->members->complete() && !(left && is_worker)) {
    for (const Node* other : s_->members->Alive()) s_->sender->SendTo(*other, down);
  }
  if (!left) s_->sender->SendTo(*node, down);  // a node that lives all the same ends
  s_->maps->PublishSoon();
  if (is_worker) {
    s_->codecs->WorkerGone(node->id);
    s_->tables->WorkersChanged();
    s_->barriers->Gone(*node);
  }
  s_->tables->MembersChanged();
  if (node->role == Role::kServer && s_->restoration->FailIfLoading(line)) return;
  s_->end->EndIfDone(/*died=*/!left);
}

// ---- readers ----

// Readers join a complete cluster only.
void MemberService::ReaderJoins(const Sender& sender, const proto::Join& join) {
  if (const absl::Status ready = s_->life->Ready(); !ready.ok()) return NotYet(sender, ready);
  if (sender.identity.role != Role::kReader) {
    return Refuse(sender, absl::InvalidArgumentError("it joins as a reader, but its hello said "
                                                     "something else"));
  }
  const absl::StatusOr<Node*> admitted = s_->members->readers().Admit(sender.identity);
  if (!admitted.ok()) return Refuse(sender, admitted.status());
  Node* const reader = *admitted;
  van::Van* const van = s_->sender->van();
  van->KeepGuest(sender.peer);
  reader->peer = sender.peer;
  reader->address = join.host.empty() ? van->AddressOf(sender.peer) : join.host;
  s_->liveness->Heard(reader);
  runtime::LogDebug(reader->FullName(), " has joined");
  Welcome(*reader);
  s_->maps->publisher()->OnRejoin(*reader, s_->Now());
}

// A reader that lives all the same finds its connection broken and joins again.
void MemberService::OnReaderSilent(const Node& reader) {
  const van::PeerId peer = reader.peer;
  ForgetReader(reader, "it was not heard for long");
  if (peer == 0) return;
  s_->sender->van()->Disconnect(peer, absl::UnavailableError("this reader has to join again"));
}

void MemberService::ForgetReader(const Node& reader, const std::string& why) {
  runtime::LogDebug(reader.FullName(), " has gone: ", why);
  const std::uint32_t id = reader.id;
  s_->members->readers().Forget(id);
  s_->maps->publisher()->Forget(id);
  s_->tables->ClientGone(id);
}

// ---- waiting for the cluster to be complete ----

std::string MemberService::Missing() const {
  return node::DescribeMissing(*s_->maps->newest(), s_->config->num_servers,
                               s_->config->num_workers);
}

void MemberService::LogMissing() const {
  if (!s_->members->complete() && s_->end->running()) runtime::LogInfo("waiting: ", Missing());
}

void MemberService::PutOffNobodyCame() {
  nobody_timer_.Clear();
  nobody_timer_.SetBy(s_->Now() + s_->config->connect_timeout);
}

void MemberService::NobodyCame() {
  if (!s_->end->running() || s_->members->complete()) return;
  const absl::Status why = absl::DeadlineExceededError(
      absl::StrCat("the cluster is not complete, and nobody has joined for ",
                   runtime::FormatDuration(s_->config->connect_timeout),
                   " (LEEWAY_CONNECT_TIMEOUT_MS): ", Missing()));
  s_->end->End(why, why);
}

}  // namespace leeway::scheduler
