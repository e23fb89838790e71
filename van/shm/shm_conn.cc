#include "van/shm/shm_conn.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/transport.h"

namespace leeway::van {
namespace {

// A connection reads at most this many records before the loop polls its others.
constexpr int kRecordsPerTurn = 64;

// The time for which new connections decline exports after one could not be mapped.
constexpr absl::Duration kDecline = absl::Minutes(1);

}  // namespace

absl::Status ShmConn::Greet() {
  LEEWAY_ASSIGN_OR_RETURN(own_, ShmOwnSegment::New(shared_->sizes));
  const bool declines = shared_->loop->Now() < shared_->declines_until;
  own_->control().declines.store(declines ? 1 : 0, std::memory_order_relaxed);
  LEEWAY_RETURN_IF_ERROR(socket_->SendGreeting(shared_->sizes, own_->fd()));
  own_->CloseFd();
  return absl::OkStatus();
}

absl::Status ShmConn::ReadGreeting() {
  LEEWAY_ASSIGN_OR_RETURN(std::optional<ShmSocket::Greeted> greeted, socket_->ReceiveGreeting());
  if (!greeted.has_value()) return absl::OkStatus();
  LEEWAY_ASSIGN_OR_RETURN(std::shared_ptr<ShmPeerSegment> peer,
                          ShmPeerSegment::Map(std::move(greeted->segment), greeted->sizes));
  if (!dialled) LEEWAY_RETURN_IF_ERROR(Greet());
  link_ = std::make_shared<ShmLink>(own_, std::move(peer), socket_);
  receiver_ = std::make_unique<ShmReceiver>(
      link_, ShmReceiver::Limits{.first_bytes_max = kFirstBytesMax,
                                 .frame_bytes_max = FrameBytesMax(shared_->limits),
                                 .payload_frames_max = shared_->limits.payload_frames_max});
  sender_ = std::make_unique<ShmSender>(link_, &shared_->owed);
  shared_->busy_poll->Add(link_);
  return absl::OkStatus();
}

void ShmConn::PollSocket() {
  if (shut_) return;
  if (open()) {
    const absl::Status status = receiver_->ReadSocket();
    if (absl::IsUnavailable(status)) {
      Lose(status);
    } else if (!status.ok()) {
      Break(status);
    }
    shared_->busy_poll->Woken(link_.get());
    return;
  }
  if (closed_) return;
  const absl::Status status = ReadGreeting();
  if (!status.ok()) {
    Lose(status);
    if (!absl::IsUnavailable(status)) shared_->events->OnHandshakeFailed(address, status);
  } else if (open() && dialled) {
    shared_->events->OnOpened(id);
  }
}

// The other side violated the protocol, or exported more than this process can map.
void ShmConn::Break(absl::Status why) {
  if (absl::IsResourceExhausted(why)) {
    shared_->declines_until = shared_->loop->Now() + kDecline;
  }
  broken_ = true;
  Lose(std::move(why));
}

bool ShmConn::Poll() {
  if (closed_) return false;
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  bool drained = true;
  bool any = false;
  if (open() && !broken_) {
    any = Receive(&drained);
    if (!alive || closed_) return true;
  }
  if (open() && sender_->Collect()) any = true;
  if (open() && !sender_->idle() && sender_->Flush()) any = true;
  if (open() && !sender_->status().ok()) Break(sender_->status());
  if (lost_.ok() || !(drained || broken_)) return any;
  return End();
}

bool ShmConn::Receive(bool* drained) {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  *drained = false;
  for (int i = 0; i < kRecordsPerTurn; ++i) {
    const absl::StatusOr<ShmReceiver::Got> got = receiver_->Next();
    if (!got.ok()) {
      Break(got.status());
      return true;
    }
    if (*got == ShmReceiver::Got::kNothing) {
      *drained = true;
      return i > 0;
    }
    if (*got == ShmReceiver::Got::kPart) continue;
    // Exports that the other side gave back before it sent this message have to be back before it
    // is delivered.
    sender_->Collect();
    shared_->events->OnArrival(id, receiver_->TakeArrival());
    if (!alive || closed_) return true;
  }
  return true;
}

bool ShmConn::End() {
  closed_ = true;
  const absl::Status why = lost_;
  const ConnId conn = id;
  Shut();
  shared_->events->OnClosed(conn, why);
  return true;
}

void ShmConn::Send(const Prefix& prefix, Message message, SendDone done) {
  if (!open() || closed_ || !lost_.ok()) {
    shared_->owed.Add(std::move(done),
                      absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
    return;
  }
  sender_->Send(prefix, std::move(message), std::move(done));
}

void ShmConn::Close() {
  closed_ = true;
  if (!open()) return Shut();
  link_->Deafen();
  FlushClosed();
}

void ShmConn::FlushClosed() {
  if (shut_) return;
  sender_->Flush();
  if (sender_->idle() || !sender_->status().ok() || !lost_.ok()) Shut();
}

void ShmConn::Shut() {
  if (std::exchange(shut_, true)) return;
  if (link_ != nullptr) {
    shared_->busy_poll->Remove(link_.get());
    sender_->Fail(absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
  }
  // The descriptor stays open as long as received frames are held.
  ::epoll_ctl(shared_->epoll.get(), EPOLL_CTL_DEL, socket_->fd(), nullptr);
  socket_->Shut();
}

}  // namespace leeway::van
