// Messages into and out of ZeroMQ's frames.
//
// Small payloads are copied. Larger ones are exported to ZeroMQ: it points into them, and returns
// them on whatever thread it is done with them. ZmqExports keeps the books, so that a send is
// reported done on its loop and a van is not destroyed while its senders' memory is still being
// read.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_FRAMES_H_
#define LEEWAY_VAN_ZMQ_ZMQ_FRAMES_H_

#include <zmq.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/time/time.h"
#include "van/transport.h"

namespace leeway::van {

inline constexpr std::size_t kCopyBelowBytes = 4096;

// Frames exported to ZeroMQ by one transport, and whose sends are to be reported. Frames come back
// on any thread, also after the transport has gone.
class ZmqExports {
 public:
  // One send. It has ended when `frames_out` is 0.
  struct Ticket {
    std::atomic<int> frames_out{1};  // one for the sender itself
    SendDone done;
    absl::Status status;
  };

  ZmqExports();
  ~ZmqExports();

  // Readable when Take may have something that came back on another thread.
  int fd() const { return fd_; }

  void Export();                                // a frame goes out
  void Return(Ticket* ticket);                  // a frame came back; any thread
  void Finish(Ticket* ticket);                  // the sender itself is through with it
  std::vector<std::unique_ptr<Ticket>> Take();  // those that have ended
  // Until no frame is out. False if it took longer.
  bool WaitForAll(absl::Duration limit);

 private:
  void End(Ticket* ticket, bool wake);

  int fd_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::int64_t out_ = 0;
  std::vector<std::unique_ptr<Ticket>> ended_;
  std::atomic<bool> any_ended_{false};
};

enum class ZmqSent { kSent, kWouldBlock, kUnreachable };

// The first frame of a message ends with four bytes that TCP's framing has elsewhere: the checksum
// of all frames' lengths and bytes, or kNoChecksum (checksum.h).
//
// The frames of one message to a socket. `checksum`: whether to compute it. `routing_id` (for a
// ROUTER) may be empty. `by_reference`: whether large payloads may be exported (not inproc, where
// the receiver would hold them for as long as it likes).
ZmqSent SendFrames(void* socket, const std::string& routing_id, const Prefix& prefix,
                   const Message& message, bool checksum, bool by_reference,
                   const std::shared_ptr<ZmqExports>& exports, ZmqExports::Ticket* ticket);

// One message from a socket.
class ZmqReceived {
 public:
  ZmqReceived() { zmq_msg_init(&head_); }
  ~ZmqReceived() { zmq_msg_close(&head_); }
  ZmqReceived(const ZmqReceived&) = delete;
  ZmqReceived& operator=(const ZmqReceived&) = delete;

  // False when there is none. A ROUTER's messages begin with a routing id. Payload frames beyond
  // `payload_frames_max` are counted and thrown away.
  bool Receive(void* socket, bool with_routing_id, std::uint32_t payload_frames_max);

  const std::string& routing_id() const { return routing_id_; }
  int source_fd() const { return source_fd_; }  // of the connection it came over, or -1
  // The address at its other end, as ZeroMQ noted it when it was accepted: it outlives the
  // connection, but has no port. Empty if there is none.
  std::string source_address();
  // `verify`: whether its checksum is looked at.
  Arrival TakeArrival(bool verify);

 private:
  zmq_msg_t head_;
  std::string routing_id_;
  int source_fd_ = -1;
  absl::InlinedVector<Buffer, 3> payload_;
  std::uint64_t frames_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_FRAMES_H_
