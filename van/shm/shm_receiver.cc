#include "van/shm/shm_receiver.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/shm/memory/shm_format.h"

namespace leeway::van {
// ---- frames that stay where they are ----

class ShmImports::Export final : public runtime::BufferOwner {
 public:
  Export(std::shared_ptr<ShmImports> exports, const ShmPlace& place)
      : exports_(std::move(exports)), place_(place) {}
  bool may_change() const override { return true; }
  ~Export() override {
    exports_->held_bytes_.fetch_sub(place_.size, std::memory_order_relaxed);
    exports_->Release(place_);
  }

 private:
  const std::shared_ptr<ShmImports> exports_;
  const ShmPlace place_;
};

Buffer ShmImports::Take(const ShmPlace& place) {
  const std::byte* data = link_->peer->arena() + place.at * kShmUnitBytes;
  const std::uint64_t most = link_->peer->sizes().ArenaBytes() / 2;
  const std::uint64_t held = held_bytes_.load(std::memory_order_relaxed);
  if (held > most || place.size > most - held) {
    Buffer copy = Buffer::CopyOf(data, place.size);
    Release(place);
    return copy;
  }
  held_bytes_.fetch_add(place.size, std::memory_order_relaxed);
  return Buffer(data, place.size, new Export(shared_from_this(), place));
}

void ShmImports::Release(const ShmPlace& place) {
  link_->own->released(static_cast<std::uint32_t>(place.at))
      .store(place.generation, std::memory_order_release);
  link_->WakeForRoom();
}

// ---- records ----

ShmReceiver::ShmReceiver(std::shared_ptr<ShmLink> link, const Limits& limits)
    : link_(std::move(link)),
      exports_(std::make_shared<ShmImports>(link_)),
      imported_(link_),
      limits_(limits),
      record_(kShmRecordBytesMax) {}

absl::StatusOr<ShmReceiver::Got> ShmReceiver::Next() {
  const std::uint64_t tail = link_->peer->control().tail.load(std::memory_order_acquire);
  if (tail == head_) return Got::kNothing;
  const std::uint64_t unread = tail - head_;
  if (unread > link_->peer->sizes().ring_bytes || unread % kShmRecordAlign != 0) {
    return BrokenMemory("it claims to have written up to ", tail, " when ", head_,
                        " has been read");
  }
  ShmRecordHead head;
  LEEWAY_RETURN_IF_ERROR(ReadRecord(&head));
  if (head.bytes > unread)
    return BrokenMemory("a record of ", head.bytes, " bytes, ", unread, " written");
  absl::Status status;
  const auto type = static_cast<ShmRecordType>(head.type);
  if (type == ShmRecordType::kMessage) {
    status = BeginMessage(head);
  } else if (type == ShmRecordType::kPiece) {
    status = TakePiece(head);
  } else if (type == ShmRecordType::kTakenBack) {
    status = head.bytes < sizeof(head) + sizeof(ShmPlace)
                 ? BrokenMemory("a memory file without a number")
                 : imported_.Drop(PlaceAt(sizeof(head)).file);
  } else if (type != ShmRecordType::kPad) {
    status = BrokenMemory("a record of unknown type ", head.type);
  }
  LEEWAY_RETURN_IF_ERROR(status);
  head_ += head.bytes;
  link_->own->control().head.store(head_, std::memory_order_release);
  link_->WakeForRoom();
  const bool of_message = type == ShmRecordType::kMessage || type == ShmRecordType::kPiece;
  const bool complete = of_message && unfinished_.empty();
  return complete ? Got::kMessage : Got::kPart;
}

// Copies the record before any of it but its length is checked. The length is read once, and that
// value is used.
absl::Status ShmReceiver::ReadRecord(ShmRecordHead* head) {
  const std::uint64_t ring_bytes = link_->peer->sizes().ring_bytes;
  const std::uint64_t position = head_ & (ring_bytes - 1);
  const std::byte* from = link_->peer->ring() + position;
  std::memcpy(head, from, sizeof(*head));
  if (head->bytes < sizeof(*head) || head->bytes > kShmRecordBytesMax ||
      head->bytes % kShmRecordAlign != 0 || head->bytes > ring_bytes - position) {
    return BrokenMemory("a record of ", head->bytes, " bytes at ", position);
  }
  std::memcpy(record_.data() + sizeof(*head), from + sizeof(*head), head->bytes - sizeof(*head));
  return absl::OkStatus();
}

ShmPlace ShmReceiver::PlaceAt(std::uint64_t offset) const {
  ShmPlace place;
  std::memcpy(&place, record_.data() + offset, sizeof(place));
  return place;
}

absl::Status ShmReceiver::CheckArenaPlace(const ShmPlace& place) const {
  const std::uint64_t units = link_->peer->sizes().arena_units;
  if (place.size == 0 || place.at >= units || place.size > (units - place.at) * kShmUnitBytes) {
    return BrokenMemory("a frame of ", place.size, " bytes at unit ", place.at, " of ", units);
  }
  return absl::OkStatus();
}

const std::byte* ShmReceiver::ArenaAt(const ShmPlace& place) const {
  return link_->peer->arena() + place.at * kShmUnitBytes;
}

absl::Status ShmReceiver::BeginMessage(const ShmRecordHead& head) {
  if (!unfinished_.empty()) return BrokenMemory("a message within another");
  const std::uint64_t frames = head.frames;
  if (frames == 0 || frames > (head.bytes - sizeof(head)) / sizeof(ShmPlace)) {
    return BrokenMemory("a message of ", frames, " frames in ", head.bytes, " bytes");
  }
  payload_.clear();
  frames_ = 0;
  std::uint64_t cursor = ShmAligned(sizeof(head) + frames * sizeof(ShmPlace));
  for (std::uint64_t i = 0; i < frames; ++i) {
    const ShmPlace place = PlaceAt(sizeof(head) + i * sizeof(ShmPlace));
    LEEWAY_RETURN_IF_ERROR(TakeFrame(place, &cursor, head.bytes));
    ++frames_;
  }
  return absl::OkStatus();
}

absl::Status ShmReceiver::TakeFrame(const ShmPlace& place, std::uint64_t* cursor,
                                    std::uint64_t end) {
  const bool first = frames_ == 0;
  const bool kept = !first && payload_.size() < limits_.payload_frames_max;
  if (first && place.size > limits_.first_bytes_max) {
    return BrokenMemory("a first frame of ", place.size, " bytes, at most ",
                        limits_.first_bytes_max);
  }
  switch (static_cast<ShmPlaceKind>(place.kind)) {
    case ShmPlaceKind::kInline: {
      if (*cursor > end || place.size > end - *cursor) {
        return BrokenMemory("a frame of ", place.size, " bytes where ", end, " end");
      }
      const std::byte* bytes = record_.data() + *cursor;
      *cursor += ShmAligned(place.size);
      if (first) first_.assign(bytes, bytes + place.size);
      if (kept) payload_.push_back(Buffer::CopyOf(bytes, place.size));
      return absl::OkStatus();
    }
    case ShmPlaceKind::kArena:
      LEEWAY_RETURN_IF_ERROR(CheckArenaPlace(place));
      if (kept) {
        payload_.push_back(exports_->Take(place));
        return absl::OkStatus();
      }
      if (first) first_.assign(ArenaAt(place), ArenaAt(place) + place.size);
      exports_->Release(place);
      return absl::OkStatus();
    case ShmPlaceKind::kPieces: {
      if (place.size == 0 || place.size > limits_.frame_bytes_max) {
        return BrokenMemory("a frame of ", place.size, " bytes in pieces");
      }
      if (first) {
        first_.resize(place.size);
        unfinished_.AddInto(first_.data(), place.size);
      } else if (kept) {
        unfinished_.AddTo(&payload_, place.size);
      } else {
        unfinished_.AddDiscarded(place.size);
      }
      return absl::OkStatus();
    }
    case ShmPlaceKind::kExported:
      return TakeExported(place, kept);
  }
  return BrokenMemory("a frame of unknown kind ", place.kind);
}

// Prefix and header may not lie in a user's memory, because they are checked and then read again.
absl::Status ShmReceiver::TakeExported(const ShmPlace& place, bool kept) {
  if (frames_ == 0) return BrokenMemory("a first frame in exported memory");
  LEEWAY_ASSIGN_OR_RETURN(Buffer frame, imported_.Take(place));
  if (kept) payload_.push_back(std::move(frame));
  return absl::OkStatus();
}

absl::Status ShmReceiver::TakePiece(const ShmRecordHead& head) {
  if (unfinished_.empty() || head.bytes < sizeof(head) + sizeof(ShmPlace)) {
    return BrokenMemory("a piece of no frame");
  }
  const ShmPlace place = PlaceAt(sizeof(head));
  LEEWAY_RETURN_IF_ERROR(CheckArenaPlace(place));
  if (place.size > unfinished_.missing()) {
    return BrokenMemory("a piece of ", place.size, " bytes where ", unfinished_.missing(),
                        " are missing");
  }
  const absl::Status taken = unfinished_.Take(ArenaAt(place), place.size, &payload_);
  exports_->Release(place);
  return taken;
}

Arrival ShmReceiver::TakeArrival() {
  Arrival arrival;
  arrival.head = first_;
  arrival.payload = std::move(payload_);
  payload_.clear();
  arrival.frames = frames_;
  return arrival;
}

}  // namespace leeway::van
