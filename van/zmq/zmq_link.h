// What the parts of one zmq transport share.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_LINK_H_
#define LEEWAY_VAN_ZMQ_ZMQ_LINK_H_

#include <memory>
#include <vector>

#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/transport.h"
#include "van/zmq/zmq_context.h"
#include "van/zmq/zmq_frames.h"

namespace leeway::van {

struct ZmqShared {
  std::shared_ptr<ZmqContext> context;
  runtime::Loop* loop = nullptr;
  Limits limits;
  TransportEvents* events = nullptr;
  std::shared_ptr<ZmqExports> exports = std::make_shared<ZmqExports>();
  ConnId next_conn = 1;
  std::vector<ConnId> ended;  // dialled connections whose end has been told
  bool verifies_checksums() const { return limits.checksums != Limits::Checksums::kOff; }
  // ZeroMQ does not tell how far the other end of a TCP connection is.
  bool sends_checksums(bool over_tcp) const {
    return limits.checksums == Limits::Checksums::kAll ||
           (over_tcp && limits.checksums == Limits::Checksums::kBetweenMachines);
  }
  // False once the transport is gone, which may happen within any event: who has just called one
  // looks here, at a copy of the pointer, before touching anything.
  runtime::Lifetime lifetime;
};

// What was sent before a close may take this long to leave.
inline constexpr int kLingerMs = 1000;
// A changed bit in ZeroMQ's own framing may leave a side waiting for a frame that nobody sends: a
// connection over which no message comes, and no answer to a ping, is given up.
inline constexpr int kHeartbeatIntervalMs = 5'000;
inline constexpr int kHeartbeatTimeoutMs = 20'000;
// A source hands over at most so many messages before the loop looks at its others.
inline constexpr int kMessagesPerTurn = 64;

// The longest frame ZeroMQ may take in. Longer than any we allow, so that the small offenders can
// be told; ZeroMQ itself cuts off the large ones before it allocates for them.
std::int64_t ZmqFrameBytesMax(const Limits& limits);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_LINK_H_
