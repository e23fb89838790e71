// The receiving half of a connection: bytes into messages.
//
// What comes is read into a scratch buffer that all connections share, many small messages at once.
// A frame that is not there as a whole gets memory of its own, and the rest of it is received
// straight into that. So between two reads nothing lies in the scratch buffer, and a connection
// that is silent has none.
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

// Memory to read into, for one connection at a time.
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
    std::uint64_t first_bytes_max;     // of a first frame
    std::uint64_t frame_bytes_max;     // of a payload frame
    std::uint32_t payload_frames_max;  // of a message; those beyond are counted and thrown away
  };
  // TransportEvents::PostedFor, of its connection.
  using PostedFor = std::function<std::shared_ptr<const PostedReceive>(
      std::span<const std::byte> head, std::uint64_t bytes)>;
  TcpReceiver(const Limits& limits, TcpScratch* scratch, PostedFor posted_for)
      : limits_(limits), scratch_(scratch), posted_for_(std::move(posted_for)) {}

  // Frames from here on are read straight to where they are kept, shorter ones copied there.
  static constexpr std::uint64_t kLargeBytes = 64 << 10;

  // Whether checksums are looked at.
  void VerifyChecksums(bool verify) { verify_ = verify; }

  // From the next message on; between two, or from within what is done with one.
  void SetLimits(const Limits& limits) { limits_ = limits; }

  // Where what comes next is to go; how many of `places` that is. Only when Next has found nothing
  // more.
  int Places(std::array<iovec, 2>* places);
  void Took(std::size_t bytes);

  // Whether a message is complete, see TakeArrival; false: there is no more in what was taken. An
  // error: the other side does not keep to the format, or there is no memory for what it announces.
  // DATA_LOSS: a checksum does not match.
  // What was found may be handed to somebody who then calls this again.
  absl::StatusOr<bool> Next();
  // Its head is valid until the next call of Next or Took.
  Arrival TakeArrival();

  // Whether what comes next goes straight to where a large frame is kept.
  bool in_large_frame() const { return gathers_ && left_ >= kLargeBytes; }
  // Between two messages.
  bool idle() const { return expects_ == Expects::kRecord && !gathers_ && begin_ == end_; }
  // That have come so far, over all messages.
  std::uint64_t received() const { return received_; }
  // What need not be kept while nothing comes.
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
  std::size_t begin_ = 0, end_ = 0;  // of what has been read into `memory_` and not looked at

  // The part of a message that is expected, and, when not all of it is there at once, where it is
  // gathered.
  Expects expects_ = Expects::kRecord;
  std::uint64_t bytes_ = kTcpRecordBytes;
  bool gathers_ = false;
  std::byte* to_ = nullptr;  // null: of a frame too many, thrown away
  std::uint64_t left_ = 0;
  std::array<std::byte, kTcpRecordBytes> small_;
  static_assert(kTcpLengthBytes <= kTcpRecordBytes);
  Buffer long_head_;
  Buffer frame_;
  std::shared_ptr<const PostedReceive> posted_;  // where `frame_` lies, if that is somebody else's

  bool verify_ = true;
  bool has_checksums_ = false;  // this message
  Checksum checksum_;           // of its frame that is coming in

  // The message so far.
  std::span<const std::byte> head_;
  std::vector<std::byte> head_copy_;
  absl::InlinedVector<Buffer, 3> payload_;
  std::uint64_t frames_ = 0;
  std::uint32_t frames_left_ = 0;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_RECEIVER_H_
