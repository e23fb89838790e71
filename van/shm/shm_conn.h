// ShmConn is one connection over shared memory, from the opening of its socket to its end. Lives on
// the transport's loop.
#ifndef LEEWAY_VAN_SHM_SHM_CONN_H_
#define LEEWAY_VAN_SHM_SHM_CONN_H_

#include <memory>
#include <string>

#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/shm/shm_link.h"
#include "van/shm/shm_receiver.h"
#include "van/shm/shm_sender.h"
#include "van/transport.h"

namespace leeway::van {

// The state that the connections of one transport share.
struct ShmShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  ShmSizes sizes;
  UniqueFd epoll;
  TransportEvents* events = nullptr;
  std::shared_ptr<ShmBusyPoll> busy_poll = std::make_shared<ShmBusyPoll>();
  DoneList owed;
  absl::Time declines_until = absl::InfinitePast();  // until then, exports of others are declined
  // Ends when the transport is destroyed, which may happen within any event.
  runtime::Lifetime lifetime;
};

class ShmConn {
 public:
  ShmConn(ShmShared* shared, ConnId conn, bool was_dialled, std::shared_ptr<ShmSocket> socket,
          std::string conn_address)
      : id(conn),
        dialled(was_dialled),
        address(std::move(conn_address)),
        shared_(shared),
        socket_(std::move(socket)) {}
  ~ShmConn() { Shut(); }

  const ConnId id;
  const bool dialled;
  const std::string address;

  int fd() const { return socket_->fd(); }
  bool open() const { return link_ != nullptr; }
  bool closed() const { return closed_; }  // no more events follow
  bool finished() const { return shut_; }  // the connection has ended

  // Makes this side's segment and sends its descriptor; the side that dialled does so first.
  absl::Status Greet();
  // Handles what has come over the socket; calls TransportEvents.
  void PollSocket();
  // Delivers messages, continues sends that waited for room, and handles the end; calls
  // TransportEvents. True if there was any of these.
  bool Poll();

  void Send(const Prefix& prefix, Message message, SendDone done);
  void OnMemoryFreed() {
    if (open()) sender_->OnMemoryFreed();
  }
  // No events follow. The connection is finished when what was sent is on its way.
  void Close();
  // For a closed connection: sends what is left, as far as there is room.
  void FlushClosed();
  // Ends the connection at once; queued sends fail.
  void Shut();
  // Transport::ReceivedOfUnfinished.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return receiver_ == nullptr ? std::nullopt : receiver_->received_of_unfinished();
  }

 private:
  absl::Status ReadGreeting();
  void Lose(absl::Status why) {
    if (lost_.ok()) lost_ = std::move(why);
  }
  void Break(absl::Status why);
  bool Receive(bool* drained);
  bool End();

  ShmShared* const shared_;
  const std::shared_ptr<ShmSocket> socket_;
  std::shared_ptr<ShmOwnSegment> own_;
  std::shared_ptr<ShmLink> link_;
  std::unique_ptr<ShmReceiver> receiver_;
  std::unique_ptr<ShmSender> sender_;
  absl::Status lost_;    // reported when everything received before has been delivered
  bool broken_ = false;  // the other side violated the protocol: nothing more is read
  bool closed_ = false;
  bool shut_ = false;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_CONN_H_
