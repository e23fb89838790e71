#include "van/zmq/zmq_frames.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "van/checksum.h"
#include "van/little_endian.h"
#include "van/zmq/tsan.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {
namespace {

constexpr std::size_t kZmqChecksumBytes = 4;

// Keeps the bytes of an exported frame alive until ZeroMQ has finished with them.
struct Export {
  Buffer bytes;
  std::shared_ptr<ZmqExports> exports;
  ZmqExports::Ticket* ticket;  // may be null
};

void ReturnExport(void*, void* hint) {
  TakeOver(hint);
  const std::unique_ptr<Export> exported(static_cast<Export*>(hint));
  // First, because the memory may be used again as soon as the exports are back.
  exported->bytes = Buffer();
  exported->exports->Return(exported->ticket);
}

// The memory of a received frame, used in place.
class ReceivedFrame final : public runtime::BufferOwner {
 public:
  static Buffer Adopt(zmq_msg_t* message) {
    auto* frame = new ReceivedFrame;
    Zmq().zmq_msg_move(&frame->message_, message);
    return Buffer(Zmq().zmq_msg_data(&frame->message_), Zmq().zmq_msg_size(&frame->message_),
                  frame);
  }

 private:
  ReceivedFrame() { Zmq().zmq_msg_init(&message_); }
  ~ReceivedFrame() override { Zmq().zmq_msg_close(&message_); }
  zmq_msg_t message_;
};

Buffer TakePayload(zmq_msg_t* message) {
  TakeOver(Zmq().zmq_msg_data(message));
  const std::size_t size = Zmq().zmq_msg_size(message);
  // A small frame would keep the whole buffer that it was received in, so it is copied.
  if (size < kCopyBelowBytes) return Buffer::CopyOf(Zmq().zmq_msg_data(message), size);
  return ReceivedFrame::Adopt(message);
}

std::uint32_t ChecksumOfFrames(std::span<const std::byte> head,
                               const absl::InlinedVector<Buffer, 3>& payload) {
  Checksum checksum;
  const auto add = [&](const std::byte* bytes, std::size_t size) {
    std::byte length[sizeof(std::uint64_t)];
    Put(std::uint64_t{size}, length);
    checksum.Add(length, sizeof(length));
    checksum.Add(bytes, size);
  };
  add(head.data(), head.size());
  for (const Buffer& frame : payload) add(frame.data(), frame.size());
  return checksum.value();
}

// Sends `message` and consumes it.
ZmqSent SendOne(void* socket, zmq_msg_t* message, bool more) {
  HandOver(Zmq().zmq_msg_data(message));
  if (Zmq().zmq_msg_send(message, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0) {
    return ZmqSent::kSent;
  }
  const int error = Zmq().zmq_errno();
  Zmq().zmq_msg_close(message);
  return error == EAGAIN ? ZmqSent::kWouldBlock : ZmqSent::kUnreachable;
}

bool InitPayload(zmq_msg_t* message, const Buffer& frame, bool by_reference,
                 const std::shared_ptr<ZmqExports>& exports, ZmqExports::Ticket* ticket) {
  if (by_reference && frame.size() >= kCopyBelowBytes) {
    auto exported = std::make_unique<Export>(Export{frame, exports, ticket});
    HandOver(exported.get());
    if (Zmq().zmq_msg_init_data(message, const_cast<std::byte*>(frame.data()), frame.size(),
                                ReturnExport, exported.get()) != 0) {
      return false;
    }
    exported.release();
    exports->Export();
    if (ticket != nullptr) ticket->frames_out.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  if (Zmq().zmq_msg_init_size(message, frame.size()) != 0) return false;
  if (!frame.empty()) std::memcpy(Zmq().zmq_msg_data(message), frame.data(), frame.size());
  return true;
}

}  // namespace

ZmqExports::ZmqExports() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

ZmqExports::~ZmqExports() {
  if (fd_ >= 0) close(fd_);
}

void ZmqExports::Export() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++out_;
}

void ZmqExports::Return(Ticket* ticket) {
  if (ticket != nullptr && ticket->frames_out.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    End(ticket, /*wake=*/true);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--out_ == 0) returned_.notify_all();
}

void ZmqExports::Finish(Ticket* ticket) {
  if (ticket == nullptr) return;
  // This is on the loop, which checks before it sleeps, so it need not be woken.
  if (ticket->frames_out.fetch_sub(1, std::memory_order_acq_rel) == 1) End(ticket, /*wake=*/false);
}

void ZmqExports::End(Ticket* ticket, bool wake) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_.emplace_back(ticket);
  any_ended_.store(true, std::memory_order_release);
  if (!wake) return;
  const std::uint64_t one = 1;
  // Fails only if the descriptor is readable already. Under the lock, because a wake-up after Take
  // has emptied the list would keep the descriptor readable for ever.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
}

std::vector<std::unique_ptr<ZmqExports::Ticket>> ZmqExports::Take() {
  if (!any_ended_.load(std::memory_order_acquire)) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(fd_, &count, sizeof(count));
  any_ended_.store(false, std::memory_order_relaxed);
  return std::exchange(ended_, {});
}

bool ZmqExports::WaitForAll(absl::Duration limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return returned_.wait_for(lock, absl::ToChronoMilliseconds(limit), [this] { return out_ == 0; });
}

ZmqSent SendFrames(void* socket, const std::string& routing_id, const Prefix& prefix,
                   const Message& message, bool checksum, bool by_reference,
                   const std::shared_ptr<ZmqExports>& exports, ZmqExports::Ticket* ticket) {
  if (!routing_id.empty() && Zmq().zmq_send(socket, routing_id.data(), routing_id.size(),
                                            ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return Zmq().zmq_errno() == EAGAIN ? ZmqSent::kWouldBlock : ZmqSent::kUnreachable;
  }
  zmq_msg_t frame;
  const std::size_t head_bytes = kPrefixBytes + message.header.size();
  if (Zmq().zmq_msg_init_size(&frame, head_bytes + kZmqChecksumBytes) != 0) {
    return ZmqSent::kUnreachable;
  }
  auto* head = static_cast<std::byte*>(Zmq().zmq_msg_data(&frame));
  PutPrefix(prefix, head);
  if (!message.header.empty()) {
    std::memcpy(head + kPrefixBytes, message.header.data(), message.header.size());
  }
  Put(checksum ? ChecksumOfFrames({head, head_bytes}, message.payload) : kNoChecksum,
      head + head_bytes);
  ZmqSent sent = SendOne(socket, &frame, !message.payload.empty());
  for (std::size_t i = 0; sent == ZmqSent::kSent && i < message.payload.size(); ++i) {
    if (!InitPayload(&frame, message.payload[i], by_reference, exports, ticket))
      return ZmqSent::kUnreachable;
    sent = SendOne(socket, &frame, i + 1 < message.payload.size());
  }
  return sent;
}

bool ZmqReceived::Receive(void* socket, bool with_routing_id, std::uint32_t payload_frames_max) {
  // ZeroMQ delivers whole messages: when the first frame has come, the others have.
  if (Zmq().zmq_msg_recv(&head_, socket, ZMQ_DONTWAIT) < 0) return false;
  if (with_routing_id) {
    routing_id_.assign(static_cast<const char*>(Zmq().zmq_msg_data(&head_)),
                       Zmq().zmq_msg_size(&head_));
    if (Zmq().zmq_msg_more(&head_) == 0) return true;
    if (Zmq().zmq_msg_recv(&head_, socket, ZMQ_DONTWAIT) < 0) return true;
  }
  TakeOver(Zmq().zmq_msg_data(&head_));
  source_fd_ = Zmq().zmq_msg_get(&head_, ZMQ_SRCFD);
  frames_ = 1;
  bool more = Zmq().zmq_msg_more(&head_) != 0;
  while (more) {
    zmq_msg_t frame;
    Zmq().zmq_msg_init(&frame);
    if (Zmq().zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
      Zmq().zmq_msg_close(&frame);
      break;
    }
    more = Zmq().zmq_msg_more(&frame) != 0;
    ++frames_;
    if (payload_.size() < payload_frames_max) payload_.push_back(TakePayload(&frame));
    Zmq().zmq_msg_close(&frame);
  }
  return true;
}

std::string ZmqReceived::source_address() {
  const ReadingFromZmq reading;
  const char* address = Zmq().zmq_msg_gets(&head_, "Peer-Address");
  return address == nullptr ? "" : address;
}

Arrival ZmqReceived::TakeArrival(bool verify) {
  Arrival arrival;
  arrival.head = {static_cast<const std::byte*>(Zmq().zmq_msg_data(&head_)),
                  Zmq().zmq_msg_size(&head_)};
  arrival.payload = std::move(payload_);
  arrival.frames = frames_;
  if (arrival.head.size() < kZmqChecksumBytes) return arrival;  // too short even for a prefix
  const std::span<const std::byte> sent = arrival.head.last(kZmqChecksumBytes);
  arrival.head = arrival.head.first(arrival.head.size() - kZmqChecksumBytes);
  const auto checksum = Get<std::uint32_t>(sent.data());
  // A message with too many frames is not here as a whole, and is refused in any case.
  const bool whole = frames_ == arrival.payload.size() + 1;
  arrival.damaged = verify && whole && checksum != kNoChecksum &&
                    checksum != ChecksumOfFrames(arrival.head, arrival.payload);
  return arrival;
}

}  // namespace leeway::van
