// What a folder per transport implements: connections that carry messages as frames. Everything
// that is the same for all of them (hello, identity, limits, flow control, counting, goodbye) is
// one layer above, in session_van.h.
//
// A transport belongs to one loop. It never calls its events from within a call to it.
#ifndef LEEWAY_VAN_TRANSPORT_H_
#define LEEWAY_VAN_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "van/prefix.h"
#include "van/van.h"

namespace leeway::van {

// A connection of a transport, never reused within its life. 0 is none.
using ConnId = std::uint64_t;

// A message as it came. Nothing in it has been checked.
struct Arrival {
  std::span<const std::byte> head;         // the first frame; valid during the call
  absl::InlinedVector<Buffer, 3> payload;  // the others; those over the limit are left out
  std::uint64_t frames = 0;                // how many there were, `head` included
  bool damaged = false;  // its checksum does not match: it ends the connection, nothing else
};

class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  // Somebody connected to an address this transport listens on.
  virtual void OnAccepted(ConnId conn) = 0;
  // Whether a connection that waits to be accepted may be, which counts as work for a guest.
  // Otherwise it is asked again after `*pause`.
  virtual bool MayAccept(absl::Duration* /*pause*/) { return true; }
  // A dialled connection stands.
  virtual void OnOpened(ConnId conn) = 0;
  virtual void OnArrival(ConnId conn, Arrival arrival) = 0;
  // The first frame of a message has come and nothing else is missing than its one other frame, of
  // so many bytes: the receive that was posted for that; null: there is none.
  virtual std::shared_ptr<const PostedReceive> PostedFor(ConnId /*conn*/,
                                                         std::span<const std::byte> /*head*/,
                                                         std::uint64_t /*bytes*/) {
    return nullptr;
  }
  // The last word about a connection, unless Close was called. For a dialled one also if it never
  // stood. DATA_LOSS: a checksum did not match.
  virtual void OnClosed(ConnId conn, const absl::Status& why) = 0;
  // The peer at that address does not speak the transport's protocol, or broke off before it had
  // shown that it does: `why`, for the log.
  virtual void OnHandshakeFailed(const std::string& address, const absl::Status& why) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // flushes what was sent, briefly; calls every SendDone left

  // Once, before anything else.
  virtual void Start(TransportEvents* events) = 0;

  // As in Van.
  virtual absl::StatusOr<std::string> Listen(absl::string_view address) = 0;
  // One attempt.
  virtual absl::StatusOr<ConnId> Dial(absl::string_view address) = 0;

  // `done` (may be null) is called once, later, on the loop, or by the destructor. A connection
  // that is gone fails it.
  virtual void Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) = 0;

  // Receiving in place (Van::PostReceive). A transport that reads asks where a frame goes when it
  // begins to come (TransportEvents::PostedFor). One whose other end writes has to know before.
  //
  // Shorter frames are not received in place.
  virtual std::uint64_t posted_bytes_min(ConnId /*conn*/) const { return ~std::uint64_t{0}; }
  // What is posted, before the request that it is for is sent.
  virtual void PostReceive(ConnId /*conn*/, std::uint64_t /*token*/,
                           std::span<std::byte> /*into*/) {}
  // It is no longer: its answer has arrived, wherever it was received, or it was revoked. From here
  // on nothing is written there.
  virtual void EndReceive(ConnId /*conn*/, std::uint64_t /*token*/) {}

  // Accepted connections are those of guests (Van::Admit) until they are admitted: what comes over
  // them may be limited to what guests say, kGuestFrameBytesMax a frame.
  virtual void Admit(ConnId /*conn*/) {}
  // Whether it can be no stranger: only this process's own user can open such a connection.
  virtual bool own_user(ConnId /*conn*/) const { return false; }
  // Nothing more is handed over of what comes, nor much of it taken in, until Release; also from
  // within OnArrival. False: such a connection cannot be held.
  virtual bool Hold(ConnId /*conn*/) { return false; }
  virtual void Release(ConnId /*conn*/) {}

  // Of a message that has begun to come and is not complete: the bytes that have ever come over the
  // connection. Nothing: no message is under way, or the transport cannot tell.
  virtual std::optional<std::uint64_t> ReceivedOfUnfinished(ConnId /*conn*/) const {
    return std::nullopt;
  }

  // Closes once what was sent is on its way. No event about it follows.
  virtual void Close(ConnId conn) = 0;

  // For people; of a connection that is not closed.
  virtual std::string AddressOf(ConnId conn) const = 0;

  // Whether the other end of a dialled connection that stands is on this machine and takes what is
  // sent while it is being sent, no thread of the transport's in between.
  virtual bool same_host(ConnId /*conn*/) const { return false; }

  // Whether messages may be lost or overtake each other while a connection stands.
  virtual bool lossy() const = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TRANSPORT_H_
