#include "ps/data/state/connections.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "ps/shard/state/answers.h"

namespace leeway::ps {
namespace {

// The token of a posted receive buffer: for an answer that holds a dense block as it is, which the
// worker may have posted its array for.
std::uint64_t ReceiveTokenFor(const proto::Reply& reply, const van::Message& out) {
  const bool plain = reply.kind == TableKind::kDense && !reply.coded && out.payload.size() == 1;
  return plain && reply.op == proto::Op::kPull ? proto::ReceiveTokenOf(reply.id) : 0;
}

}  // namespace

Connections::Connections(runtime::Loop* loop, Counters* counters)
    : counters_(counters),
      log_(loop),
      replies_(
          loop,
          [this](van::PeerId peer, const proto::AnyMessage& message, Payload payload,
                 van::SendDone done) {
            return Send(peer, message, std::move(payload), std::move(done));
          },
          [this](van::PeerId peer) { return van_->Writable(peer); },
          [this](van::PeerId peer, proto::Reply reply, const absl::Status& why) {
            OnUnsent(peer, std::move(reply), why);
          }) {}

absl::Status Connections::Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload,
                               van::SendDone done) {
  replies_.SendGathered(peer);
  van::Message out{.header = proto::Encode(message), .payload = std::move(payload)};
  if (const auto* reply = std::get_if<proto::Reply>(&message)) {
    out.receive_token = ReceiveTokenFor(*reply, out);
  }
  return van_->Send(peer, std::move(out), std::move(done));
}

void Connections::SendReply(van::PeerId peer, proto::Reply reply, Payload payload) {
  const van::Identity* const to = Find(peer);
  if (to != nullptr) {
    const bool reader = to->role == Role::kReader;
    return replies_.Add(peer, std::move(reply), std::move(payload), reader);
  }
  ++counters_->replies_unsent;
}

void Connections::OnUnsent(van::PeerId peer, proto::Reply reply, const absl::Status& why) {
  ++counters_->replies_unsent;
  if (!absl::IsInvalidArgument(why)) return;  // the peer is gone or its queue full: it asks again
  const std::string text =
      absl::StrCat("the answer does not fit into one message (", why.message(),
                   "): pull fewer keys at once or raise LEEWAY_MESSAGE_BYTES_MAX");
  // UNKNOWN, as RefusePull says it: what was pushed along has been accepted.
  reply.result = HasPush(reply.op) ? absl::UnknownError(text) : absl::OutOfRangeError(text);
  reply.keys = reply.elements = reply.version = 0;
  Send(peer, reply).IgnoreError();
}

void Connections::Refuse(const Inbound& inbound, const absl::Status& why) {
  CountRefusal(why, counters_);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  SendReply(inbound.peer, std::move(reply), {});
}

void Connections::Violation(van::PeerId peer, const absl::Status& why) {
  ++counters_->violations;
  log_.Warning("violation", absl::StrCat("dropping ", van_->AddressOf(peer), ": ", why.message(),
                                         " (", counters_->violations, " so far)"));
  van_->Disconnect(peer, why);
}

void Connections::DropOffenders() {
  for (const auto& [offender, why] : std::exchange(offenders_, {})) {
    ++counters_->malformed;
    Violation(offender, why);
  }
}

}  // namespace leeway::ps
