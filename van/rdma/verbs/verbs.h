// The verbs that the rdma transport uses, as an interface with two implementations: the system's
// libibverbs and librdmacm, loaded at run time (system_verbs.h), and a provider in memory that
// injects failures (testing/fake_verbs.h).
//
// A Verbs object belongs to one loop and is touched only there, with all that it has made, but for
// Device::Peek and Arm. It never calls back: what happens is found by NextEvent and Device::Poll,
// and its descriptor is readable when one of them may find something.
//
//   dialled:   Dial ──kResolved──▶ Connect ──kEstablished──▶ …            (or kFailed)
//   accepted:       kRequest ──▶ Accept ──kEstablished──▶ …               (or kFailed)
//   the end:   Disconnect, on either side ──kDisconnected──▶ destroy it
//
// Connections are reliable (RC): work requests of one connection are carried out in order, a
// completion of one implies that of all before it, and what a write brought is in its place once a
// later send on the same connection has been received.
#ifndef LEEWAY_VAN_RDMA_VERBS_VERBS_H_
#define LEEWAY_VAN_RDMA_VERBS_VERBS_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway::van::verbs {

// Bytes that both sides may give each other while they connect.
inline constexpr std::size_t kPrivateBytesMax = 52;

// A part of registered memory of this process.
struct Segment {
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
};

enum class Opcode : std::uint8_t {
  kSend,   // into the next receive that the other side has posted
  kWrite,  // to `remote_address`; the other side is not told
};

inline constexpr std::size_t kSegmentsMax = 4;

// One request of a connection's send queue.
struct SendRequest {
  std::uint64_t id = 0;  // of its completion
  Opcode opcode = Opcode::kSend;
  std::span<const Segment> segments;  // at most kSegmentsMax; valid during Post
  std::uint64_t remote_address = 0;   // kWrite
  std::uint32_t remote_key = 0;       // kWrite
  bool signalled = false;             // one that fails has a completion in any case
};

enum class Outcome : std::uint8_t {
  kOk,
  kFlushed,           // the connection had ended before it was carried out
  kRetriesExceeded,   // the other side does not answer
  kReceiverNotReady,  // the other side had posted no receive, for long
  kRemoteAccess,      // the other side has not granted what was to be written to
  kRemoteInvalid,     // the other side could not do it: a receive too small, for example
  kLocalProtection,   // this side's memory is not registered, or no longer
  kLocalLength,       // this side's receive was too small
  kOther,
};

struct Completion {
  std::uint64_t id = 0;
  std::uint32_t queue_pair = 0;  // Connection::queue_pair; maybe of one that has been destroyed
  bool receive = false;          // of a receive; valid, as is `bytes`, only with kOk
  std::uint32_t bytes = 0;       // received
  Outcome outcome = Outcome::kOk;
  std::uint32_t vendor_code = 0;  // for people
};
// UNAVAILABLE in words; OK for kOk.
absl::Status StatusOf(const Completion& completion);

// Memory that a device may read and write. Deregistered when it goes: from then on a peer that
// still writes to it gets kRemoteAccess.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;
};

struct DeviceInfo {
  std::string name;       // "mlx5_0"
  std::uint8_t port = 1;  // on which the first of its connections goes out
  std::string link;       // "Ethernet" or "InfiniBand"
  std::string gid;        // of that connection
  int gid_index = -1;     // -1: unknown
  std::uint32_t mtu_bytes = 0;
  std::uint32_t send_depth = 0;     // requests that a connection's send queue holds
  std::uint32_t receive_depth = 0;  // requests that the shared receive queue holds
};

// A device in use, with one completion queue and one shared receive queue for all its connections.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // `remote_write`: peers that are told its address and key may write to it. RESOURCE_EXHAUSTED:
  // no more memory may be locked (names the limit and the command that raises it).
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                                 bool remote_write) = 0;
  // RESOURCE_EXHAUSTED: `receive_depth` are posted.
  virtual absl::Status PostReceive(std::uint64_t id, const Segment& segment) = 0;
  // How many completions there were, in order; fewer than asked for: no more for now.
  virtual std::size_t Poll(std::span<Completion> completions) = 0;
  // Whether Poll would find some: for a thread that polls busily and does not own the loop. Any
  // thread.
  virtual bool Peek() = 0;
  // The next completion makes the descriptor of the Verbs readable. One that came before may not
  // have: Peek or Poll once more. Any thread.
  virtual void Arm() = 0;
};

// A queue pair. Destroyed, nothing more is sent or received on it; completions of it that had come
// before may still be polled, and receives that it had begun may be lost.
class Connection {
 public:
  virtual ~Connection() = default;
  // Known from kResolved or kRequest on, and lives as long as the Verbs.
  virtual Device* device() const = 0;
  virtual std::uint32_t queue_pair() const = 0;
  // "10.0.0.7:40123", for people.
  virtual std::string peer_address() const = 0;

  // After kResolved.
  virtual absl::Status Connect(std::span<const std::byte> private_data) = 0;
  // After kRequest. Refusing one is destroying it.
  virtual absl::Status Accept(std::span<const std::byte> private_data) = 0;

  // In order; from kEstablished on, or once something has been received on it. The caller keeps
  // fewer than `send_depth` outstanding: a request is, until a completion of it or of a later one
  // has been polled. Not OK: none or some were posted, and the connection is of no more use.
  virtual absl::Status Post(std::span<const SendRequest> requests) = 0;

  // What is outstanding on either side is flushed, and either side gets kDisconnected.
  virtual void Disconnect() = 0;
};

enum class EventKind : std::uint8_t {
  kResolved,      // a dialled connection has its device: post receives, then Connect
  kRequest,       // `accepted` wants to be: post receives, then Accept
  kEstablished,   // both sides may send
  kFailed,        // it will never be established, see `why`
  kDisconnected,  // by either side, or because the other side's process has ended
  kDeviceLost,    // `connection` is null: all connections of `device` are of no more use
};

struct Event {
  EventKind kind = EventKind::kFailed;
  Connection* connection = nullptr;      // never one that has been destroyed
  std::unique_ptr<Connection> accepted;  // kRequest
  Device* device = nullptr;              // kDeviceLost
  std::vector<std::byte> private_data;   // the other side's; kRequest, and kEstablished if dialled
  absl::Status why;                      // kFailed, kDeviceLost
};

class Verbs {
 public:
  virtual ~Verbs() = default;  // after all its connections and memory regions
  // Readable when NextEvent or the Poll of an armed device may find something.
  virtual int fd() const = 0;
  // Which port; 0 in `address` is any. ALREADY_EXISTS, or UNAVAILABLE with the reason.
  virtual absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) = 0;
  // One attempt.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) = 0;
  virtual bool NextEvent(Event* event) = 0;
  // Those that connections have used. A device once here stays, in its place.
  virtual std::span<Device* const> devices() const = 0;
};

// Which way connections are to go, where what their address leads to is not the right one.
struct Path {
  static constexpr int kAnyGid = -1;

  std::string device;           // "mlx5_0"; empty: any
  std::uint8_t port = 0;        // of the device; 0: any
  int gid_index = kAnyGid;      // of the port
  std::uint32_t mtu_bytes = 0;  // at most, both ways: the smaller of both sides'; 0: what there is

  bool set() const {
    return !device.empty() || port != 0 || gid_index != kAnyGid || mtu_bytes != 0;
  }
};

struct Options {
  std::uint32_t send_depth = 256;      // less if the device has less
  std::uint32_t receive_depth = 4096;  // less if the device has less
  std::uint32_t inline_bytes = 256;    // sends up to so much are copied into the request itself
  // How long a peer that does not answer is given before kRetriesExceeded, roughly.
  std::uint32_t timeout_ms = 4000;
};

// Makes Verbs; shared by the loops of a process. Any thread.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) = 0;
  // Why no connection could be made here, or OK: no library, no device, no port that is up, too
  // little memory that may be locked.
  virtual absl::Status Viable() const = 0;
};

// Verbs that refuse everything, for that reason: what stands in where Open has failed.
std::unique_ptr<Verbs> NoVerbs(absl::Status why);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_VERBS_H_
