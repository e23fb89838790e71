// TcpReceiver is the receiving half of a connection: it makes messages of bytes. One thread.
//
// Bytes are read into a scratch buffer that all connections share, many small messages at once. A
// frame that is not there as a whole gets memory of its own, and the rest of it is received
// directly into that memory. So between two reads the scratch buffer is empty, and a silent
// connection needs none.
#ifndef LEEWAY_VAN_TCP_TCP_RECEIVER_H_
#define LEEWAY_VAN_TCP_TCP_RECEIVER_H_

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "van/checksum.h"
#include "van/tcp/tcp_format.h"
#include "van/transport.h"

namespace leeway::van {

// Buffers to read into, each used by one connection at a time.
class TcpScratch {
 public:
  static constexpr std::size_t kBytes = 64 << 10;
  using Memory = std::unique_ptr<std::byte[]>;

  Memory Take();
  void GiveBack(Memory memory);

 private:
  std::vector<Memory> spare_;
};

class TcpReceiver {
 public:
  struct Limits {
    std::uint64_t first_bytes_max;     // of a first frame, in bytes
    std::uint64_t frame_bytes_max;     // of a payload frame, in bytes
    std::uint32_t payload_frames_max;  // of a message; further frames are counted and discarded
  };
  // TransportEvents::PostedFor for this connection.
  using PostedFor = std::function<std::shared_ptr<const PostedReceive>(
      std::span<const std::byte> head, std::uint64_t bytes)>;
  TcpReceiver(const Limits& limits, TcpScratch* scratch, PostedFor posted_for)
      : limits_(limits), scratch_(scratch), posted_for_(std::move(posted_for)) {}

  // Frames of this size or more are read directly into their own memory; shorter ones are copied
  // there.
  static constexpr std::uint64_t kLargeBytes = 64 << 10;

  // Sets whether checksums are verified.
  void VerifyChecksums(bool verify) { verify_ = verify; }

  // Applies from the next message on. Called between two messages, or while one is delivered.
  void SetLimits(const Limits& limits) { limits_ = limits; }

  // Returns where the next bytes are to be read to, and how many entries of `places` that is. To be
  // called only when Next has returned false.
  int Places(std::array<iovec, 2>* places);
  // So many bytes have been read to Places.
  void Took(std::size_t bytes);

  // True: a message is complete (TakeArrival). False: the bytes read so far hold no further
  // message. INVALID_ARGUMENT: the other side violates the format. RESOURCE_EXHAUSTED: there is no
  // memory for a frame that it announces. DATA_LOSS: a checksum does not match. The code that a
  // message is delivered to may call Next again.
  absl::StatusOr<bool> Next();
  // The complete message. Its head is valid until the next call of Next or Took.
  Arrival TakeArrival();

  // True if the next bytes go directly into the memory of a large frame.
  bool in_large_frame() const { return gathers_ && left_ >= kLargeBytes; }
  // True between two messages.
  bool idle() const { return expects_ == Expects::kRecord && !gathers_ && begin_ == end_; }
  // The number of bytes that have come so far, over all messages.
  std::uint64_t received() const { return received_; }
  // Releases memory that is not needed while no bytes come.
  void Rest();

 private:
  enum class Expects { kRecord, kHead, kLength, kFrame, kFrameChecksum };

  void Expect(Expects what, std::uint64_t bytes);
  void SumUp(const std::byte* bytes, std::size_t size) {
    if (has_checksums_) checksum_.Add(bytes, size);
  }
  bool Keeps() const { return payload_.size() < limits_.payload_frames_max; }
  const std::byte* Fetch(absl::Status* status);
  absl::Status BeginGathering();
  absl::Status BeginFrame();
  void LeaveRevokedReceive();
  absl::Status Allocate(Buffer* buffer);
  absl::StatusOr<bool> OnPart(const std::byte* at);
  absl::Status OnRecord(const std::byte* at);
  absl::Status OnHead(const std::byte* at);
  absl::Status OnLength(const std::byte* at);
  void OnFrame(const std::byte* at);
  absl::Status OnFrameChecksum(const std::byte* at);
  absl::Status Verify(const std::byte* of, std::uint64_t size, const std::byte* checksum) const;
  bool NextFrame();

  Limits limits_;
  TcpScratch* const scratch_;
  const PostedFor posted_for_;
  TcpScratch::Memory memory_;
  std::uint64_t received_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // bytes of memory_ that were read and not handled yet

  // The expected part of a message. If it is not all there at once, it is gathered at to_.
  Expects expects_ = Expects::kRecord;
  std::uint64_t bytes_ = kTcpRecordBytes;
  bool gathers_ = false;
  std::byte* to_ = nullptr;  // null: of a frame that is discarded
  std::uint64_t left_ = 0;
  std::array<std::byte, kTcpRecordBytes> small_;
  static_assert(kTcpLengthBytes <= kTcpRecordBytes);
  Buffer long_head_;
  Buffer frame_;
  std::shared_ptr<const PostedReceive> posted_;  // the posted receive that `frame_` lies in, if any

  bool verify_ = true;
  bool has_checksums_ = false;  // of the current message
  Checksum checksum_;           // of the frame that is being received

  // The message so far.
  std::span<const std::byte> head_;
  std::vector<std::byte> head_copy_;
  absl::InlinedVector<Buffer, 3> payload_;
  std::uint64_t frames_ = 0;
  std::uint32_t frames_left_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_RECEIVER_H_
