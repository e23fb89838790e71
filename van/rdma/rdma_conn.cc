#include "van/rdma/rdma_conn.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/address/tcp_address.h"
#include "van/transport.h"

namespace leeway::van {

RdmaConn::RdmaConn(RdmaShared* shared, ConnId conn, bool was_dialled, std::string conn_address,
                   std::unique_ptr<verbs::Connection> connection)
    : id(conn),
      dialled(was_dialled),
      address(std::move(conn_address)),
      shared_(shared),
      connection_(std::move(connection)),
      stage_(dialled ? Stage::kResolving : Stage::kConnecting),
      stranger_(!dialled) {
  if (stranger_) ++shared_->strangers;
}

RdmaPort& RdmaConn::port() {
  return shared_->ports.try_emplace(connection_->device(), connection_->device(), shared_->sizes)
      .first->second;
}

// ---- getting open ----

RdmaReceiver::Limits RdmaConn::MemberLimits() const {
  return {.first_bytes_max = kFirstBytesMax,
          .frame_bytes_max = FrameBytesMax(shared_->limits),
          .payload_frames_max = shared_->limits.payload_frames_max};
}

void RdmaConn::Admit() {
  if (receiver_ != nullptr) receiver_->SetLimits(MemberLimits());
}

// Makes what has to exist before the other side may send.
absl::Status RdmaConn::Prepare() {
  const RdmaSizes& sizes = shared_->sizes;
  LEEWAY_ASSIGN_OR_RETURN(
      slots_,
      RdmaMemory::New(connection_->device(), std::size_t{sizes.packets} * sizes.slot_bytes, false));
  receiver_ = std::make_unique<RdmaReceiver>(
      // Messages of guests have no payload, so none takes memory.
      dialled ? MemberLimits()
              : RdmaReceiver::Limits{.first_bytes_max = kGuestFrameBytesMax,
                                     .frame_bytes_max = kGuestFrameBytesMax,
                                     .payload_frames_max = 0},
      sizes, [notify = shared_->notify, conn = id] { notify(conn); });
  return port().Add(connection_->queue_pair(), this);
}

void RdmaConn::OnResolved() {
  if (stage_ != Stage::kResolving || closed_) return;
  absl::Status status = Prepare();
  const RdmaSizes& sizes = shared_->sizes;
  if (status.ok()) {
    status = connection_->Connect(
        PutRdmaGreeting({.slot_bytes = sizes.slot_bytes, .packets = sizes.packets}));
  }
  stage_ = Stage::kConnecting;
  if (!status.ok()) Lose(std::move(status));
}

absl::Status RdmaConn::Accept(std::span<const std::byte> greeting) {
  LEEWAY_ASSIGN_OR_RETURN(const RdmaGreeting theirs, GetRdmaGreeting(greeting));
  LEEWAY_RETURN_IF_ERROR(Prepare());
  const RdmaSizes& sizes = shared_->sizes;
  LEEWAY_RETURN_IF_ERROR(connection_->Accept(
      PutRdmaGreeting({.slot_bytes = sizes.slot_bytes, .packets = sizes.packets})));
  Open(theirs);
  return absl::OkStatus();
}

void RdmaConn::Open(const RdmaGreeting& theirs) {
  sender_ = std::make_unique<RdmaSender>(connection_.get(), &port(), *std::move(slots_),
                                         shared_->sizes, theirs, receiver_.get(), &shared_->owed);
  slots_.reset();
}

void RdmaConn::OnEstablished(std::span<const std::byte> greeting) {
  if (stage_ != Stage::kConnecting || !lost_.ok()) return;
  if (dialled) {
    const absl::StatusOr<RdmaGreeting> theirs = GetRdmaGreeting(greeting);
    if (!theirs.ok()) return LoseHandshake(theirs.status());
    Open(*theirs);
  }
  stage_ = Stage::kOpen;
  PumpLater();
  if (dialled && !closed_) shared_->events->OnOpened(id);
}

// ---- receiving ----

void RdmaConn::OnPacket(std::span<const std::byte> packet) {
  if (sender_ == nullptr || !lost_.ok() || stage_ == Stage::kShut) return;
  // A packet may come before the event that the connection is established.
  stage_ = Stage::kOpen;
  const absl::StatusOr<RdmaReceiver::Got> got = receiver_->Take(packet, sender_.get());
  if (!got.ok()) return Lose(got.status());
  PumpLater();
  if (*got == RdmaReceiver::Got::kPart) return;
  if (*got == RdmaReceiver::Got::kEnd) return Lose(absl::UnavailableError("the connection broke"));
  Arrival arrival = receiver_->TakeArrival();
  if (closed_) return;
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  shared_->events->OnArrival(id, std::move(arrival));
  if (alive && !closed_) NoLongerStranger();
}

void RdmaConn::OnSent(const verbs::Completion& completion) {
  if (sender_ == nullptr) return;
  if (completion.outcome != verbs::Outcome::kOk) return Lose(verbs::StatusOf(completion));
  sender_->OnCompleted(completion.id);
  PumpLater();
}

void RdmaConn::NoLongerStranger() {
  if (std::exchange(stranger_, false)) --shared_->strangers;
}

// ---- sending ----

void RdmaConn::Send(const Prefix& prefix, Message message, SendDone done) {
  if (sender_ == nullptr || closed_ || !lost_.ok()) {
    shared_->owed.Add(std::move(done),
                      absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
    return;
  }
  sender_->Send(prefix, std::move(message), std::move(done));
  PumpLater();
}

void RdmaConn::PostReceive(std::uint64_t token, std::span<std::byte> into) {
  if (sender_ == nullptr || closed_ || !lost_.ok()) return;
  receiver_->grants().Give(connection_->device(), token, into);
}

void RdmaConn::EndReceive(std::uint64_t token) {
  if (receiver_ == nullptr) return;
  receiver_->grants().End(token);
  if (sender_ != nullptr && receiver_->grants().ends_untold()) PumpLater();
}

void RdmaConn::PumpLater() {
  if (!std::exchange(in_pump_list_, true)) shared_->to_pump.push_back(id);
}

void RdmaConn::Pump() {
  in_pump_list_ = false;
  if (stage_ != Stage::kOpen || !lost_.ok()) return;
  if (absl::Status status = TryPump(); !status.ok()) return Lose(std::move(status));
  if (sender_->unsignalled()) shared_->unsignalled = true;
  if (closed_ && sender_->delivered()) Shut();
}

absl::Status RdmaConn::TryPump() {
  if (receiver_->arena_wanted()) {
    LEEWAY_RETURN_IF_ERROR(
        receiver_->AnswerArena(connection_->device(), !stranger_ && !closed_, sender_.get())
            .status());
  }
  LEEWAY_RETURN_IF_ERROR(sender_->Flush());
  if (receiver_->report_due()) LEEWAY_RETURN_IF_ERROR(sender_->Report().status());
  return absl::OkStatus();
}

void RdmaConn::RequestCompletion() {
  if (stage_ != Stage::kOpen || !lost_.ok() || !sender_->unsignalled()) return;
  if (absl::Status status = sender_->RequestCompletion(); !status.ok()) Lose(std::move(status));
}

// ---- the end ----

void RdmaConn::Lose(absl::Status why) {
  if (!lost_.ok() || stage_ == Stage::kShut) return;
  lost_ = std::move(why);
  shared_->lost.push_back(id);
}

void RdmaConn::End() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  const absl::Status why = lost_;
  const bool was_closed = std::exchange(closed_, true);
  TransportEvents* const events = shared_->events;
  Shut();
  if (was_closed) return;
  if (no_handshake_) events->OnHandshakeFailed(address, why);
  if (alive) events->OnClosed(id, why);
}

void RdmaConn::Close() {
  if (std::exchange(closed_, true)) return;
  if (sender_ == nullptr || !lost_.ok()) return Shut();
  receiver_->grants().EndAll();  // posted memory belongs to its owner again
  sender_->End();
  PumpLater();
  Pump();
}

void RdmaConn::Shut() {
  if (stage_ == Stage::kShut) return;
  stage_ = Stage::kShut;
  closed_ = true;
  NoLongerStranger();
  if (receiver_ != nullptr) {
    port().Remove(connection_->queue_pair());
    receiver_->grants().EndAll();
  }
  if (sender_ != nullptr) connection_->Disconnect();
  shared_->remains.push_back(
      {std::move(connection_), std::move(sender_), std::move(receiver_),
       absl::UnavailableError(absl::StrCat(address, ": the connection broke"))});
  slots_.reset();
  shared_->finished.push_back(id);
}

void RdmaRemains::Bury() {
  connection = nullptr;
  if (sender != nullptr) sender->Fail(why);
  sender = nullptr;
  receiver = nullptr;
}

}  // namespace leeway::van
