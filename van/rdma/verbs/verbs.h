// Verbs is the interface to the verbs that the rdma transport uses. It has two implementations: the
// system's libibverbs and librdmacm, loaded at run time (system_verbs.h), and one in memory that
// injects failures (van/rdma/testing/fake_verbs.h).
//
// A Verbs object and all objects that it has made live on one loop; only Device::Peek and Arm may
// be called on any thread. It never calls back: events are found by NextEvent and Device::Poll, and
// its descriptor is readable when one of these may find something.
//
//   dialled:   Dial ──kResolved──▶ Connect ──kEstablished──▶ …            (or kFailed)
//   accepted:       kRequest ──▶ Accept ──kEstablished──▶ …               (or kFailed)
//   the end:   Disconnect, on either side ──kDisconnected──▶ destroy it
//
// Connections are reliable (RC). Requests of one connection are carried out in order, and a
// completion of one implies those of all before it. What a write has brought is in its place once a
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

// The most bytes that each side may send while connecting.
inline constexpr std::size_t kPrivateBytesMax = 52;

// A part of registered memory of this process.
struct Segment {
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
};

enum class Opcode : std::uint8_t {
  kSend,   // to the next receive that the other side has posted
  kWrite,  // to `remote_address`; the other side is not notified
};

inline constexpr std::size_t kSegmentsMax = 4;

// One request of a connection's send queue.
struct SendRequest {
  std::uint64_t id = 0;  // id of its completion
  Opcode opcode = Opcode::kSend;
  std::span<const Segment> segments;  // at most kSegmentsMax; valid during Post only
  std::uint64_t remote_address = 0;   // kWrite
  std::uint32_t remote_key = 0;       // kWrite
  bool signalled = false;             // a request that fails has a completion in any case
};

enum class Outcome : std::uint8_t {
  kOk,
  kFlushed,           // the connection ended before the request was carried out
  kRetriesExceeded,   // no answer from the other side
  kReceiverNotReady,  // the other side posted no receive for too long
  kRemoteAccess,      // the memory to write to is not granted (any more)
  kRemoteInvalid,     // the other side could not carry it out, e.g. a receive too small
  kLocalProtection,   // this side's memory is not registered (any more)
  kLocalLength,       // this side's receive was too small
  kOther,
};

struct Completion {
  std::uint64_t id = 0;
  std::uint32_t queue_pair = 0;  // Connection::queue_pair, perhaps of a destroyed connection
  bool receive = false;          // it is of a receive; valid, as is `bytes`, only with kOk
  std::uint32_t bytes = 0;       // received
  Outcome outcome = Outcome::kOk;
  std::uint32_t vendor_code = 0;  // for people
};
// OK for kOk; else UNAVAILABLE with the outcome in words.
absl::Status StatusOf(const Completion& completion);

// Memory that a device may read and write. The destructor deregisters it: a peer that still writes
// to it then gets kRemoteAccess.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;
};

struct DeviceInfo {
  std::string name;  // "mlx5_0"
  // Of its first connection, once that is established.
  int gid_index = -1;  // -1: unknown
  std::uint32_t mtu_bytes = 0;
  std::uint32_t send_depth = 0;     // requests that the send queue of a connection holds
  std::uint32_t receive_depth = 0;  // requests that the shared receive queue holds
};

// A device in use, with one completion queue and one shared receive queue for all its connections.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Registers memory. `remote_write`: peers that know its address and key may write to it.
  // RESOURCE_EXHAUSTED: the process may lock no more memory (names the limit and the command that
  // raises it).
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                                 bool remote_write) = 0;
  // Posts a receive. RESOURCE_EXHAUSTED: `receive_depth` receives are posted.
  virtual absl::Status PostReceive(std::uint64_t id, const Segment& segment) = 0;
  // Returns the number of completions found, in order. Fewer than `completions` has room for: there
  // are no more for now.
  virtual std::size_t Poll(std::span<Completion> completions) = 0;
  // True if Poll would find completions: for a thread that polls and does not own the loop. Any
  // thread.
  virtual bool Peek() = 0;
  // Makes the next completion turn the descriptor of the Verbs readable. An earlier completion may
  // not do so: call Peek or Poll once more. Any thread.
  virtual void Arm() = 0;
};

// A queue pair. After its destruction nothing is sent or received on it; earlier completions may
// still be polled, and receives that it had begun may be lost.
class Connection {
 public:
  virtual ~Connection() = default;
  // Known from kResolved or kRequest on. Lives as long as the Verbs.
  virtual Device* device() const = 0;
  virtual std::uint32_t queue_pair() const = 0;
  // "10.0.0.7:40123", for people.
  virtual std::string peer_address() const = 0;

  // Asks the other side to connect; after kResolved.
  virtual absl::Status Connect(std::span<const std::byte> private_data) = 0;
  // Accepts a connect request; after kRequest. Destroying the connection refuses it.
  virtual absl::Status Accept(std::span<const std::byte> private_data) = 0;

  // Posts requests, in order; from kEstablished on, or when something has been received. The caller
  // keeps fewer than `send_depth` requests outstanding: a request is outstanding until a completion
  // of it or of a later one has been polled. Not OK: none or some were posted, and the connection
  // cannot be used any more.
  virtual absl::Status Post(std::span<const SendRequest> requests) = 0;

  // Flushes outstanding requests on both sides; both sides get kDisconnected.
  virtual void Disconnect() = 0;
};

enum class EventKind : std::uint8_t {
  kResolved,      // a dialled connection has its device: post receives, then Connect
  kRequest,       // a connect request for `accepted`: post receives, then Accept
  kEstablished,   // both sides may send
  kFailed,        // the connection was not established, see `why`
  kDisconnected,  // ended by either side, or by the end of its process
  kDeviceLost,    // `connection` is null: no connection of `device` can be used any more
};

struct Event {
  EventKind kind = EventKind::kFailed;
  Connection* connection = nullptr;      // never a destroyed one
  std::unique_ptr<Connection> accepted;  // kRequest
  Device* device = nullptr;              // kDeviceLost
  // Bytes of the other side: kRequest, and kEstablished if dialled.
  std::vector<std::byte> private_data;
  absl::Status why;  // kFailed, kDeviceLost
};

class Verbs {
 public:
  virtual ~Verbs() = default;  // destroyed after all its connections and memory regions
  // Readable when NextEvent or the Poll of an armed device may find something.
  virtual int fd() const = 0;
  // Returns the port; port 0 in `address` is any. ALREADY_EXISTS: in use. UNAVAILABLE, with the
  // reason.
  virtual absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage& address) = 0;
  // Makes one attempt to connect.
  virtual absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage& address) = 0;
  // False: there is none now.
  virtual bool NextEvent(Event* event) = 0;
  // The devices that connections have used. A device keeps its index and stays.
  virtual std::span<Device* const> devices() const = 0;
};

// The path of connections, for machines on which the route to an address is not the right one.
struct Path {
  static constexpr int kAnyGid = -1;

  std::string device;           // "mlx5_0"; empty: any
  std::uint8_t port = 0;        // port of the device; 0: any
  int gid_index = kAnyGid;      // index of the port's GID table
  std::uint32_t mtu_bytes = 0;  // upper limit, the smaller one of both sides; 0: no limit

  // True if it names a device, a port or a GID.
  bool chooses() const { return !device.empty() || port != 0 || gid_index != kAnyGid; }
  bool set() const { return chooses() || mtu_bytes != 0; }
};

struct Options {
  std::uint32_t send_depth = 256;      // less if the device has less
  std::uint32_t receive_depth = 4096;  // less if the device has less
  std::uint32_t inline_bytes = 256;    // sends of up to this size are copied into the request
  // The approximate time without an answer after which a request fails with kRetriesExceeded.
  std::uint32_t timeout_ms = 4000;
};

// A Provider makes Verbs. Shared by the loops of a process. Any thread.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual absl::StatusOr<std::unique_ptr<Verbs>> Open(const Options& options) = 0;
  // OK, or why no connection can be made here: no library, no device, no port that is up, or too
  // little memory that may be locked.
  virtual absl::Status Viable() const = 0;
};

// Makes the verbs of the system: libibverbs and librdmacm, loaded when they are first needed. Can
// be made without library or device; Viable then says what is missing. After a fork, only the
// parent may use objects that were made before. `path`: of all connections; if none can use it,
// Viable says so.
std::unique_ptr<Provider> NewSystemProvider(const Path& path = {});

// Verbs whose calls all fail with that reason: the substitute where Open has failed.
std::unique_ptr<Verbs> NoVerbs(absl::Status why);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_VERBS_H_
