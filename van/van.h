// The van moves messages between processes.
//
// A Van belongs to one loop and is touched only there. It listens on addresses, connects to
// others, and turns each connection into a *peer*: a process that has said in its hello who it is.
// Nothing a peer sends is believed before its hello; a peer that breaks the rules is dropped and
// counted. The interface speaks of buffers and completions, never of sockets, so that a transport
// may write straight into memory, share it or copy it.
//
// Order and loss. Messages to one peer arrive in the order sent, once, as long as the connection
// lives; what was under way when it broke may be lost (and over `sim` may be dropped, repeated or
// reordered as the test asks). Roles that need more add it on top (docs/protocol.md).
//
// Guests. A peer that has connected is a guest until it shows by its hello that it knows the
// cluster's id, or the owner admits it. All guests together get a small share of the thread's time
// (guest_meter.h) and of memory (Limits): what they send beyond that waits in the network, and one
// that does not read what it has asked for is dropped.
//
// Flow control. Each side may have Limits::send_window_bytes on their way to a peer that the peer
// has not yet handed to its handler, and less to one it has connected to within its machine
// (flow.h); beyond that the van queues, and beyond Limits::send_queue Send refuses.
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

// Who a process is, as it says in its hello.
struct Identity {
  Role role = Role::kUnknown;
  std::uint32_t node = 0;          // given by the scheduler; 0 before that
  std::uint64_t incarnation = 0;   // random, new at every start of a process
  std::uint64_t cluster = 0;       // which cluster it belongs to; 0 before it has joined
  std::uint64_t capabilities = 0;  // bits of proto::Capability
};

// A header (proto/encoding/encoding.h makes and reads them) and raw payload frames.
struct Message {
  Buffer header;
  absl::InlinedVector<Buffer, 3> payload;
  // Of an answer with one payload frame: the receive that may have been posted for it at the other
  // side (Van::PostReceive); 0: none.
  std::uint64_t receive_token = 0;
  std::uint64_t TotalBytes() const;
};

// What a van tells its owner; called on the loop, never from within a call to the van.
class Handler {
 public:
  virtual ~Handler() = default;
  // The peer's hello was accepted. For a peer one connected to, its id is the one Connect gave.
  virtual void OnPeerUp(PeerId peer, const Identity& identity) = 0;
  // The last word about a peer (for Connect: also if it never came up). `why` names its address
  // and, where a setting could help, the setting. OK: it said goodbye.
  virtual void OnPeerDown(PeerId peer, const absl::Status& why) = 0;
  // Only between OnPeerUp and OnPeerDown. The message may be kept, but for a frame that was
  // received into memory that had been posted.
  virtual void OnMessage(PeerId peer, Message message) = 0;
  // What the owner calls that peer in its log, e.g. "worker 3"; empty: its role and address do.
  virtual std::string NameOf(PeerId /*peer*/, const Identity& /*identity*/) const { return ""; }
};

struct Limits {
  std::uint64_t message_bytes_max = 1ull << 30;   // one frame
  std::uint32_t payload_frames_max = 8;           // a message
  std::uint64_t send_window_bytes = 64ull << 20;  // unconsumed at a peer
  // What waits for the windows of all peers. A process that has several vans shares one.
  std::shared_ptr<runtime::SharedByteBudget> send_queue =
      std::make_shared<runtime::SharedByteBudget>(4ull << 30);
  std::uint32_t peers_max = 65536;                   // accepted connections
  std::uint32_t guests_max = 1024;                   // of them, those not admitted (Van::Admit)
  std::uint64_t guest_bytes_max = 1 << 20;           // not taken by a guest yet; or one message
  std::uint64_t guests_bytes_max = 64 << 20;         // likewise of all guests
  absl::Duration hello_timeout = absl::Seconds(10);  // an accepted connection says hello within
  absl::Duration stall_time = absl::Seconds(5);      // Stall
  // What is sent with a checksum (checksum.h). What comes with one is checked, but for kOff.
  enum class Checksums { kBetweenMachines, kAll, kOff };
  Checksums checksums = Checksums::kBetweenMachines;
};
// `send_queue`: null makes one of LEEWAY_SEND_QUEUE_BYTES_MAX.
Limits LimitsFrom(const Config& config,
                  std::shared_ptr<runtime::SharedByteBudget> send_queue = nullptr);

// What the van has seen, for operators and tests.
struct Counters {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // headers and payloads
  std::uint64_t in_place_bytes = 0;                  // received where it was posted
  std::uint64_t offenders_dropped = 0;               // peers dropped for breaking the rules
  std::uint64_t malformed_messages = 0;              // frames that were not ours, or not in order
  std::uint64_t checksums_failed = 0;                // messages whose bytes had changed on the way
  std::uint64_t handshakes_failed = 0;               // connections that did not speak the protocol
  std::uint64_t refused_versions = 0;
  std::uint64_t guests_dropped = 0;  // for asking too much, not reading, or there being too many
  std::uint64_t stalls = 0;          // connections that stalled (Stall)
};

// A connection over which something is under way, of which nothing more has been taken (sent to the
// peer) or has come (from it) for Limits::stall_time. It stands, and may recover.
struct Stall {
  std::string peer;              // as in the log: "worker 3 (tcp://10.0.0.7:40123)"
  absl::Time since;              // of the loop's clock
  std::uint64_t send_bytes = 0;  // that the peer has not taken; 0: the rest of a message is missing
};

// How a send ended: OK when the transport needs the buffers no more (which is not yet an answer).
using SendDone = absl::AnyInvocable<void(absl::Status)>;

class Van {
 public:
  virtual ~Van() = default;  // says goodbye to its peers after flushing, briefly; calls no handler

  // `address`: "tcp://HOST:PORT" (port 0: any), "ipc://PATH", "inproc://NAME", "sim://NAME".
  // Returns the address others connect to. ALREADY_EXISTS when it is in use, saying by which
  // address and what to change; INVALID_ARGUMENT for one that makes no sense; NOT_FOUND for an
  // unknown host or network card.
  virtual absl::StatusOr<std::string> Listen(absl::string_view address) = 0;

  // Starts connecting and keeps trying until `timeout`. Sends are queued meanwhile.
  // INVALID_ARGUMENT for an address that makes no sense; a host name that cannot be resolved is
  // reported at once as NOT_FOUND, everything else through OnPeerDown.
  virtual absl::StatusOr<PeerId> Connect(absl::string_view address, absl::Duration timeout) = 0;

  // FAILED_PRECONDITION: no such peer (any more). RESOURCE_EXHAUSTED: the queue is full
  // (LEEWAY_SEND_QUEUE_BYTES_MAX). INVALID_ARGUMENT: over message_bytes_max or payload_frames_max.
  // `done`, if given, is called once, later, on the loop, unless Send itself failed.
  virtual absl::Status Send(PeerId peer, Message message, SendDone done = nullptr) = 0;

  // Posts memory that the one payload frame of an answer may be received straight into: of the
  // next message of this peer's whose receive_token is `token` (not 0) and whose frame has exactly
  // so many bytes. The frame that OnMessage is given then lies there; whether it does, the
  // transport decides, and what OnMessage is given is to be checked as ever. To be called before
  // the request is sent. `into` is the van's until the answer has been handed over, or the handle
  // revokes it. An empty handle: frames so short, or of this peer's, are not received in place.
  virtual ReceiveHandle PostReceive(PeerId /*peer*/, std::uint64_t /*token*/,
                                    std::span<std::byte> /*into*/) {
    return ReceiveHandle();
  }

  // Drops a peer; OnPeerDown(peer, why) follows. With an error as `why`, the peer is told the
  // reason, banned and counted as an offender. With OK it is a goodbye, after what was sent.
  virtual void Disconnect(PeerId peer, absl::Status why) = 0;

  // The peer is no guest any more.
  virtual void Admit(PeerId /*peer*/) {}

  // Nothing more of that peer's is handed over, nor much of it taken in, until Release; also from
  // within OnMessage, but what came in the same envelope follows. False: its transport cannot.
  virtual bool Hold(PeerId /*peer*/) { return false; }
  virtual void Release(PeerId /*peer*/) {}

  // Whether a Send now would leave at once rather than be queued.
  virtual bool Writable(PeerId peer) const = 0;
  // What others know this peer by in messages to people, e.g. "tcp://10.0.0.7:40123".
  virtual std::string AddressOf(PeerId peer) const = 0;

  virtual Identity identity() const = 0;
  // What later hellos will say.
  virtual void SetIdentity(const Identity& identity) = 0;
  virtual Counters counters() const = 0;
  // Those that stand still now, by peer.
  virtual std::vector<Stall> stalls() const { return {}; }
};

// Makes vans of one kind. The seam through which roles get a network.
class Factory {
 public:
  virtual ~Factory() = default;
  // `handler` outlives the van. To be called and destroyed on `loop` (or before it turns).
  virtual std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity,
                                   const Limits& limits, Handler* handler) = 0;
  // An address of this kind that Listen can bind for `host` (a host name, an address, or empty for
  // all), e.g. "tcp://HOST:0".
  virtual std::string AnyAddress(absl::string_view host) const = 0;
  // Why this van cannot be used here, or OK.
  virtual absl::Status Viable() const { return absl::OkStatus(); }
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_VAN_H_
