// One connection over TCP, from the first attempt to its end.
//
//   dialled: kConnecting ──▶ kGreeting ──their greeting──▶ kOpen        accepted: from kGreeting on
//
// Closed, it sends what is left, says that no more will come, and throws away what it still gets
// until the other side has done the same: a socket that is closed with bytes unread makes the
// system take back what the other side has not read yet.
#ifndef LEEWAY_VAN_TCP_TCP_CONN_H_
#define LEEWAY_VAN_TCP_TCP_CONN_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/done_list.h"
#include "van/tcp/tcp_format.h"
#include "van/tcp/tcp_receiver.h"
#include "van/tcp/tcp_sender.h"
#include "van/tcp/tcp_socket.h"
#include "van/transport.h"

namespace leeway::van {

using runtime::UniqueFd;

// What the connections of one transport share.
struct TcpShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  UniqueFd epoll;
  TransportEvents* events = nullptr;
  TcpScratch scratch;
  DoneList owed;
  std::vector<ConnId> to_flush;  // have something that leaves before the loop sleeps
  std::vector<ConnId> finished;  // to be removed
  std::uint32_t offers = 0;      // what greetings of accepted connections say
  // False once the transport is gone, which may happen within any event.
  runtime::Lifetime lifetime;
};

class TcpConn {
 public:
  TcpConn(TcpShared* shared, ConnId conn, bool was_dialled, UniqueFd fd, std::string conn_address);
  ~TcpConn() { Shut(); }

  const ConnId id;
  const bool dialled;
  const std::string address;

  // False if it cannot be watched for events. Before anything else.
  bool Start();
  // What epoll has to say of it; calls events.
  struct Polled {
    bool any = false;   // something was done
    bool more = false;  // there may be more to do at once
  };
  Polled Poll(std::uint32_t news);

  void Send(const Prefix& prefix, const Message& message, SendDone done);
  // What waits, as far as the system takes it. Calls no events.
  void Flush();
  // Of an accepted connection: from now on frames may be as long as limits allow.
  void Admit();
  // Nothing is read nor handed over until Release.
  void Hold();
  // Whether it was held. Poll has to follow.
  bool Release();
  // From here on no events; it is finished once what was sent is on its way and the other side has
  // seen it.
  void Close();
  // Ends it at once; what still waits fails.
  void Shut();

  bool within_machine() const { return IsWithinMachine(fd_.get()); }  // both ends
  // Transport::ReceivedOfUnfinished.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return receiver_.idle() ? std::nullopt : std::optional(receiver_.received());
  }
  // What the other side's greeting offers; of one that stands.
  std::uint32_t offers() const { return Get<std::uint32_t>(greeting_.data() + kTcpOffersAt); }
  bool closed() const { return closed_; }                   // no more events
  bool finished() const { return stage_ == Stage::kShut; }  // nothing at all any more
  // Whether all that was sent has left this machine, or never will.
  bool delivered() const;

 private:
  enum class Stage { kConnecting, kGreeting, kOpen, kShut };

  void Connected();
  void ReadGreeting();
  TcpReceiver::Limits MemberLimits() const;
  bool WantsChecksums() const;
  absl::Status CheckGreeting() const;
  void Receive(bool* more);
  void HandOver();
  void DropInput();
  void Lose(absl::Status why) {
    if (lost_.ok()) lost_ = std::move(why);
  }
  void End();
  void Watch(bool for_room);

  TcpShared* const shared_;
  UniqueFd fd_;
  Stage stage_;
  std::array<std::byte, kTcpGreetingBytes> greeting_;  // theirs
  std::size_t greeted_ = 0;
  TcpSender sender_;
  TcpReceiver receiver_;
  absl::Status lost_;  // told once everything received before has been
  bool no_handshake_ = false;
  bool closed_ = false;
  bool said_end_ = false;
  bool waits_for_room_ = false;
  bool admitted_;
  bool held_ = false;
  std::uint32_t watched_ = 0;  // events that epoll is asked for
  bool in_flush_list_ = false;
  int receiving_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_CONN_H_
