#include "van/session/session_van.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::van {
namespace {

constexpr absl::Duration kDialPauseMin = absl::Milliseconds(5);
constexpr absl::Duration kAskPauseMin = absl::Milliseconds(200);
constexpr absl::Duration kAskPauseMax = absl::Seconds(2);

}  // namespace

SessionVan::SessionVan(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                       Handler* handler, std::unique_ptr<Transport> transport)
    : loop_(loop),
      identity_(identity),
      limits_(limits),
      handler_(handler),
      transport_(std::move(transport)),
      log_(loop),
      stall_timer_(loop, [this] { LookForStalls(); }),
      guests_timer_(loop, [this] { ReleaseGuests(); }),
      posted_(PostedReceives::New([this](PeerId id, std::uint64_t token) {
        if (Peer* peer = Find(id); peer != nullptr) transport_->EndReceive(peer->conn, token);
      })) {
  transport_->Start(this);
}

SessionVan::~SessionVan() {
  lifetime_.End();
  posted_->Close();
  // Messages that wait for the window are sent too, because no later report can release them.
  while (!peers_.empty()) {
    Drop(peers_.begin()->first, absl::CancelledError("the van was closed"), Farewell::kGoodbye);
  }
  transport_.reset();
  for (Notice& notice : notices_) {
    if (notice.done) std::move(notice.done)(notice.status);
  }
}

absl::StatusOr<std::string> SessionVan::Listen(absl::string_view address) {
  return transport_->Listen(address);
}

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

absl::Status SessionVan::CheckSizes(const Message& message) const {
  if (message.payload.size() > limits_.payload_frames_max) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", message.payload.size(),
                                                   " payload frames; at most ",
                                                   limits_.payload_frames_max));
  }
  if (message.header.size() > proto::kHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a header of ", message.header.size(),
                                                   " bytes; at most ", proto::kHeaderBytesMax));
  }
  for (const Buffer& frame : message.payload) {
    if (frame.size() > limits_.message_bytes_max) {
      return absl::InvalidArgumentError(absl::StrCat("a payload of ", frame.size(),
                                                     " bytes; LEEWAY_MESSAGE_BYTES_MAX allows ",
                                                     limits_.message_bytes_max));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionVan::Send(PeerId id, Message message, SendDone done) {
  Peer* peer = Find(id);
  if (peer == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("peer ", id, " is not connected (any more)"));
  }
  LEEWAY_RETURN_IF_ERROR(CheckSizes(message));
  if (peer->guest && !MaySendToGuest(*peer, message.TotalBytes() + kPrefixBytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(peer->address, " does not read the replies to its requests"));
  }
  if (PutInEnvelope(*peer, message)) {
    if (done) Tell({std::move(done), 0, absl::OkStatus()});
    return absl::OkStatus();
  }
  if (!runtime::Planted<"large-overtakes-envelope">()) SendEnvelope(*peer);
  const std::uint64_t bytes = message.TotalBytes() + kPrefixBytes;
  Queued item{std::move(message), std::move(done), bytes};
  const bool next = peer->queue.empty() || runtime::Planted<"queue-overtaken">();
  if (peer->stage == Stage::kUp && next && peer->flow.MaySend(bytes)) {
    Transmit(*peer, std::move(item));
    return absl::OkStatus();
  }
  if (!limits_.send_queue->Charge(peer->queued_bytes, bytes) &&
      !runtime::Planted<"queue-unlimited">()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        peer->queued_bytes, " bytes wait to be sent to ", peer->address, " and ",
        limits_.send_queue->bytes(), " to all peers, of ", limits_.send_queue->bytes_max(),
        " that may wait (LEEWAY_SEND_QUEUE_BYTES_MAX); ",
        peer->stage == Stage::kUp ? "it is slow to take them: wait for earlier requests"
                                  : "it is not connected yet"));
  }
  peer->queued_bytes += bytes;
  peer->queue.push_back(std::move(item));
  if (peer->stage == Stage::kUp) OnBlocked(*peer);
  return absl::OkStatus();
}

ReceiveHandle SessionVan::PostReceive(PeerId id, std::uint64_t token, std::span<std::byte> into) {
  const Peer* peer = Find(id);
  if (peer == nullptr || peer->stage != Stage::kUp || token == 0 || into.empty() ||
      into.size() < transport_->posted_bytes_min(peer->conn)) {
    return ReceiveHandle();
  }
  if (posted_->Answered(id, token) != nullptr) transport_->EndReceive(peer->conn, token);
  transport_->PostReceive(peer->conn, token, into);
  return posted_->Post(id, token, into);
}

void SessionVan::Disconnect(PeerId id, absl::Status why) {
  Peer* peer = Find(id);
  if (peer == nullptr) return;
  if (why.ok()) {
    Drop(id, why, Farewell::kGoodbye);
  } else {
    Ban(id, std::move(why));
  }
}

// Guests are held by their turns (HoldGuest), so their owner cannot hold them.
bool SessionVan::Hold(PeerId id) {
  Peer* const peer = Find(id);
  if (peer == nullptr || peer->guest) return false;
  return peer->held_by_owner = transport_->Hold(peer->conn);
}

void SessionVan::Release(PeerId id) {
  Peer* const peer = Find(id);
  if (peer != nullptr && std::exchange(peer->held_by_owner, false)) {
    transport_->Release(peer->conn);
  }
}

bool SessionVan::Writable(PeerId id) const {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return false;
  const Peer& peer = found->second;
  return peer.stage == Stage::kUp && peer.queue.empty() &&
         peer.flow.MaySend(kPrefixBytes + peer.envelope.size() + 1);
}

std::string SessionVan::AddressOf(PeerId id) const {
  const auto found = peers_.find(id);
  return found == peers_.end() ? std::string() : found->second.address;
}

SessionVan::Peer* SessionVan::Find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

// Small messages wait until the loop is about to sleep, the envelope is full, or they have waited
// for kEnvelopeWait while large messages come in (OnData), whichever is first.
bool SessionVan::PutInEnvelope(Peer& peer, const Message& message) {
  const bool next = peer.queue.empty() || runtime::Planted<"envelope-overtakes-queue">();
  if (!peer.takes_envelopes || !next) return false;
  const std::size_t size = peer.envelope.SizeWith(message);
  if (size == Envelope::kNever || !peer.flow.MaySend(kPrefixBytes + size)) return false;
  // An envelope larger than the window would wait until nothing is in flight.
  if (!peer.envelope.empty() && kPrefixBytes + size > limits_.send_window_bytes) return false;
  ++counters_.messages_sent;
  counters_.bytes_sent += message.TotalBytes();
  if (peer.envelope.empty()) {
    if (with_envelope_.empty()) {
      in_envelope_since_ = loop_->Now();
      loop_->BeforeSleep([this, alive = lifetime_.watch()] {
        if (alive) SendEnvelopes();
      });
    }
    with_envelope_.push_back(peer.id);
  }
  peer.envelope.Add(message);
  if (peer.envelope.full()) SendEnvelope(peer);
  return true;
}

void SessionVan::SendEnvelope(Peer& peer) {
  if (peer.envelope.empty()) return;
  Message message;
  message.header = peer.envelope.Take();
  peer.flow.OnSend(kPrefixBytes + message.header.size());
  Prefix prefix;
  prefix.kind = Kind::kEnvelope;
  prefix.flags = peer.flow.TakeAsk() ? kCreditWanted : kNoFlags;
  prefix.sent = peer.flow.sent();
  prefix.consumed = peer.reported = peer.handed;
  transport_->Send(peer.conn, prefix, std::move(message), nullptr);
  WatchForStalls();
}

void SessionVan::SendEnvelopes() {
  for (const PeerId id : std::exchange(with_envelope_, {})) {
    if (Peer* peer = Find(id); peer != nullptr) SendEnvelope(*peer);
  }
}

void SessionVan::Transmit(Peer& peer, Queued item) {
  ++counters_.messages_sent;
  counters_.bytes_sent += item.bytes - kPrefixBytes;
  peer.flow.OnSend(item.bytes);
  Prefix prefix;
  prefix.kind = Kind::kData;
  prefix.flags = peer.flow.TakeAsk() ? kCreditWanted : kNoFlags;
  prefix.frames = static_cast<std::uint16_t>(item.message.payload.size() + 1);
  prefix.sent = peer.flow.sent();
  prefix.consumed = peer.reported = peer.handed;
  prefix.receive_token = item.message.receive_token;
  transport_->Send(peer.conn, prefix, std::move(item.message), std::move(item.done));
  WatchForStalls();
}

void SessionVan::TransmitQueue(Peer& peer) {
  while (!peer.queue.empty() && peer.flow.MaySend(peer.queue.front().bytes)) {
    Queued item = std::move(peer.queue.front());
    peer.queue.pop_front();
    peer.queued_bytes -= item.bytes;
    if (!runtime::Planted<"queued-bytes-not-given-back">()) limits_.send_queue->Release(item.bytes);
    Transmit(peer, std::move(item));
  }
  if (!peer.queue.empty()) {
    OnBlocked(peer);
  } else {
    peer.retry.Clear();
  }
}

void SessionVan::OnBlocked(Peer& peer) {
  if (peer.flow.TakeAskWhenBlocked()) SendCredit(peer, kCreditWanted);
  if (peer.retry.pending()) return;
  peer.retry_delay = kAskPauseMin;
  peer.retry.SetAfter(peer.retry_delay);
}

void SessionVan::AskAgain(Peer& peer) {
  SendCredit(peer, kCreditWanted);
  RetryLater(peer, kAskPauseMax);
}

void SessionVan::SendSession(Peer& peer, Buffer header) {
  Prefix prefix;
  prefix.kind = Kind::kSession;
  prefix.sent = peer.flow.sent();
  prefix.consumed = peer.reported = peer.handed;
  Message message;
  message.header = std::move(header);
  transport_->Send(peer.conn, prefix, std::move(message), nullptr);
}

void SessionVan::SendCredit(Peer& peer, std::uint8_t flags) {
  Prefix prefix;
  prefix.kind = Kind::kCredit;
  prefix.flags = flags;
  prefix.sent = peer.flow.sent();
  prefix.consumed = peer.reported = peer.handed;
  transport_->Send(peer.conn, prefix, Message(), nullptr);
}

void SessionVan::Drop(PeerId id, absl::Status why, Farewell farewell) {
  auto node = peers_.extract(id);
  Peer& peer = node.mapped();
  if (lifetime_.alive()) EndStall(peer, why);
  posted_->DropPeer(id);
  peer.deadline.Clear();
  peer.retry.Clear();
  const bool was_up = peer.stage == Stage::kUp;
  if (farewell != Farewell::kNone && !runtime::Planted<"envelope-lost-at-goodbye">())
    SendEnvelope(peer);
  if (was_up && farewell == Farewell::kGoodbye) {
    // Beyond the window: the peer has to take these messages anyway, and they cannot be sent later.
    if (!runtime::Planted<"queue-lost-at-goodbye">()) {
      for (Queued& item : std::exchange(peer.queue, {})) Transmit(peer, std::move(item));
    }
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
  if (!runtime::Planted<"queue-of-a-lost-peer-charged">())
    limits_.send_queue->Release(peer.queued_bytes);
  for (Queued& item : peer.queue) {
    if (!item.done) continue;
    absl::Status status = why.ok() ? absl::UnavailableError(absl::StrCat(
                                         peer.address, ": the connection was closed normally"))
                                   : why;
    Tell({std::move(item.done), 0, std::move(status)});
  }
  if (!peer.dialled && !runtime::Planted<"accepted-not-given-back">()) --accepted_;
  if (!runtime::Planted<"guests-not-given-back">()) guests_ -= peer.guest;
  newcomers_ -= peer.newcomer;
  if (peer.dialled || was_up) Tell({nullptr, id, std::move(why)});
}

void SessionVan::Tell(Notice notice) {
  notices_.push_back(std::move(notice));
  if (notices_posted_ || !lifetime_.alive()) return;
  notices_posted_ = true;
  loop_->Post([this, alive = lifetime_.watch()] {
    if (alive) RunNotices();
  });
}

void SessionVan::RunNotices() {
  notices_posted_ = false;
  const runtime::Lifetime::Watch alive = lifetime_.watch();
  // Local, because a callback may destroy the van. Then the handler is not called any more, but
  // every SendDone still is.
  std::vector<Notice> notices = std::exchange(notices_, {});
  for (Notice& notice : notices) {
    if (notice.done) {
      std::move(notice.done)(notice.status);
    } else if (alive) {
      handler_->OnPeerDown(notice.peer, notice.status);
    }
  }
}

}  // namespace leeway::van
