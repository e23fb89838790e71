#include "van/rdma/rdma_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/little_endian.h"
#include "van/prefix.h"

namespace leeway::van {
namespace {

template <class... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("its rdma packets are malformed: ", parts...));
}

}  // namespace

// ---- frames that stay where they are ----

class RdmaExports::Export final : public runtime::BufferOwner {
 public:
  Export(std::shared_ptr<RdmaExports> exports, std::uint32_t unit, std::uint64_t bytes)
      : exports_(std::move(exports)), unit_(unit), bytes_(bytes) {}
  // The other side may write there at any time.
  bool may_change() const override { return true; }
  ~Export() override {
    exports_->held_bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
    exports_->Release(unit_, bytes_);
  }

 private:
  const std::shared_ptr<RdmaExports> exports_;
  const std::uint32_t unit_;
  const std::uint64_t bytes_;
};

Buffer RdmaExports::Take(std::uint32_t unit, std::uint64_t bytes) {
  const std::uint64_t most = memory_->size() / 2;
  const std::uint64_t held = held_bytes_.load(std::memory_order_relaxed);
  if (held > most || bytes > most - held) {
    Buffer copy = Buffer::CopyOf(At(unit), bytes);
    Release(unit, bytes);
    return copy;
  }
  held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return Buffer(At(unit), bytes, new Export(shared_from_this(), unit, bytes));
}

void RdmaExports::Release(std::uint32_t unit, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  released_.push_back(unit);
  released_bytes_ += bytes;
  if (!room_wanted_ && released_bytes_ < memory_->size() / 4 &&
      released_.size() < kRdmaReleasesMax) {
    return;
  }
  if (!due_.exchange(true, std::memory_order_release) && notify_ != nullptr) notify_();
}

std::size_t RdmaExports::Report(std::span<std::uint32_t> units) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t count = std::min(units.size(), released_.size());
  std::copy_n(released_.begin(), count, units.begin());
  released_.erase(released_.begin(), released_.begin() + static_cast<std::ptrdiff_t>(count));
  if (released_.empty()) {
    released_bytes_ = 0;
    if (count > 0) room_wanted_ = false;
  }
  due_.store(!released_.empty() && (room_wanted_ || released_.size() >= kRdmaReleasesMax),
             std::memory_order_release);
  return count;
}

void RdmaExports::WantRoom() {
  const std::lock_guard<std::mutex> lock(mutex_);
  room_wanted_ = released_.empty();
}

void RdmaExports::Deafen() {
  const std::lock_guard<std::mutex> lock(mutex_);
  notify_ = nullptr;
}

// ---- packets ----

RdmaReceiver::~RdmaReceiver() {
  if (exports_ != nullptr) exports_->Deafen();
}

absl::StatusOr<RdmaReceiver::Got> RdmaReceiver::Take(std::span<const std::byte> packet,
                                                     RdmaSender* sender) {
  LEEWAY_ASSIGN_OR_RETURN(const RdmaHead head, GetRdmaHead(packet));
  if (taken_ - reported_ >= sizes_.packets) {
    return Broken("more than ", sizes_.packets, " packets without waiting for credit");
  }
  ++taken_;
  LEEWAY_RETURN_IF_ERROR(sender->OnTaken(head.taken));
  std::span<const std::byte> body = packet.subspan(kRdmaHeadBytes);
  for (std::size_t i = 0; i < head.releases; ++i) {
    LEEWAY_RETURN_IF_ERROR(sender->OnReleased(Get<std::uint32_t>(body.data() + 4 * i)));
  }
  body = body.subspan(RdmaReleaseBytes(head.releases));
  for (std::size_t i = 0; i < head.grants; ++i) {
    LEEWAY_RETURN_IF_ERROR(sender->OnGrant(Get<RdmaGrant>(body.data() + i * kRdmaGrantBytes)));
  }
  body = body.subspan(head.grants * kRdmaGrantBytes);
  switch (head.type) {
    case RdmaPacketType::kMessage:
      return TakeMessage(head, body);
    case RdmaPacketType::kPiece:
      return TakePiece(body);
    case RdmaPacketType::kEnd:
      return Got::kEnd;
    case RdmaPacketType::kCredit:
      return Got::kPart;
    case RdmaPacketType::kArenaWanted:
      if (arena_.has_value() || arena_refused_ || arena_wanted_) return Broken("a second arena");
      arena_wanted_ = true;
      return Got::kPart;
    case RdmaPacketType::kRoomWanted:
      report_now_ = true;
      if (exports_ != nullptr) exports_->WantRoom();
      return Got::kPart;
    case RdmaPacketType::kArena:
      if (body.size() < sizeof(RdmaArena)) return Broken("an arena in ", body.size(), " bytes");
      LEEWAY_RETURN_IF_ERROR(sender->OnArena(Get<RdmaArena>(body.data())));
      return Got::kPart;
  }
  return Broken("a packet of unknown type");
}

absl::StatusOr<RdmaReceiver::Got> RdmaReceiver::TakeMessage(const RdmaHead& head,
                                                            std::span<const std::byte> body) {
  if (!unfinished_.empty()) return Broken("a message within another");
  const std::size_t frames = head.frames;
  if (frames == 0 || frames > body.size() / kRdmaPlaceBytes) {
    return Broken("a message of ", frames, " frames in ", body.size(), " bytes");
  }
  payload_.clear();
  granted_ = std::nullopt;
  frames_ = 0;
  std::span<const std::byte> rest = body.subspan(frames * kRdmaPlaceBytes);
  for (std::size_t i = 0; i < frames; ++i) {
    LEEWAY_RETURN_IF_ERROR(TakeFrame(Get<RdmaPlace>(body.data() + i * kRdmaPlaceBytes), &rest));
    ++frames_;
  }
  if (unfinished_.empty()) return Complete();
  // The packet is gone when the pieces are there.
  if (head_.data() != long_head_.data()) {
    long_head_.assign(head_.begin(), head_.end());
    head_ = long_head_;
  }
  return Got::kPart;
}

absl::Status RdmaReceiver::TakeFrame(const RdmaPlace& place, std::span<const std::byte>* rest) {
  const bool first = frames_ == 0;
  const bool kept = !first && payload_.size() < limits_.payload_frames_max;
  if (first && place.bytes > limits_.first_bytes_max) {
    return Broken("a first frame of ", place.bytes, " bytes, at most ", limits_.first_bytes_max);
  }
  switch (place.kind) {
    case RdmaPlaceKind::kInline: {
      if (place.bytes > rest->size() || RdmaPadded(place.bytes) > rest->size()) {
        return Broken("a frame of ", place.bytes, " bytes where there are ", rest->size());
      }
      if (first) head_ = rest->first(place.bytes);
      if (kept) payload_.push_back(Buffer::CopyOf(rest->data(), place.bytes));
      *rest = rest->subspan(RdmaPadded(place.bytes));
      return absl::OkStatus();
    }
    case RdmaPlaceKind::kArena:
      if (first) return Broken("a first frame in the arena");
      LEEWAY_RETURN_IF_ERROR(CheckArenaPlace(place));
      if (kept) {
        payload_.push_back(exports_->Take(place.unit, place.bytes));
      } else {
        exports_->Release(place.unit, place.bytes);
      }
      return absl::OkStatus();
    case RdmaPlaceKind::kPieces:
      return BeginPieces(place, kept);
    case RdmaPlaceKind::kGranted:
      if (first || frames_ > 1 || granted_.has_value()) {
        return Broken("frame ", frames_,
                      " in memory that was posted for an answer of one payload frame");
      }
      granted_ = {place.unit, place.bytes};
      return absl::OkStatus();
  }
  return Broken("a frame of unknown kind ", static_cast<std::uint32_t>(place.kind));
}

absl::Status RdmaReceiver::BeginPieces(const RdmaPlace& place, bool kept) {
  if (place.bytes == 0 || place.bytes > limits_.frame_bytes_max) {
    return Broken("a frame of ", place.bytes, " bytes in pieces");
  }
  if (frames_ == 0) {
    long_head_.resize(place.bytes);
    head_ = long_head_;
    unfinished_.AddInto(long_head_.data(), place.bytes);
  } else if (kept) {
    unfinished_.AddTo(&payload_, place.bytes);
  } else {
    unfinished_.AddDiscarded(place.bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<RdmaReceiver::Got> RdmaReceiver::TakePiece(std::span<const std::byte> body) {
  if (unfinished_.empty() || body.size() < kRdmaPlaceBytes) return Broken("a piece of no frame");
  const auto place = Get<RdmaPlace>(body.data());
  if (place.bytes == 0 || place.bytes > unfinished_.missing()) {
    return Broken("a piece of ", place.bytes, " bytes where ", unfinished_.missing(),
                  " are missing");
  }
  const std::byte* from = body.data() + kRdmaPlaceBytes;
  if (place.kind == RdmaPlaceKind::kArena) {
    LEEWAY_RETURN_IF_ERROR(CheckArenaPlace(place));
    from = exports_->At(place.unit);
  } else if (place.kind != RdmaPlaceKind::kInline || place.bytes > body.size() - kRdmaPlaceBytes) {
    return Broken("a piece of ", place.bytes, " bytes in ", body.size());
  }
  const absl::Status taken = unfinished_.Take(from, place.bytes, &payload_);
  if (place.kind == RdmaPlaceKind::kArena) exports_->Release(place.unit, place.bytes);
  if (!taken.ok()) return taken;
  if (!unfinished_.empty()) return Got::kPart;
  return Complete();
}

// The owner may revoke posted memory until the whole message is here, because the memory could be
// freed before the header comes. And the memory was posted for the answer with its token, not for
// any other message.
absl::StatusOr<RdmaReceiver::Got> RdmaReceiver::Complete() {
  if (!granted_.has_value()) return Got::kMessage;
  const Granted granted = *std::exchange(granted_, std::nullopt);
  const absl::StatusOr<Prefix> prefix = GetPrefix(head_);
  if (frames_ != 2 || !prefix.ok() || prefix->kind != Kind::kData) {
    return Broken("a message that is no answer, in memory that was posted for an answer");
  }
  LEEWAY_ASSIGN_OR_RETURN(Buffer frame,
                          grants_.Take(granted.number, prefix->receive_token, granted.bytes));
  if (payload_.size() < limits_.payload_frames_max) payload_.push_back(std::move(frame));
  return Got::kMessage;
}

absl::Status RdmaReceiver::CheckArenaPlace(const RdmaPlace& place) const {
  const std::uint64_t units = exports_ == nullptr ? 0 : sizes_.arena_units;
  if (place.bytes == 0 || place.unit >= units ||
      place.bytes > (units - place.unit) * kRdmaUnitBytes) {
    return Broken("a frame of ", place.bytes, " bytes at unit ", place.unit, " of ", units);
  }
  return absl::OkStatus();
}

Arrival RdmaReceiver::TakeArrival() {
  Arrival arrival;
  arrival.head = head_;
  arrival.payload = std::move(payload_);
  payload_.clear();
  arrival.frames = frames_;
  return arrival;
}

// ---- what is said to the other side ----

absl::StatusOr<bool> RdmaReceiver::AnswerArena(verbs::Device* device, bool allowed,
                                               RdmaSender* sender) {
  if (!arena_.has_value() && !arena_refused_) {
    absl::StatusOr<RdmaMemory> memory = absl::FailedPreconditionError("not allowed");
    if (allowed) {
      memory = RdmaMemory::New(device, std::size_t{sizes_.arena_units} * kRdmaUnitBytes,
                               /*remote_write=*/true);
    }
    arena_refused_ = !memory.ok();
    if (memory.ok()) {
      arena_.emplace(*std::move(memory));
      exports_ = std::make_shared<RdmaExports>(arena_->mapping(), notify_);
    } else if (allowed) {
      runtime::LogWarning("large messages of a peer come in pieces over rdma: ",
                          std::string(memory.status().message()));
    }
  }
  RdmaArena arena;
  if (arena_.has_value()) {
    arena = {reinterpret_cast<std::uint64_t>(arena_->data()), arena_->remote_key(),
             sizes_.arena_units};
  }
  LEEWAY_ASSIGN_OR_RETURN(const bool sent, sender->GrantArena(arena));
  if (sent) arena_wanted_ = false;
  return sent;
}

bool RdmaReceiver::report_due() const {
  return report_now_ || grants_.ends_untold() || taken_ - reported_ >= sizes_.packets / 2 ||
         (exports_ != nullptr && exports_->report_due());
}

void RdmaReceiver::Report(RdmaHead* head, std::array<std::uint32_t, kRdmaReleasesMax>* units,
                          std::array<RdmaGrant, kRdmaGrantsMax>* given) {
  head->grants = static_cast<std::uint32_t>(grants_.Tell(*given));
  head->taken = taken_;
  reported_ = taken_;
  report_now_ = false;
  if (exports_ == nullptr) return;
  head->releases = static_cast<std::uint8_t>(exports_->Report(*units));
}

}  // namespace leeway::van
