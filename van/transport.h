// Transport is the interface of the transports, one in each folder: connections that carry messages
// as frames. Everything that is the same for all transports (hello, identity, limits, flow control,
// counters, goodbye) is one layer above (van/session/session_van.h).
//
// A transport belongs to one loop. It never calls its TransportEvents from within a call to it.
#ifndef LEEWAY_VAN_TRANSPORT_H_
#define LEEWAY_VAN_TRANSPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/messages/limits.h"
#include "van/prefix.h"
#include "van/van.h"

namespace leeway::van {

// Identifies a connection of a transport; never reused within the transport's life. 0 is none.
using ConnId = std::uint64_t;

// A message as it was received. None of its fields has been checked.
struct Arrival {
  std::span<const std::byte> head;         // the first frame; valid during the call only
  absl::InlinedVector<Buffer, 3> payload;  // the other frames; those beyond the limit are left out
  std::uint64_t frames = 0;                // how many frames came, `head` included
  // Its checksum does not match; it ends the connection and has no other effect.
  bool damaged = false;
};

// The events of a transport. On its loop.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  // A process has connected to an address that this transport listens on.
  virtual void OnAccepted(ConnId conn) = 0;
  // Whether a waiting connection may be accepted; if so, the work counts as that for a guest.
  // Otherwise the transport asks again after `*pause`.
  virtual bool MayAccept(absl::Duration* /*pause*/) { return true; }
  // A dialled connection has been established.
  virtual void OnOpened(ConnId conn) = 0;
  virtual void OnArrival(ConnId conn, Arrival arrival) = 0;
  // The first frame of a message has come, and only its one other frame, of `bytes` bytes, is
  // missing. Returns the receive that was posted for that frame; null: none.
  virtual std::shared_ptr<const PostedReceive> PostedFor(ConnId /*conn*/,
                                                         std::span<const std::byte> /*head*/,
                                                         std::uint64_t /*bytes*/) {
    return nullptr;
  }
  // The last event of a connection, unless Close was called; also of a dialled connection that was
  // never established. DATA_LOSS: a checksum did not match.
  virtual void OnClosed(ConnId conn, const absl::Status& why) = 0;
  // The peer at that address does not speak the transport's protocol, or closed the connection
  // before it had shown that it does; `why` is for the log.
  virtual void OnHandshakeFailed(const std::string& address, const absl::Status& why) = 0;
};

class Transport {
 public:
  // Tries briefly to send what is left, and calls every SendDone that is left.
  virtual ~Transport() = default;
  virtual void Start(TransportEvents* events) = 0;

  // As Van::Listen.
  virtual absl::StatusOr<std::string> Listen(absl::string_view address) = 0;
  // Makes one attempt to connect. OnOpened or OnClosed follows.
  virtual absl::StatusOr<ConnId> Dial(absl::string_view address) = 0;

  // Sends a message. `done` (may be null) is called once, later, on the loop or by the destructor;
  // with an error if the connection is gone.
  virtual void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) = 0;

  // Receiving in place (Van::PostReceive). A transport that reads asks for the memory when a frame
  // begins to come (TransportEvents::PostedFor). A transport whose peer writes has to announce the
  // memory before, by PostReceive.
  //
  // The smallest frame, in bytes, that is received in place.
  virtual std::uint64_t posted_bytes_min(ConnId /*conn*/) const { return ~std::uint64_t{0}; }
  // Announces a posted receive, before the request that it is for is sent.
  virtual void PostReceive(ConnId /*conn*/, std::uint64_t /*token*/,
                           std::span<std::byte> /*into*/) {}
  // Ends a posted receive: its answer has arrived, in place or not, or it was revoked. Nothing is
  // written to its memory after this call.
  virtual void EndReceive(ConnId /*conn*/, std::uint64_t /*token*/) {}

  // Accepted connections belong to guests until Admit (Van::Admit). A transport may limit the
  // frames of guests to kGuestFrameBytesMax bytes.
  virtual void Admit(ConnId /*conn*/) {}
  // True if only processes of this process's own user can open such a connection.
  virtual bool own_user(ConnId /*conn*/) const { return false; }
  // After Hold no message of the connection is delivered, and little more of its data is read,
  // until Release. May be called from within OnArrival. False: this transport cannot hold
  // connections.
  virtual bool Hold(ConnId /*conn*/) { return false; }
  virtual void Release(ConnId /*conn*/) {}

  // While a message has arrived in part: the number of bytes that have ever come over the
  // connection. nullopt: no message has arrived in part, or the transport cannot tell.
  virtual std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId /*conn*/) const {
    return std::nullopt;
  }

  // Closes the connection after sending what is left. No event about it follows.
  virtual void Close(ConnId conn) = 0;

  // The peer's address for messages to people. The connection is open.
  virtual std::string AddressOf(ConnId conn) const = 0;

  // True of a dialled connection that the other end has taken, whether or not it has been
  // established: a process that never answers, or has been stopped, takes connections too.
  virtual bool taken(ConnId /*conn*/) const { return false; }

  // True if the other end of an established, dialled connection is on this machine and takes bytes
  // while they are being sent, without a thread of the transport in between.
  virtual bool same_host(ConnId /*conn*/) const { return false; }

  // False if several small messages cost no more one by one than in an envelope: no system call,
  // and the peer reads the first while this side writes the next. The session then uses envelopes
  // for answers to large messages alone.
  virtual bool gains_from_envelopes(ConnId /*conn*/) const { return true; }

  // True if messages may be lost or overtake each other while a connection exists.
  virtual bool lossy() const = 0;
};

// ---- shared by transports ----

// DoneList holds the callbacks of sends that have ended, until they are run. Lives on the van's
// loop. The destructor runs those that are left, so each callback is called exactly once.
class DoneList {
 public:
  DoneList() = default;
  DoneList(const DoneList&) = delete;
  DoneList& operator=(const DoneList&) = delete;
  ~DoneList() { RunAll(); }

  bool empty() const { return owed_.empty(); }
  // Adds a callback; a null one is ignored.
  void Add(SendDone done, absl::Status status) {
    if (done) owed_.emplace_back(std::move(done), std::move(status));
  }
  // Runs all callbacks in order. A callback may destroy the list; the others still run.
  void RunAll() {
    std::vector<std::pair<SendDone, absl::Status>> owed = std::exchange(owed_, {});
    for (auto& [done, status] : owed) std::move(done)(std::move(status));
  }

 private:
  std::vector<std::pair<SendDone, absl::Status>> owed_;
};

// The limits of the frames that a transport receives. A frame somewhat above a limit of the van
// still passes, so that the session layer can name the limit in its error.

// The largest first frame of a message: prefix and header.
inline constexpr std::uint64_t kFirstBytesMax = 2 * proto::kHeaderBytesMax;

// The largest frame of a guest.
inline constexpr std::uint64_t kGuestFrameBytesMax = 64 << 10;

// The largest frame of an admitted peer, in bytes.
inline std::uint64_t FrameBytesMax(const Limits& limits) {
  return std::max<std::uint64_t>(limits.message_bytes_max, proto::kHeaderBytesMax) + kPrefixBytes;
}

// How transports over sockets accept and close connections.

// The longest time for which Close tries to send the remaining bytes.
inline constexpr absl::Duration kSocketLinger = absl::Seconds(1);
// The pause in accepting after accept(2) has failed.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
inline constexpr int kAcceptsPerTurn = 16;
// The length of the queue of connections that wait to be accepted (listen(2)).
inline constexpr int kAcceptBacklog = 1024;
// The bit in epoll's user data that marks a listener; the other bits are its index.
inline constexpr std::uint64_t kListenerTag = 1ull << 63;

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TRANSPORT_H_
