// TcpConn is one connection over TCP, from the first attempt to its end. Lives on the transport's
// loop.
//
//   dialled: kConnecting ──▶ kGreeting ──their greeting──▶ kOpen        accepted: from kGreeting on
//
// After Close it sends what is left, shuts down its sending direction, and discards what it still
// receives until the other side has shut down as well. Closing a socket with unread bytes at once
// would make the system reset the connection, and the other side would lose bytes that it has not
// read yet.
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
#include "van/tcp/tcp_format.h"
#include "van/tcp/tcp_receiver.h"
#include "van/tcp/tcp_sender.h"
#include "van/tcp/tcp_socket.h"
#include "van/transport.h"

namespace leeway::van {

using runtime::UniqueFd;

// The state that the connections of one transport share.
struct TcpShared {
  runtime::Loop* loop = nullptr;
  Limits limits;
  UniqueFd epoll;
  TransportEvents* events = nullptr;
  TcpScratch scratch;
  DoneList owed;
  std::vector<ConnId> to_flush;  // connections with bytes that leave before the loop sleeps
  std::vector<ConnId> finished;  // connections to be removed
  std::uint32_t offers = 0;      // offers in the greetings of accepted connections
  // Ends when the transport is destroyed, which may happen within any event.
  runtime::Lifetime lifetime;
};

class TcpConn {
 public:
  TcpConn(TcpShared* shared, ConnId conn, bool was_dialled, UniqueFd fd, std::string conn_address);
  ~TcpConn() { Shut(); }

  const ConnId id;
  const bool dialled;
  const std::string address;

  // Watches the socket for events. To be called before all other functions. False: the system
  // cannot watch it.
  bool Start();
  // Handles the events `news` that epoll reports; calls TransportEvents.
  struct Polled {
    bool any = false;   // some work was done
    bool more = false;  // there may be more to read at once
  };
  Polled Poll(std::uint32_t news);

  void Send(const Prefix& prefix, const Message& message, SendDone done);
  // Sends queued bytes as far as the system takes them. Calls no events.
  void Flush();
  // For an accepted connection: from now on frames may have the lengths that Limits allow.
  void Admit();
  // Nothing is read or delivered until Release.
  void Hold();
  // Ends Hold. True if the connection was held; then Poll has to follow.
  bool Release();
  // No events follow. The connection is finished when what was sent is on its way and the other
  // side has shut down.
  void Close();
  // Ends the connection at once; queued sends fail.
  void Shut();

  bool taken() const { return stage_ != Stage::kConnecting; }
  bool within_machine() const { return IsWithinMachine(fd_.get()); }  // both ends
  // Transport::ReceivedOfUnfinished.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return receiver_.idle() ? std::nullopt : std::optional(receiver_.received());
  }
  // The offers in the other side's greeting. The connection is open.
  std::uint32_t offers() const { return Get<std::uint32_t>(greeting_.data() + kTcpOffersAt); }
  bool closed() const { return closed_; }                   // no more events follow
  bool finished() const { return stage_ == Stage::kShut; }  // the socket is closed
  // True if everything that was sent has left this machine, or never will.
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
  std::array<std::byte, kTcpGreetingBytes> greeting_;  // the other side's
  std::size_t greeted_ = 0;
  TcpSender sender_;
  TcpReceiver receiver_;
  absl::Status lost_;  // reported when everything received before has been delivered
  bool no_handshake_ = false;
  bool closed_ = false;
  bool said_end_ = false;
  bool waits_for_room_ = false;
  bool admitted_;
  bool held_ = false;
  std::uint32_t watched_ = 0;  // events registered with epoll
  bool in_flush_list_ = false;
  int receiving_ = 0;
};

// A FAILED_PRECONDITION status for a peer that does not speak Leeway's protocol, such as a web
// browser, a health check or a tool of another release. It names HTTP, TLS or ZeroMQ if `first`
// begins like them, and what to do. `first` has the bytes received so far, at least one.
absl::Status ForeignProtocol(std::span<const std::byte> first);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_CONN_H_
