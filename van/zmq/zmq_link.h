// ZmqShared is the state that the parts of one zmq transport share.
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
  std::vector<ConnId> ended;  // dialled connections whose end has been reported
  bool verifies_checksums() const { return limits.checksums != Limits::Checksums::kOff; }
  // ZeroMQ does not tell whether the other end of a TCP connection is on this machine.
  bool sends_checksums(bool over_tcp) const {
    return limits.checksums == Limits::Checksums::kAll ||
           (over_tcp && limits.checksums == Limits::Checksums::kBetweenMachines);
  }
  // Ends when the transport is destroyed, which may happen within any event. A function that has
  // called an event asks a Watch before it touches anything.
  runtime::Lifetime lifetime;
};

// The longest time for which a closed socket tries to send the remaining messages.
inline constexpr int kLingerMs = 1000;
// A damaged bit in ZeroMQ's own framing may leave a side waiting for a frame that never comes. A
// connection without any message and without answers to pings is closed.
inline constexpr int kHeartbeatIntervalMs = 5'000;
inline constexpr int kHeartbeatTimeoutMs = 20'000;
// A source delivers at most this many messages before the loop polls its others.
inline constexpr int kMessagesPerTurn = 64;

// The longest frame that ZeroMQ accepts. It is longer than any allowed frame, so that the sender of
// one somewhat too long can be told; ZeroMQ itself closes the connection of a longer one before it
// allocates memory for it.
std::int64_t ZmqFrameBytesMax(const Limits& limits);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_LINK_H_
