#include "van/session/session_van.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {
namespace {

constexpr absl::Duration kAskPauseMin = absl::Milliseconds(200);
constexpr absl::Duration kAskPauseMax = absl::Seconds(2);
constexpr std::uint64_t kLargeBytes = 64 << 10;
// The least time for which small messages wait while large ones come in. Each frame that is sent
// wakes several threads, here and at the peer.
constexpr absl::Duration kEnvelopeWait = absl::Microseconds(250);
// The answers to a message as large as a block wait for each other over every transport: sent at
// once, they would let the peer write the next blocks while this side adds this one up, and both
// want the same memory.
constexpr std::uint64_t kAnswersWaitBytes = 384 << 10;

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
  SendEnvelope(*peer);
  const std::uint64_t bytes = message.TotalBytes() + kPrefixBytes;
  Queued item{std::move(message), std::move(done), bytes};
  if (peer->stage == Stage::kUp && peer->queue.empty() && peer->flow.MaySend(bytes)) {
    Transmit(*peer, std::move(item));
    return absl::OkStatus();
  }
  if (!limits_.send_queue->Charge(peer->queued_bytes, bytes)) {
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
// for kEnvelopeWait while large messages come in (OnData), whichever is first. To a peer that does
// not gain from envelopes only those wait that are sent while a large message is handed over.
bool SessionVan::PutInEnvelope(Peer& peer, const Message& message) {
  if (!peer.takes_envelopes || !peer.queue.empty()) return false;
  if (!peer.gains_from_envelopes && block_from_ != peer.id) return false;
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
    limits_.send_queue->Release(item.bytes);
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

// ---- messages that arrive ----

absl::StatusOr<Prefix> SessionVan::CheckArrival(const Arrival& arrival) const {
  absl::StatusOr<Prefix> prefix = GetPrefix(arrival.head);
  if (!prefix.ok()) return prefix;
  if (arrival.frames > std::uint64_t{limits_.payload_frames_max} + 1 ||
      arrival.frames != prefix->frames) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", arrival.frames, " frames that announces ", prefix->frames,
                     "; at most ", limits_.payload_frames_max, " of payload"));
  }
  if (prefix->kind != Kind::kData && arrival.frames != 1) {
    return absl::InvalidArgumentError("a control message with payload");
  }
  if (arrival.head.size() - kPrefixBytes > proto::kHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a header of ",
                                                   arrival.head.size() - kPrefixBytes,
                                                   " bytes; at most ", proto::kHeaderBytesMax));
  }
  for (const Buffer& frame : arrival.payload) {
    if (frame.size() > limits_.message_bytes_max) {
      return absl::InvalidArgumentError(absl::StrCat("a payload of ", frame.size(),
                                                     " bytes; LEEWAY_MESSAGE_BYTES_MAX allows ",
                                                     limits_.message_bytes_max));
    }
  }
  return prefix;
}

// Errors in the message are reported when the whole message is here (OnArrival).
std::shared_ptr<const PostedReceive> SessionVan::PostedFor(ConnId conn,
                                                           std::span<const std::byte> head,
                                                           std::uint64_t bytes) {
  const auto found = by_conn_.find(conn);
  if (found == by_conn_.end()) return nullptr;
  const absl::StatusOr<Prefix> prefix = GetPrefix(head);
  if (!prefix.ok() || prefix->kind != Kind::kData || prefix->receive_token == 0) return nullptr;
  return posted_->Find(found->second, prefix->receive_token, bytes);
}

void SessionVan::OnArrival(ConnId conn, Arrival arrival) {
  const auto found = by_conn_.find(conn);
  if (found == by_conn_.end()) return;
  const PeerId id = found->second;
  if (!Find(id)->guest) return OnMessage(id, std::move(arrival));
  ServeGuest(id, conn, [&] { OnMessage(id, std::move(arrival)); });
}

void SessionVan::OnMessage(PeerId id, Arrival arrival) {
  Peer& peer = *Find(id);
  const ConnId conn = peer.conn;
  // If the other end closed the connection early, its address may be known only from its message.
  if (!peer.dialled && peer.stage == Stage::kGreeting) {
    peer.address = transport_->AddressOf(conn);
  }
  if (arrival.damaged) return Lose(peer, Damaged(peer.address), Farewell::kReject);
  const absl::StatusOr<Prefix> prefix = CheckArrival(arrival);
  if (!prefix.ok()) return BanMalformed(id, prefix.status());
  if (prefix->kind == Kind::kSession) return OnSession(peer, arrival);
  if (peer.stage != Stage::kUp) {
    // On a lossy transport, the hello that answered ours may have been lost.
    if (peer.dialled && transport_->lossy()) return;
    return BanMalformed(id, absl::FailedPreconditionError("sent a message before its hello"));
  }
  if (!peer.flow.OnConsumed(prefix->consumed)) {
    return BanMalformed(
        id, absl::InvalidArgumentError(absl::StrCat("claims to have taken ", prefix->consumed,
                                                    " bytes of ", peer.flow.sent(), " sent")));
  }
  // Everything sent before this message has been given to the handler or is lost.
  peer.handed = std::max(peer.handed, prefix->sent);
  if (prefix->kind == Kind::kData) return OnData(id, *prefix, std::move(arrival));
  if (prefix->kind == Kind::kEnvelope) return OnEnvelope(id, *prefix, arrival);
  if (prefix->flags & kCreditWanted) SendCredit(peer, kNoFlags);
  TransmitQueue(peer);
}

void SessionVan::EndReceive(PeerId id, std::uint64_t token, const Arrival& arrival) {
  const std::byte* const to = posted_->Answered(id, token);
  if (to == nullptr) return;
  transport_->EndReceive(Find(id)->conn, token);
  if (arrival.payload.size() == 1 && arrival.payload[0].data() == to) {
    counters_.in_place_bytes += arrival.payload[0].size();
  }
}

void SessionVan::OnData(PeerId id, const Prefix& prefix, Arrival arrival) {
  if (prefix.receive_token != 0) EndReceive(id, prefix.receive_token, arrival);
  Message message;
  const auto header = arrival.head.subspan(kPrefixBytes);
  message.header = Buffer::CopyOf(header.data(), header.size());
  message.payload = std::move(arrival.payload);
  // The handler may take long over a large message, and many of them may follow.
  if (message.TotalBytes() >= kLargeBytes && !with_envelope_.empty() &&
      loop_->Now() - in_envelope_since_ >= kEnvelopeWait) {
    SendEnvelopes();
  }
  if (message.TotalBytes() >= kAnswersWaitBytes) block_from_ = id;
  if (!HandOver(id, std::move(message))) return;
  block_from_.reset();
  AfterData(id, prefix);
}

void SessionVan::OnEnvelope(PeerId id, const Prefix& prefix, const Arrival& arrival) {
  absl::StatusOr<std::vector<Message>> messages =
      OpenEnvelope(arrival.head.subspan(kPrefixBytes), limits_);
  if (!messages.ok()) return BanMalformed(id, messages.status());
  for (Message& message : *messages) {
    if (!HandOver(id, std::move(message)) || Find(id) == nullptr) return;
  }
  AfterData(id, prefix);
}

bool SessionVan::HandOver(PeerId id, Message message) {
  ++counters_.messages_received;
  counters_.bytes_received += message.TotalBytes();
  Peer& peer = *Find(id);
  if (peer.counted) peer.heard = loop_->Now();
  ++peer.asked;
  const runtime::Lifetime::Watch alive = lifetime_.watch();
  handler_->OnMessage(id, std::move(message));
  return static_cast<bool>(alive);
}

void SessionVan::AfterData(PeerId id, const Prefix& prefix) {
  Peer* peer = Find(id);
  if (peer == nullptr) return;
  if ((prefix.flags & kCreditWanted) && peer->reported < peer->handed) {
    SendEnvelope(*peer);
    if (peer->reported < peer->handed) SendCredit(*peer, kNoFlags);
  }
  if (!peer->queue.empty()) TransmitQueue(*peer);
}

// ---- notices ----

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

// ---- the factory ----

namespace {

class SessionFactory final : public Factory {
 public:
  SessionFactory(
      std::function<std::unique_ptr<Transport>(runtime::Loop*, const Limits&)> new_transport,
      std::function<std::string(absl::string_view)> any_address,
      std::function<absl::Status()> viable)
      : new_transport_(std::move(new_transport)),
        any_address_(std::move(any_address)),
        viable_(std::move(viable)) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        new_transport_(loop, limits));
  }
  std::string AnyAddress(absl::string_view host) const override { return any_address_(host); }
  absl::Status Viable() const override { return viable_(); }

 private:
  const std::function<std::unique_ptr<Transport>(runtime::Loop*, const Limits&)> new_transport_;
  const std::function<std::string(absl::string_view)> any_address_;
  const std::function<absl::Status()> viable_;
};

}  // namespace

std::unique_ptr<Factory> NewSessionFactory(
    std::function<std::unique_ptr<Transport>(runtime::Loop*, const Limits&)> new_transport,
    std::function<std::string(absl::string_view host)> any_address,
    std::function<absl::Status()> viable) {
  return std::make_unique<SessionFactory>(std::move(new_transport), std::move(any_address),
                                          std::move(viable));
}

}  // namespace leeway::van
