// SendFrames and ZmqReceived convert messages to and from ZeroMQ's frames.
//
// Small payloads are copied. Larger ones are exported to ZeroMQ: its frames point to them, and it
// returns them on any thread when it has finished with them. ZmqExports counts them, so that a send
// is reported as done on its loop, and a van is not destroyed while the memory of its senders is
// still being read.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_FRAMES_H_
#define LEEWAY_VAN_ZMQ_ZMQ_FRAMES_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/time/time.h"
#include "van/transport.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {

inline constexpr std::size_t kCopyBelowBytes = 4096;

// The frames that one transport has exported to ZeroMQ, and the sends to report. Frames may come
// back on any thread, also after the transport has been destroyed.
class ZmqExports {
 public:
  // One send. It has ended when frames_out is 0.
  struct Ticket {
    std::atomic<int> frames_out{1};  // includes one for the sender itself
    SendDone done;
    absl::Status status;
  };

  ZmqExports();
  ~ZmqExports();

  // Readable when Take may return sends that ended on another thread.
  int fd() const { return fd_; }

  void Export();                                // a frame has been exported
  void Return(Ticket* ticket);                  // a frame has come back; any thread
  void Finish(Ticket* ticket);                  // the sender itself has finished
  std::vector<std::unique_ptr<Ticket>> Take();  // returns the sends that have ended
  // Waits until no frame is exported. False: it took longer than `limit`.
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

// The first frame of a message ends with four more bytes: the checksum of the lengths and bytes of
// all frames, or kNoChecksum (van/checksum.h). Over TCP the framing has these.
//
// Sends the frames of one message to a socket. `checksum`: whether to compute it. `routing_id` (for
// a ROUTER) may be empty. `by_reference`: whether large payloads may be exported (not inproc, where
// the receiver could hold them for any time).
ZmqSent SendFrames(void* socket, const std::string& routing_id, const Prefix& prefix,
                   const Message& message, bool checksum, bool by_reference,
                   const std::shared_ptr<ZmqExports>& exports, ZmqExports::Ticket* ticket);

// Receives one message from a socket.
class ZmqReceived {
 public:
  ZmqReceived() { Zmq().zmq_msg_init(&head_); }
  ~ZmqReceived() { Zmq().zmq_msg_close(&head_); }
  ZmqReceived(const ZmqReceived&) = delete;
  ZmqReceived& operator=(const ZmqReceived&) = delete;

  // False: there is no message. Messages of a ROUTER begin with a routing id. Payload frames beyond
  // `payload_frames_max` are counted and discarded.
  bool Receive(void* socket, bool with_routing_id, std::uint32_t payload_frames_max);

  const std::string& routing_id() const { return routing_id_; }
  int source_fd() const { return source_fd_; }  // of the connection that it came over, or -1
  // The address of the sender, as ZeroMQ recorded it when the connection was accepted: it is
  // available after the connection has ended, but has no port. Empty: none.
  std::string source_address();
  // `verify`: whether to verify its checksum.
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
