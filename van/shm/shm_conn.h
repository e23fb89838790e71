// One connection over shared memory, from the socket's opening to its end.
#ifndef LEEWAY_VAN_SHM_SHM_CONN_H_
#define LEEWAY_VAN_SHM_SHM_CONN_H_

#include <memory>
#include <string>

#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/done_list.h"
#include "van/shm/shm_link.h"
#include "van/shm/shm_receiver.h"
#include "van/shm/shm_sender.h"
#include "van/transport.h"

namespace leeway::van {

// What the connections of one transport share.
struct ShmShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  ShmSizes sizes;
  UniqueFd epoll;
  TransportEvents* events = nullptr;
  std::shared_ptr<ShmBusyPoll> busy_poll = std::make_shared<ShmBusyPoll>();
  DoneList owed;
  absl::Time declines_until = absl::InfinitePast();  // what others would export
  // False once the transport is gone, which may happen within any event.
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
  bool closed() const { return closed_; }  // no more events
  bool finished() const { return shut_; }  // nothing at all any more

  // Makes our segment and hands it over; the side that dialled speaks first.
  absl::Status Greet();
  // What the socket has to say; calls events.
  void PollSocket();
  // Messages that have come, room that has been made, the end; calls events. True if there was any.
  bool Poll();

  void Send(const Prefix& prefix, Message message, SendDone done);
  void OnMemoryFreed() {
    if (open()) sender_->OnMemoryFreed();
  }
  // From here on no events; it is finished once what was sent is on its way.
  void Close();
  // Of one that is closed: what still waits to be sent, as far as there is room.
  void FlushClosed();
  // Ends it at once; what still waits fails.
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
  absl::Status lost_;    // told once everything received before has been
  bool broken_ = false;  // the other side broke the rules: nothing more is read of it
  bool closed_ = false;
  bool shut_ = false;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_CONN_H_
