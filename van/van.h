// Van is the part of a process that moves messages to other processes.
//
// A Van belongs to one loop and is used only there. It listens on addresses, connects to others,
// and turns each connection into a *peer*: a process that has identified itself by its hello. No
// message of a peer is accepted before its hello; a peer that violates the protocol is dropped and
// counted. The interface uses buffers and completions, not sockets, so that a transport may write
// directly into memory, share it or copy it.
//
// Order and loss. Messages to one peer arrive in the order in which they were sent, once, as long
// as the connection exists. Messages under way when it breaks may be lost (and over `sim` may be
// dropped, repeated or reordered as the test asks). Roles that need more add it on top
// (docs/protocol.md).
//
// Guests. A peer that has connected is a guest until the owner, which knows the members of its
// cluster, admits it: what a hello says anybody can say. All guests together get a small share of
// the thread's time (van/session/guest_meter.h) and of memory (Limits). What they send beyond that
// waits in the network, and a guest that does not read the answers to its requests is dropped.
//
// Flow control. Each side may have Limits::send_window_bytes under way to a peer that the peer has
// not yet given to its handler, and less if it has dialled that peer on its own machine
// (van/session/flow.h). Messages beyond that are queued, and beyond Limits::send_queue Send fails.
#ifndef LEEWAY_VAN_VAN_H_
#define LEEWAY_VAN_VAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/byte_budget.h"
#include "van/posted_receive.h"

namespace leeway::van {

using runtime::Buffer;

// The identity of a process, as its hello states it.
struct Identity {
  Role role = Role::kUnknown;
  std::uint32_t node = 0;          // assigned by the scheduler; 0 before that
  std::uint64_t incarnation = 0;   // random, new at every start of a process
  std::uint64_t cluster = 0;       // the id of its cluster; 0 before it has joined
  std::uint64_t capabilities = 0;  // bits of proto::Capability
};

// A message: a header (encoded and decoded by proto/encoding/encoding.h) and raw payload frames.
struct Message {
  Buffer header;
  absl::InlinedVector<Buffer, 3> payload;
  // For an answer with one payload frame: the token of the receive that the other side may have
  // posted for it (Van::PostReceive); 0: none.
  std::uint64_t receive_token = 0;
  std::uint64_t TotalBytes() const;
};

// The events of a van, for its owner. Called on the loop, never from within a call to the van.
class Handler {
 public:
  virtual ~Handler() = default;
  // The peer's hello was accepted. For a dialled peer, `peer` is the id that Connect returned.
  virtual void OnPeerUp(PeerId peer, const Identity& identity) = 0;
  // The last event of a peer; after Connect also if it never came up. `why` names the peer's
  // address and, where a setting could help, the setting. OK: the peer said goodbye.
  virtual void OnPeerDown(PeerId peer, const absl::Status& why) = 0;
  // Called only between OnPeerUp and OnPeerDown. The message may be kept, except a frame that was
  // received into posted memory.
  virtual void OnMessage(PeerId peer, Message message) = 0;
  // The owner's name for that peer in the log, e.g. "worker 3"; empty: the log shows its role and
  // address.
  virtual std::string NameOf(PeerId /*peer*/, const Identity& /*identity*/) const { return ""; }
};

// The limits of a van.
struct Limits {
  std::uint64_t message_bytes_max = 1ull << 30;   // of one frame
  std::uint32_t payload_frames_max = 8;           // of one message
  std::uint64_t send_window_bytes = 64ull << 20;  // under way to one peer
  // The budget of messages that wait for the windows of all peers. The vans of a process share one.
  std::shared_ptr<runtime::SharedByteBudget> send_queue =
      std::make_shared<runtime::SharedByteBudget>(4ull << 30);
  std::uint32_t peers_max = 65536;  // accepted connections
  std::uint32_t guests_max = 1024;  // accepted connections that are not admitted (Van::Admit)
  std::uint64_t guest_bytes_max = 1 << 20;  // sent to one guest and not taken by it; or one message
  std::uint64_t guests_bytes_max = 64 << 20;         // the same for all guests together
  absl::Duration hello_timeout = absl::Seconds(10);  // time for an accepted connection to say hello
  absl::Duration stall_time = absl::Seconds(5);      // see Stall
  // Which connections have a checksum on what is sent (van/checksum.h). A checksum that comes is
  // verified unless this is kOff.
  enum class Checksums { kBetweenMachines, kAll, kOff };
  Checksums checksums = Checksums::kBetweenMachines;
};
// Limits by the settings, and by this process's limit of open files. `send_queue`: null makes one
// of LEEWAY_SEND_QUEUE_BYTES_MAX.
Limits LimitsFrom(const Config& config,
                  std::shared_ptr<runtime::SharedByteBudget> send_queue = nullptr);

// Counters of a van, for operators and tests.
struct Counters {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // of headers and payloads
  std::uint64_t in_place_bytes = 0;                  // received in posted memory
  std::uint64_t offenders_dropped = 0;               // peers dropped for violating the protocol
  std::uint64_t malformed_messages = 0;  // frames that are malformed or come out of order
  std::uint64_t checksums_failed = 0;    // messages damaged on the way
  std::uint64_t handshakes_failed = 0;   // connections that do not speak the protocol
  std::uint64_t refused_versions = 0;
  std::uint64_t guests_dropped = 0;  // for too much work, not reading, or for a newer guest
  std::uint64_t stalls = 0;          // stalled connections (Stall)
};

// A stalled connection: for Limits::stall_time, the peer has taken none of the bytes that are under
// way to it, or no more has come of a message that has arrived in part. The connection still exists
// and may recover.
struct Stall {
  std::string peer;              // the peer as in the log: "worker 3 (tcp://10.0.0.7:40123)"
  absl::Time since;              // by the loop's clock
  std::uint64_t send_bytes = 0;  // not taken by the peer; 0: a message has come in part
};

// Called when a send has ended. OK: the transport does not need the buffers any more. It does not
// mean that the peer has received the message.
using SendDone = absl::AnyInvocable<void(absl::Status)>;

class Van {
 public:
  // Sends what is left, briefly, and says goodbye to all peers. Calls no handler.
  virtual ~Van() = default;

  // Listens on `address`: "tcp://HOST:PORT" (port 0: any), "ipc://PATH", "inproc://NAME",
  // "sim://NAME". Returns the address that others connect to. ALREADY_EXISTS: the address is in
  // use; the message names it and what to change. INVALID_ARGUMENT: not a valid address. NOT_FOUND:
  // unknown host or network card.
  virtual absl::StatusOr<std::string> Listen(absl::string_view address) = 0;

  // Starts to connect and keeps trying until `timeout`. Sends are queued meanwhile.
  // INVALID_ARGUMENT: not a valid address. NOT_FOUND: a host name that cannot be resolved. All
  // other failures are reported by OnPeerDown.
  virtual absl::StatusOr<PeerId> Connect(absl::string_view address, absl::Duration timeout) = 0;

  // Sends a message. FAILED_PRECONDITION: no such peer (any more). RESOURCE_EXHAUSTED: the queue is
  // full (LEEWAY_SEND_QUEUE_BYTES_MAX). INVALID_ARGUMENT: over message_bytes_max or
  // payload_frames_max. `done`, if given, is called once, later, on the loop, unless Send itself
  // failed.
  virtual absl::Status Send(PeerId peer, Message message, SendDone done = nullptr) = 0;

  // Posts memory for the payload of an answer: of the next message from this peer whose
  // receive_token is `token` (not 0) and whose one payload frame has exactly as many bytes as
  // `into`. The frame that OnMessage gets then lies in `into`, if the transport can do that;
  // OnMessage must check the message as always. To be called before the request is sent. `into`
  // belongs to the van until the answer has been delivered or the handle revokes it. An empty
  // handle: frames of that length, or from that peer, are not received in place.
  virtual ReceiveHandle PostReceive(PeerId /*peer*/, std::uint64_t /*token*/,
                                    std::span<std::byte> /*into*/) {
    return ReceiveHandle();
  }

  // Drops a peer; OnPeerDown(peer, why) follows. With an error as `why`, the peer is sent the
  // reason, banned and counted as an offender. With OK, a goodbye is sent after all earlier
  // messages.
  virtual void Disconnect(PeerId peer, absl::Status why) = 0;

  // The peer is a member: not a guest any more.
  virtual void Admit(PeerId /*peer*/) {}
  // The owner limits the peer's work itself, and it may send what members may. Its connection
  // counts among those of guests: where there are too many it goes if it is silent.
  virtual void AdmitReader(PeerId /*peer*/) {}
  // The peer stays a guest whose work is limited. Its connection does not count among those of
  // guests: it stays however many there are.
  virtual void KeepGuest(PeerId /*peer*/) {}

  // After Hold no message of that peer is delivered, and little more of its data is read, until
  // Release. May be called from within OnMessage; the messages in the same envelope still follow.
  // False: the transport cannot hold connections.
  virtual bool Hold(PeerId /*peer*/) { return false; }
  virtual void Release(PeerId /*peer*/) {}

  // True if a Send now would leave at once rather than be queued.
  virtual bool Writable(PeerId peer) const = 0;
  // The peer's address in messages to people, e.g. "tcp://10.0.0.7:40123".
  virtual std::string AddressOf(PeerId peer) const = 0;

  virtual Identity identity() const = 0;
  // Sets the identity that later hellos state.
  virtual void SetIdentity(const Identity& identity) = 0;
  virtual Counters counters() const = 0;
  // The connections that are stalled now, by peer.
  virtual std::vector<Stall> stalls() const { return {}; }
};

// Factory makes vans of one kind. It is the interface through which roles get a network.
class Factory {
 public:
  virtual ~Factory() = default;
  // `handler` outlives the van. To be called on `loop`, and the van destroyed there, or before the
  // loop runs.
  virtual std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity,
                                   const Limits& limits, Handler* handler) = 0;
  // An address of this kind that Listen can bind at any port for `host` (a host name, an address,
  // or empty for all), e.g. "tcp://HOST:0".
  virtual std::string AnyAddress(absl::string_view host) const = 0;
  // OK, or why this kind of van cannot be used on this machine.
  virtual absl::Status Viable() const { return absl::OkStatus(); }
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_VAN_H_
