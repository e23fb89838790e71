#include "van/tcp/tcp_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {
namespace {

constexpr std::size_t kSparesMax = 4;
// The number of bytes to read beyond the end of a large frame: enough for the beginning of the next
// message, and little of a frame that can be received directly into its own memory. Also used after
// a frame of kSomeBytes or more that another frame of its message follows, as values follow their
// keys.
constexpr std::uint64_t kSomeBytes = 16 << 10;
constexpr std::size_t kBehindBytes = 4096;

template <class... Parts>
absl::Status BrokenStream(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("it sends malformed data: ", parts...));
}

// The caller puts the connection's name in front of it.
constexpr char kChecksumMismatch[] = "a checksum does not match";

// A pointer that is not null, for parts of no bytes.
constexpr std::byte kNothing[1] = {};

}  // namespace

TcpScratch::Memory TcpScratch::Take() {
  if (spare_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kBytes);
  Memory memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void TcpScratch::GiveBack(Memory memory) {
  if (memory != nullptr && spare_.size() < kSparesMax) spare_.push_back(std::move(memory));
}

// ---- bytes ----

int TcpReceiver::Places(std::array<iovec, 2>* places) {
  if (memory_ == nullptr) memory_ = scratch_->Take();
  LeaveRevokedReceive();
  int count = 0;
  std::size_t behind = TcpScratch::kBytes;
  if (gathers_ && to_ != nullptr) {
    (*places)[count++] = {to_, left_};
    const bool another_follows = expects_ == Expects::kFrame && frames_left_ > 1;
    if (left_ >= (another_follows ? kSomeBytes : kLargeBytes)) behind = kBehindBytes;
  }
  (*places)[count++] = {memory_.get(), behind};
  return count;
}

void TcpReceiver::Took(std::size_t bytes) {
  received_ += bytes;
  if (gathers_ && to_ != nullptr) {
    const auto gathered = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left_));
    if (expects_ == Expects::kFrame) SumUp(to_, gathered);
    to_ += gathered;
    left_ -= gathered;
    bytes -= gathered;
  }
  begin_ = 0;
  end_ = bytes;
}

void TcpReceiver::Rest() {
  if (begin_ == end_) scratch_->GiveBack(std::move(memory_));
  if (idle()) long_head_ = Buffer();
}

// ---- parts of a message ----

void TcpReceiver::Expect(Expects what, std::uint64_t bytes) {
  expects_ = what;
  bytes_ = bytes;
  gathers_ = false;
}

absl::StatusOr<bool> TcpReceiver::Next() {
  while (true) {
    absl::Status status;
    const std::byte* at = Fetch(&status);
    LEEWAY_RETURN_IF_ERROR(status);
    if (at == nullptr) return false;
    LEEWAY_ASSIGN_OR_RETURN(const bool complete, OnPart(at));
    if (complete) return true;
  }
}

// Returns the expected part if all of it is there, else null.
const std::byte* TcpReceiver::Fetch(absl::Status* status) {
  const std::size_t there = end_ - begin_;
  if (!gathers_ && there >= bytes_) {
    const std::byte* at = memory_ == nullptr ? kNothing : memory_.get() + begin_;
    begin_ += static_cast<std::size_t>(bytes_);
    return at;
  }
  LeaveRevokedReceive();
  if (!gathers_) {
    if (there == 0 && expects_ == Expects::kRecord) return nullptr;
    if (*status = BeginGathering(); !status->ok()) return nullptr;
  }
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(there, left_));
  if (expects_ == Expects::kFrame && taken > 0) SumUp(memory_.get() + begin_, taken);
  if (to_ != nullptr && taken > 0) {
    std::memcpy(to_, memory_.get() + begin_, taken);
    to_ += taken;
  }
  begin_ += taken;
  left_ -= taken;
  if (left_ > 0) return nullptr;
  switch (expects_) {
    case Expects::kRecord:
    case Expects::kLength:
    case Expects::kFrameChecksum:
      return small_.data();
    case Expects::kHead:
      return long_head_.data();
    case Expects::kFrame:
      return frame_.empty() ? kNothing : frame_.data();
  }
  return nullptr;
}

absl::Status TcpReceiver::BeginGathering() {
  gathers_ = true;
  left_ = bytes_;
  to_ = nullptr;
  switch (expects_) {
    case Expects::kRecord:
    case Expects::kLength:
    case Expects::kFrameChecksum:
      to_ = small_.data();
      return absl::OkStatus();
    case Expects::kHead:
      return Allocate(&long_head_);
    case Expects::kFrame:
      return Keeps() ? BeginFrame() : absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status TcpReceiver::BeginFrame() {
  const bool only_one = frames_ == 1 && frames_left_ == 1;
  if (only_one && bytes_ >= kLargeBytes) posted_ = posted_for_(head_, bytes_);
  if (posted_ == nullptr) return Allocate(&frame_);
  to_ = posted_->to();
  frame_ = Buffer::Unowned(to_, bytes_);
  return absl::OkStatus();
}

// The owner no longer needs the bytes of such a frame, but the message has to be delivered as a
// whole. Without memory for the frame it stays empty.
void TcpReceiver::LeaveRevokedReceive() {
  if (posted_ == nullptr || posted_->to() != nullptr) return;
  posted_ = nullptr;
  const std::uint64_t left = expects_ == Expects::kFrame ? left_ : 0;
  const std::uint64_t there = frame_.size() - left;
  std::byte* to = nullptr;
  frame_ = Buffer::TryAllocate(frame_.size(), &to);
  if (to != nullptr) std::memset(to, 0, there);
  if (expects_ == Expects::kFrame) to_ = to == nullptr ? nullptr : to + there;
}

absl::Status TcpReceiver::Allocate(Buffer* buffer) {
  *buffer = Buffer::TryAllocate(bytes_, &to_);
  if (to_ != nullptr) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("there is no memory for a frame of ", bytes_,
                   " bytes; lower LEEWAY_MESSAGE_BYTES_MAX, or LEEWAY_BLOCK_BYTES"));
}

absl::StatusOr<bool> TcpReceiver::OnPart(const std::byte* at) {
  switch (expects_) {
    case Expects::kRecord:
      LEEWAY_RETURN_IF_ERROR(OnRecord(at));
      return false;
    case Expects::kHead:
      LEEWAY_RETURN_IF_ERROR(OnHead(at));
      return NextFrame();
    case Expects::kLength:
      LEEWAY_RETURN_IF_ERROR(OnLength(at));
      return false;
    case Expects::kFrame:
      OnFrame(at);
      return false;
    case Expects::kFrameChecksum:
      LEEWAY_RETURN_IF_ERROR(OnFrameChecksum(at));
      return NextFrame();
  }
  return BrokenStream("nothing is expected");
}

absl::Status TcpReceiver::Verify(const std::byte* of, std::uint64_t size,
                                 const std::byte* checksum) const {
  if (!has_checksums_ ||
      ChecksumOf(of, static_cast<std::size_t>(size)) == Get<std::uint32_t>(checksum)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(kChecksumMismatch);
}

// True if no frame is left: the message is complete.
bool TcpReceiver::NextFrame() {
  const bool complete = frames_left_ == 0;
  if (complete) {
    Expect(Expects::kRecord, kTcpRecordBytes);
  } else {
    Expect(Expects::kLength, kTcpLengthBytes);
  }
  return complete;
}

absl::Status TcpReceiver::OnRecord(const std::byte* at) {
  has_checksums_ = verify_ && Get<std::uint32_t>(at + 8) != kNoChecksum;
  LEEWAY_RETURN_IF_ERROR(Verify(at, 8, at + 8));
  const auto first = Get<std::uint32_t>(at);
  const auto frames = Get<std::uint32_t>(at + 4);
  if (first > limits_.first_bytes_max) {
    return BrokenStream("a first frame of ", first, " bytes, at most ", limits_.first_bytes_max);
  }
  if (frames > kTcpPayloadFramesMax) {
    return BrokenStream("a message of ", frames, " payload frames, at most ", kTcpPayloadFramesMax);
  }
  frames_left_ = frames;
  Expect(Expects::kHead, first + kTcpChecksumBytes);
  return absl::OkStatus();
}

absl::Status TcpReceiver::OnHead(const std::byte* at) {
  const auto size = static_cast<std::size_t>(bytes_ - kTcpChecksumBytes);
  LEEWAY_RETURN_IF_ERROR(Verify(at, size, at + size));
  // The next read overwrites the scratch buffer.
  if (!gathers_ && frames_left_ > 0) {
    head_copy_.assign(at, at + size);
    at = head_copy_.data();
  }
  head_ = {at, size};
  frames_ = 1;
  payload_.clear();
  return absl::OkStatus();
}

absl::Status TcpReceiver::OnLength(const std::byte* at) {
  LEEWAY_RETURN_IF_ERROR(Verify(at, 8, at + 8));
  const auto bytes = Get<std::uint64_t>(at);
  if (bytes > limits_.frame_bytes_max) {
    return BrokenStream("a frame of ", bytes, " bytes, at most ", limits_.frame_bytes_max,
                        " (LEEWAY_MESSAGE_BYTES_MAX)");
  }
  checksum_ = Checksum();
  Expect(Expects::kFrame, bytes);
  return absl::OkStatus();
}

void TcpReceiver::OnFrame(const std::byte* at) {
  if (!gathers_) SumUp(at, static_cast<std::size_t>(bytes_));
  if (Keeps() && !gathers_) frame_ = Buffer::CopyOf(at, bytes_);
  ++frames_;
  --frames_left_;
  Expect(Expects::kFrameChecksum, kTcpChecksumBytes);
}

absl::Status TcpReceiver::OnFrameChecksum(const std::byte* at) {
  if (has_checksums_ && checksum_.value() != Get<std::uint32_t>(at)) {
    return absl::DataLossError(kChecksumMismatch);
  }
  LeaveRevokedReceive();
  if (Keeps()) payload_.push_back(std::move(frame_));
  frame_ = Buffer();
  posted_ = nullptr;
  return absl::OkStatus();
}

Arrival TcpReceiver::TakeArrival() {
  Arrival arrival;
  arrival.head = head_;
  arrival.payload = std::move(payload_);
  payload_.clear();
  arrival.frames = frames_;
  return arrival;
}

}  // namespace leeway::van
