#include "scheduler/control/dispatcher.h"

#include <algorithm>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "scheduler/control/cluster_end.h"
#include "scheduler/control/member_service.h"
#include "scheduler/control/recovery.h"

namespace leeway::scheduler {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

// ---- connections ----

void Dispatcher::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  if (s_->recovery->OnPeerUp(peer)) return;
  peers_[peer] = identity;
  // After a restart of the scheduler, or a cut, many come back at once.
  if (const Node* const node = s_->member_service->NodeOf(identity); IsOf(identity, node)) {
    Receive(peer, *node);
  }
}

bool Dispatcher::IsOf(const van::Identity& identity, const Node* node) const {
  return node != nullptr && node->role == identity.role && node->alive();
}

// A member is no guest. A reader stays one: the scheduler does little for it.
void Dispatcher::Receive(van::PeerId peer, const Node& node) {
  van::Van* const van = s_->sender->van();
  node.role == Role::kReader ? van->KeepGuest(peer) : van->Admit(peer);
}

std::string Dispatcher::NameOf(van::PeerId /*peer*/, const van::Identity& identity) const {
  const Node* node = s_->members->FindIncarnation(identity.incarnation);
  return node == nullptr ? "" : node->Name();
}

void Dispatcher::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  if (s_->recovery->OnPeerDown(peer)) return;
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Node* const node = s_->member_service->NodeOf(found->second);
  peers_.erase(found);
  s_->member_service->OnPeerDown(peer, node, why);
}

void Dispatcher::OnMessage(van::PeerId peer, van::Message raw) {
  const auto identity = peers_.find(peer);
  if (identity == peers_.end() || s_->end->over()) return;
  absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (!message.ok()) {
    s_->errors->Note(ProtocolErrors::Kind::kMalformed, message.status().message(), peer);
    s_->sender->van()->Disconnect(peer, message.status());
    return;
  }
  const Role role = identity->second.role;
  // A message of a node that is new counts, too: the scheduler is not cut off then.
  if (role == Role::kServer || role == Role::kWorker) s_->liveness->ExpectReturn(false);
  Sender sender{peer, identity->second, s_->member_service->NodeOf(identity->second)};
  if (sender.node != nullptr && sender.node->role != sender.identity.role) sender.node = nullptr;
  if (sender.node != nullptr && sender.node->alive()) {
    Receive(peer, *sender.node);
    s_->liveness->Heard(sender.node);
    // On a new connection the messages that waited to be sent come before Join, and are answered
    // as well.
    const bool beats = std::holds_alternative<proto::Heartbeat>(*message);
    if (sender.node->peer == 0 && !beats) sender.node->peer = peer;
    if (beats) sender.node->pulse = peer;
  }
  Handle(sender, *message);
}

void Dispatcher::Forbidden(const Sender& sender, absl::string_view message) {
  const absl::Status why = absl::InvalidArgumentError(
      absl::StrCat("a ", message, " is nothing one says to a scheduler"));
  s_->errors->Note(ProtocolErrors::Kind::kForbidden, why.message(), sender.peer);
  s_->sender->van()->Disconnect(sender.peer, why);
}

void Dispatcher::OutOfTurn(const Sender& sender, absl::string_view what) {
  s_->errors->Note(ProtocolErrors::Kind::kOutOfTurn, what, sender.peer);
}

bool Dispatcher::IsMember(const Sender& sender, Role role) {
  const Node* node = sender.node;
  if (node != nullptr && node->alive() && node->role == role) return true;
  OutOfTurn(sender, absl::StrCat("what only a member says as a ", Name(role), ", from a ",
                                 Name(sender.identity.role)));
  return false;
}

void Dispatcher::Handle(const Sender& sender, const proto::AnyMessage& message) {
  const auto from_worker = [&] { return IsMember(sender, Role::kWorker); };
  const auto from_server = [&] { return IsMember(sender, Role::kServer); };
  const Node* const node = sender.node;
  std::visit(
      Overloaded{
          [&](const proto::Join& join) { s_->member_service->OnJoin(sender, join); },
          [&](const proto::Heartbeat& beat) { s_->member_service->OnHeartbeat(sender, beat); },
          [&](const proto::Leave& leave) { s_->member_service->OnLeave(sender, leave); },
          [&](const proto::MapAck& ack) { OnMapAck(sender, ack); },
          [&](const proto::StatusRequest& request) { Answer(sender, request); },
          [&](const proto::Admin& admin) {
            s_->admin->OnAdmin(sender.peer, sender.identity.incarnation, admin);
          },
          [&](const proto::BarrierEnter& enter) {
            if (from_worker()) s_->barriers->Enter(*node, enter);
          },
          [&](const proto::CreateTable& create) {
            if (from_worker()) s_->tables->OnCreate(*node, create);
          },
          [&](const proto::OpenTable& open) {
            const bool is_reader = node != nullptr && node->role == Role::kReader;
            if (is_reader || from_worker()) s_->tables->OnOpen(*node, open);
          },
          [&](const proto::CodecReport& report) {
            if (from_worker()) s_->codecs->OnReport(node->id, report);
          },
          [&](const proto::InstallTableReply& reply) {
            if (from_server()) s_->tables->OnInstalled(node->id, reply);
          },
          [&](const proto::ReplicaReady& ready) {
            if (from_server()) s_->chains->OnReady(*node, ready);
          },
          [&](const proto::LoadReport& report) {
            if (from_server()) s_->chains->OnLoads(*node, report);
          },
          [&](const proto::LinkReport& report) {
            if (from_server()) s_->chains->links()->OnReport(*node, report);
          },
          [&](const proto::CheckpointPrepared& prepared) {
            if (from_server()) s_->checkpoints->OnPrepared(node->id, prepared);
          },
          [&](const proto::CheckpointWritten& written) {
            if (from_server()) s_->checkpoints->OnWritten(node->id, written);
          },
          [&](const proto::PublishReply& reply) {
            if (from_server()) s_->publications->OnReply(node->id, reply);
          },
          [&](const proto::RestoreShardsReply& reply) {
            if (from_server()) s_->restoration->OnLoaded(node->id, reply);
          },
          [&](const auto&) { Forbidden(sender, proto::NameOf(message)); },
      },
      message);
}

void Dispatcher::OnMapAck(const Sender& sender, const proto::MapAck& ack) {
  if (sender.node == nullptr || !sender.node->alive()) {
    return OutOfTurn(sender, "a MapAck of nobody that has joined");
  }
  const Node& node = *sender.node;
  const std::uint64_t newest = s_->maps->newest()->version;
  MapPublisher* const publisher = s_->maps->publisher();
  if (ack.version == 0 && !s_->members->complete()) {
    // The node asks for the map to name the members that are missing.
    return s_->sender->SendMap(node, *s_->maps->newest());
  }
  if (node.role == Role::kReader) {
    // A reader is no member: its acknowledgement decides nothing.
    return publisher->OnAck(node, std::min(ack.version, newest), s_->Now());
  }
  if (!s_->recovery->CheckMapOf(node, ack.version)) return;
  publisher->OnAck(node, ack.version, s_->Now());
  if (node.role == Role::kWorker && ack.version <= newest) {
    s_->codecs->switches()->OnAck(node.id, ack.version, ack.clock, ack.oldest);
    s_->tables->table_changes()->OnAck(node.id, ack.version, ack.clock, ack.oldest);
  }
  if (s_->chains->WaitedForMap(node.id)) s_->member_service->ServerPrepared(node.id);
  if (node.role != Role::kServer || !publisher->ServersHaveIt()) return;
  s_->restoration->LoadIfPrepared();
  s_->tables->FinishRenewals();
  s_->chains->PlanSoon();
}

void Dispatcher::Answer(const Sender& sender, const proto::StatusRequest& request) {
  van::Message raw;
  raw.header = proto::Encode(proto::StatusReply{request.request});
  raw.payload.push_back(runtime::Buffer::CopyOf(status_()));
  s_->sender->SendNow(sender.peer, std::move(raw), "StatusReply");
}

}  // namespace leeway::scheduler
