// The part of SessionVan that opens and ends its connections: dialling, accepting, hellos and
// farewells.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/loop/backoff.h"
#include "van/address/tcp_address.h"
#include "van/session/hello.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

constexpr absl::Duration kDialPauseMin = absl::Milliseconds(5);
constexpr absl::Duration kDialPauseMax = absl::Milliseconds(500);
constexpr absl::Duration kHelloPauseMin = absl::Milliseconds(250);
constexpr absl::Duration kHelloPauseMax = absl::Seconds(2);

}  // namespace

void SessionVan::Retry(PeerId id) {
  Peer& peer = *Find(id);
  switch (peer.stage) {
    case Stage::kDialling:
      return DialNow(peer);
    case Stage::kGreeting:
      return SayHello(peer);
    case Stage::kUp:
      return AskAgain(peer);
  }
}

void SessionVan::RetryLater(Peer& peer, absl::Duration max) {
  peer.retry_delay = runtime::NextPause(peer.retry_delay, max);
  peer.retry.SetAfter(runtime::Jittered(peer.retry_delay, loop_));
}

void SessionVan::OnDeadline(PeerId id) {
  Peer& peer = *Find(id);
  if (peer.dialled) return OnConnectTimeout(peer);
  Ban(id,
      absl::DeadlineExceededError(absl::StrCat("connected but said no hello within ",
                                               runtime::FormatDuration(limits_.hello_timeout))));
}

// ---- dialling ----

absl::StatusOr<PeerId> SessionVan::Connect(absl::string_view address, absl::Duration timeout) {
  LEEWAY_ASSIGN_OR_RETURN(const ConnId conn, transport_->Dial(address));
  const PeerId id = next_peer_++;
  Peer& peer = peers_.try_emplace(id, this, id).first->second;
  peer.dialled = true;
  peer.address = std::string(address);
  peer.conn = conn;
  peer.timeout = timeout;
  peer.retry_delay = kDialPauseMin;
  by_conn_[conn] = id;
  peer.deadline.SetAfter(timeout);
  peer.retry.SetAfter(kDialAttemptMax);
  return id;
}

void SessionVan::DialNow(Peer& peer) {
  NoteIfTaken(peer);
  if (peer.conn != 0) {  // the previous attempt has neither succeeded nor failed
    by_conn_.erase(peer.conn);
    transport_->Close(std::exchange(peer.conn, 0));
  }
  absl::StatusOr<ConnId> conn = transport_->Dial(peer.address);
  if (!conn.ok()) return DialLater(peer, conn.status());
  peer.stage = Stage::kDialling;
  peer.conn = *conn;
  by_conn_[*conn] = peer.id;
  peer.retry.SetAfter(kDialAttemptMax);
}

void SessionVan::DialLater(Peer& peer, absl::Status why) {
  peer.stage = Stage::kDialling;
  peer.conn = 0;
  peer.last_failure = std::move(why);
  RetryLater(peer, kDialPauseMax);
}

// The other end may have taken the connection of the attempt under way, and said nothing.
void SessionVan::NoteIfTaken(Peer& peer) {
  if (peer.conn == 0 || !transport_->taken(peer.conn)) return;
  peer.last_failure = absl::UnavailableError(kNoAnswer);
}

void SessionVan::OnConnectTimeout(Peer& peer) {
  NoteIfTaken(peer);
  Drop(peer.id, NotReached(peer), Farewell::kNone);
}

// Why a dial has failed, and what to do. RESOURCE_EXHAUSTED: for want of something here.
absl::Status SessionVan::NotReached(const Peer& peer) {
  const absl::Status& last = peer.last_failure;
  const std::string within = absl::StrCat(" within ", runtime::FormatDuration(peer.timeout));
  constexpr absl::string_view kAdvice =
      "; check that it runs there, or raise LEEWAY_CONNECT_TIMEOUT_MS";
  if (peer.stage == Stage::kGreeting || last.message() == kNoAnswer) {
    return WithReason(absl::DeadlineExceededError(absl::StrCat(peer.address, ": no answer", within,
                                                               ": ", kNoAnswer, kAdvice)),
                      kNoAnswer);
  }
  if (absl::IsResourceExhausted(last)) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(peer.address, ": not dialled",
                                                                within, ": ", last.message())),
                      last.message());
  }
  const std::string why = last.ok() ? "" : absl::StrCat(" (last: ", last.message(), ")");
  return WithReason(absl::DeadlineExceededError(
                        absl::StrCat(peer.address, ": not reached", within, why, kAdvice)),
                    last.ok() ? "no answer" : last.message());
}

void SessionVan::OnOpened(ConnId conn) {
  const auto found = by_conn_.find(conn);
  if (found == by_conn_.end()) return;
  Peer& peer = *Find(found->second);
  peer.stage = Stage::kGreeting;
  // Only the dialling side uses the limits for the same host: it sends work that the peer does in
  // its own time, whereas the peer's answers are small, or are taken as fast as they come.
  peer.flow.SetSameHost(transport_->same_host(conn));
  peer.hello = proto::Encode(OwnHello());
  SendSession(peer, peer.hello);
  peer.retry.SetAfter(kHelloPauseMin);
}

// On a lossy transport no envelopes are used, so that each message can be lost by itself: the
// simulator's faults would otherwise never come between two messages of one task.
proto::Hello SessionVan::OwnHello() const {
  proto::Hello hello = HelloFrom(identity_);
  if (!transport_->lossy()) hello.capabilities |= proto::kEnvelopes;
  return hello;
}

void SessionVan::SayHello(Peer& peer) {
  SendSession(peer, peer.hello);
  peer.retry_delay = std::max(peer.retry_delay, kHelloPauseMin);
  RetryLater(peer, kHelloPauseMax);
}

// ---- accepting ----

void SessionVan::OnAccepted(ConnId conn) {
  if (accepted_ >= limits_.peers_max) {
    log_.Warning("refused", absl::StrCat("refusing a connection from ", transport_->AddressOf(conn),
                                         ": ", limits_.peers_max, " are open (peers_max)"));
    transport_->Close(conn);
    return;
  }
  const bool guest = !transport_->own_user(conn);
  const bool room = counted_ < limits_.guests_max;
  if (guest && !room && !MakeRoomForGuest()) {
    transport_->Close(conn);
    return;
  }
  ++accepted_;
  const PeerId id = next_peer_++;
  Peer& peer = peers_.try_emplace(id, this, id).first->second;
  peer.address = transport_->AddressOf(conn);
  peer.stage = Stage::kGreeting;
  peer.conn = conn;
  peer.guest = peer.counted = guest;
  peer.heard = loop_->Now();
  counted_ += guest;
  by_conn_[conn] = id;
  peer.deadline.SetAfter(limits_.hello_timeout);
}

void SessionVan::OnHandshakeFailed(const std::string& address, const absl::Status& why) {
  const std::uint64_t count = ++counters_.handshakes_failed;
  log_.Warning("handshake", absl::StrCat("dropping ", address, ": ", std::string(why.message()),
                                         " (", count, " failed handshakes)"));
}

// ---- the end ----

void SessionVan::OnClosed(ConnId conn, const absl::Status& why) {
  const auto found = by_conn_.find(conn);
  if (found == by_conn_.end()) return;
  const PeerId id = found->second;
  by_conn_.erase(found);
  Peer& peer = *Find(id);
  peer.conn = 0;
  Lose(peer, absl::IsDataLoss(why) ? Damaged(peer.address) : why, Farewell::kNone);
}

// A connection with damaged bytes is closed, but its peer is not at fault, so it is not banned and
// may connect again. Nothing is lost that a broken connection would not lose.
absl::Status SessionVan::Damaged(const std::string& address) {
  const std::uint64_t count = ++counters_.checksums_failed;
  log_.Warning("checksum",
               absl::StrCat("dropping the connection to ", address,
                            ": a checksum does not match: bytes change on the way, in a network "
                            "card, a switch or memory (",
                            count, " so far, checksums_failed in the status)"));
  return absl::UnavailableError("a checksum did not match: bytes change on the way");
}

void SessionVan::Lose(Peer& peer, const absl::Status& why, Farewell farewell) {
  if (!peer.dialled || peer.stage == Stage::kUp) {
    return Drop(peer.id, runtime::Prefixed(peer.address, why), farewell);
  }
  if (peer.conn != 0) {
    by_conn_.erase(peer.conn);
    transport_->Close(peer.conn);
  }
  DialLater(peer, why);
}

void SessionVan::Ban(PeerId id, absl::Status why) {
  ++counters_.offenders_dropped;
  const std::string address = Find(id)->address;
  const std::uint64_t count = counters_.offenders_dropped;
  log_.Warning("offender", absl::StrCat("dropping ", address, ": ", std::string(why.message()),
                                        " (offender ", count, ")"));
  Drop(id, runtime::Prefixed(address, why), Farewell::kReject);
}

void SessionVan::BanMalformed(PeerId id, const absl::Status& why) {
  ++counters_.malformed_messages;
  Ban(id, why);
}

void SessionVan::Drop(PeerId id, absl::Status why, Farewell farewell) {
  auto node = peers_.extract(id);
  Peer& peer = node.mapped();
  if (lifetime_.alive()) EndStall(peer, why);
  posted_->DropPeer(id);
  peer.deadline.Clear();
  peer.retry.Clear();
  const bool was_up = peer.stage == Stage::kUp;
  if (farewell != Farewell::kNone) SendEnvelope(peer);
  if (was_up && farewell == Farewell::kGoodbye) {
    // Beyond the window: the peer has to take these messages anyway, and they cannot be sent later.
    for (Queued& item : std::exchange(peer.queue, {})) Transmit(peer, std::move(item));
    SendSession(peer, proto::Encode(proto::Goodbye()));
  } else if (peer.dialled && peer.stage == Stage::kGreeting && !transport_->lossy()) {
    // The peer may have accepted our hello already.
    SendSession(peer, proto::Encode(proto::Goodbye()));
  }
  if (peer.stage != Stage::kDialling && farewell == Farewell::kReject) {
    SendSession(peer, proto::Encode(proto::Reject{why}));
  }
  if (peer.conn != 0) {
    by_conn_.erase(peer.conn);
    transport_->Close(peer.conn);
  }
  limits_.send_queue->Release(peer.queued_bytes);
  for (Queued& item : peer.queue) {
    if (!item.done) continue;
    absl::Status status = why.ok() ? absl::UnavailableError(absl::StrCat(
                                         peer.address, ": the connection was closed normally"))
                                   : why;
    Tell({std::move(item.done), 0, std::move(status)});
  }
  if (!peer.dialled) --accepted_;
  counted_ -= peer.counted;
  if (peer.dialled || was_up) Tell({nullptr, id, std::move(why)});
}

// ---- session messages ----

void SessionVan::OnSession(Peer& peer, const Arrival& arrival) {
  const auto header = arrival.head.subspan(kPrefixBytes);
  const absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(Buffer::CopyOf(header.data(), header.size()), {});
  if (!message.ok()) return BanMalformed(peer.id, message.status());
  if (const auto* hello = std::get_if<proto::Hello>(&*message)) return OnHello(peer, *hello);
  if (const auto* reject = std::get_if<proto::Reject>(&*message)) {
    absl::Status why = reject->why.ok() ? absl::UnavailableError("no reason given") : reject->why;
    why = absl::Status(
        why.code(),
        absl::StrCat(peer.address, " refused the connection: ", std::string(why.message())));
    log_.Warning("rejected", std::string(why.message()));
    return Drop(peer.id, std::move(why), Farewell::kNone);
  }
  if (std::holds_alternative<proto::Goodbye>(*message) && peer.stage == Stage::kUp) {
    return Drop(peer.id, absl::OkStatus(), Farewell::kNone);
  }
  BanMalformed(peer.id,
               absl::FailedPreconditionError(absl::StrCat(
                   "sent a ", std::string(proto::NameOf(*message)), " where a hello was due")));
}

void SessionVan::OnHello(Peer& peer, const proto::Hello& theirs) {
  if (peer.theirs.has_value()) {
    if (!SameHello(*peer.theirs, theirs)) {
      return BanMalformed(peer.id, absl::FailedPreconditionError("said a second, different hello"));
    }
    if (!peer.dialled) SendSession(peer, peer.hello);  // our answer may have been lost
    return;
  }
  proto::Hello mine = OwnHello();
  if (const absl::Status status = CheckVersions(mine, theirs); !status.ok()) {
    ++counters_.refused_versions;
    log_.Warning("version",
                 absl::StrCat("refusing ", peer.address, ": ", std::string(status.message())));
    return Drop(peer.id, runtime::Prefixed(peer.address, status), Farewell::kReject);
  }
  if (const absl::Status status = CheckCluster(identity_, theirs); !status.ok()) {
    return Ban(peer.id, status);
  }
  if (!peer.dialled) {
    // The cluster's id is told to those that know it.
    if (theirs.cluster != identity_.cluster) {
      mine.cluster = 0;
    }
    peer.hello = proto::Encode(mine);
    SendSession(peer, peer.hello);
  }
  peer.theirs = theirs;
  peer.takes_envelopes = (theirs.capabilities & proto::kEnvelopes) != 0;
  peer.gains_from_envelopes = transport_->gains_from_envelopes(peer.conn);
  peer.stage = Stage::kUp;
  peer.deadline.Clear();
  peer.retry.Clear();
  if (!transport_->lossy()) WatchForStalls();
  const PeerId id = peer.id;
  const runtime::Lifetime::Watch alive = lifetime_.watch();
  handler_->OnPeerUp(id, IdentityFrom(theirs));
  if (!alive) return;
  if (Peer* still = Find(id); still != nullptr) TransmitQueue(*still);
}

}  // namespace leeway::van
