#include "van/shm/shm_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::van {
namespace {

constexpr std::size_t kLooksPerAllocation = 8;
// A frame may take 1/kShmArenaShare of the arena; longer ones are sent in pieces.
constexpr std::uint64_t kShmArenaShare = 4;
// A record with one place and nothing else.
constexpr std::uint64_t kSmallRecordBytes = ShmAligned(sizeof(ShmRecordHead) + sizeof(ShmPlace));

std::uint64_t PieceBytesMax(const ShmSizes& sizes) {
  return std::max<std::uint64_t>(kShmUnitBytes,
                                 std::min(kShmPieceBytesMax, sizes.ArenaBytes() / kShmArenaShare));
}

}  // namespace

ShmSender::ShmSender(std::shared_ptr<ShmLink> link, DoneList* done)
    : link_(std::move(link)),
      done_(done),
      arena_(link_->own->sizes().arena_units),
      exporter_(link_, done) {}

void ShmSender::Send(const Prefix& prefix, Message message, SendDone done) {
  Outgoing out;
  PutPrefix(prefix, out.prefix.data());
  out.message = std::move(message);
  out.done = std::move(done);
  const std::size_t places = (out.message.payload.size() + 1) * sizeof(ShmPlace);
  if (!status_.ok() || sizeof(ShmRecordHead) + places > kShmRecordBytesMax - kPrefixBytes) {
    done_->Add(
        std::move(out.done),
        status_.ok() ? absl::InvalidArgumentError("too many frames for one message") : status_);
    return;
  }
  queue_.push_back(std::move(out));
  if (queue_.size() == 1) Flush();
}

bool ShmSender::Flush() {
  bool any = false;
  bool asked = false;
  while (!idle() && status_.ok()) {
    const std::uint64_t freed = link_->peer->control().freed.load(std::memory_order_acquire);
    const std::uint64_t before = tail_;
    const bool telling = memory_freed_;
    const bool all = telling ? WriteTakenBack() : Write(queue_.front());
    if (tail_ != before) any = true;
    if (all && telling) {
      memory_freed_ = false;
      continue;
    }
    if (all) {
      Finish(std::move(queue_.front()));
      queue_.pop_front();
      continue;
    }
    if (after_step_) after_step_();
    // Tries once more after asking, because no wake-up tells of room that was made before.
    if (asked && tail_ == before) break;
    link_->WaitForRoom(freed);
    asked = true;
    if (after_step_) after_step_();
  }
  if (idle()) link_->WaitNoMore();
  return any;
}

void ShmSender::Fail(const absl::Status& why) {
  if (status_.ok()) status_ = why;
  for (Outgoing& out : std::exchange(queue_, {})) {
    exporter_.End(&out.exports);
    done_->Add(std::move(out.done), why);
  }
  exporter_.EndAll(why);
}

// The whole message has been written. Its exports have to come back before it is done.
void ShmSender::Finish(Outgoing out) {
  if (out.exports.empty()) return done_->Add(std::move(out.done), absl::OkStatus());
  exporter_.Follow(std::move(out.message), std::move(out.done), std::move(out.exports));
}

bool ShmSender::Write(Outgoing& out) {
  if (!out.begun && !Begin(out)) return false;
  while (!out.pieces.empty()) {
    if (!WritePiece(out)) return false;
  }
  return true;
}

// ---- a message ----

std::span<const std::byte> ShmSender::FrameOf(const Outgoing& out, std::size_t frame) {
  return frame == 0 ? out.long_head.bytes() : out.message.payload[frame - 1].bytes();
}

bool ShmSender::Begin(Outgoing& out) {
  Plan plan;
  if (!PlanFrames(out, &plan)) {
    for (; !plan.extents.empty(); plan.extents.pop_back()) arena_.Undo(plan.extents.back());
    exporter_.Undo(&plan.exports);
    out.pieces.clear();
    return false;
  }
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    const ShmPlace& place = plan.places[i];
    if (static_cast<ShmPlaceKind>(place.kind) != ShmPlaceKind::kArena) continue;
    std::memcpy(link_->own->arena() + place.at * kShmUnitBytes, FrameOf(out, i).data(), place.size);
  }
  WriteRecord(out, plan);
  out.exports = std::move(plan.exports);
  out.begun = true;
  return true;
}

bool ShmSender::PlanFrames(Outgoing& out, Plan* plan) {
  const std::size_t frames = out.message.payload.size() + 1;
  plan->record_bytes = ShmAligned(sizeof(ShmRecordHead) + frames * sizeof(ShmPlace));
  for (std::size_t i = 0; i < frames; ++i) {
    ShmPlace place{};
    place.size =
        i == 0 ? kPrefixBytes + out.message.header.size() : out.message.payload[i - 1].size();
    place.kind = static_cast<std::uint32_t>(ShmPlaceKind::kInline);
    if (place.size <= kShmInlineBytesMax &&
        plan->record_bytes + ShmAligned(place.size) <= kShmRecordBytesMax) {
      plan->record_bytes += ShmAligned(place.size);
    } else if (i == 0 && out.long_head.empty()) {
      std::byte* head = nullptr;
      out.long_head = Buffer::Allocate(place.size, &head);
      std::memcpy(head, out.prefix.data(), kPrefixBytes);
      std::memcpy(head + kPrefixBytes, out.message.header.data(), out.message.header.size());
    }
    plan->places.push_back(place);
  }
  if (!HasRoom(plan->record_bytes)) return false;
  std::uint64_t inlined = ShmAligned(sizeof(ShmRecordHead) + frames * sizeof(ShmPlace));
  for (std::size_t i = 0; i < frames; ++i) {
    ShmPlace& place = plan->places[i];
    if (place.size <= kShmInlineBytesMax &&
        inlined + ShmAligned(place.size) <= kShmRecordBytesMax) {
      inlined += ShmAligned(place.size);
      continue;
    }
    if (i > 0 && exporter_.Export(out.message.payload[i - 1], &place, &plan->exports)) continue;
    if (place.size <= arena_.units() / kShmArenaShare * kShmUnitBytes) {
      if (PlaceInArena(place.size, plan, &place)) continue;
      // The other side has read everything and the frame still does not fit: extents that are held
      // for long lie in between, so the frame is sent in pieces.
      ReadHead();
      if (head_ != tail_) return false;
    }
    place.kind = static_cast<std::uint32_t>(ShmPlaceKind::kPieces);
    out.pieces.push_back({i, 0});
  }
  return status_.ok();
}

bool ShmSender::PlaceInArena(std::uint64_t size, Plan* plan, ShmPlace* place) {
  const std::optional<ShmExtent> extent = Allocate(size);
  if (!extent.has_value()) return false;
  plan->extents.push_back(*extent);
  place->kind = static_cast<std::uint32_t>(ShmPlaceKind::kArena);
  place->at = extent->unit;
  place->generation = extent->generation;
  return true;
}

void ShmSender::WriteRecord(const Outgoing& out, const Plan& plan) {
  std::byte* record = NextRecord(plan.record_bytes);
  const ShmRecordHead head{static_cast<std::uint32_t>(plan.record_bytes),
                           static_cast<std::uint32_t>(ShmRecordType::kMessage),
                           static_cast<std::uint32_t>(plan.places.size()), 0};
  std::memcpy(record, &head, sizeof(head));
  std::memcpy(record + sizeof(head), plan.places.data(), plan.places.size() * sizeof(ShmPlace));
  std::byte* to = record + ShmAligned(sizeof(head) + plan.places.size() * sizeof(ShmPlace));
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    const ShmPlace& place = plan.places[i];
    if (static_cast<ShmPlaceKind>(place.kind) != ShmPlaceKind::kInline || place.size == 0) continue;
    if (i == 0) {
      std::memcpy(to, out.prefix.data(), kPrefixBytes);
      if (!out.message.header.empty()) {
        std::memcpy(to + kPrefixBytes, out.message.header.data(), out.message.header.size());
      }
    } else {
      std::memcpy(to, out.message.payload[i - 1].data(), place.size);
    }
    to += ShmAligned(place.size);
  }
  Publish();
}

bool ShmSender::WritePiece(Outgoing& out) {
  if (!HasRoom(kSmallRecordBytes)) return false;
  Outgoing::Pieces& pieces = out.pieces.front();
  const std::span<const std::byte> rest = FrameOf(out, pieces.frame).subspan(pieces.written);
  std::uint64_t bytes = std::min<std::uint64_t>(rest.size(), PieceBytesMax(link_->own->sizes()));
  std::optional<ShmExtent> extent = Allocate(bytes);
  while (!extent.has_value() && bytes > kShmUnitBytes) {
    bytes = std::max<std::uint64_t>(kShmUnitBytes, bytes / 2);
    extent = arena_.Allocate(bytes);
  }
  if (!extent.has_value()) return false;
  std::memcpy(link_->own->arena() + std::uint64_t{extent->unit} * kShmUnitBytes, rest.data(),
              bytes);
  ShmPlace place{};
  place.size = bytes;
  place.at = extent->unit;
  place.kind = static_cast<std::uint32_t>(ShmPlaceKind::kArena);
  place.generation = extent->generation;
  WriteSmallRecord(ShmRecordType::kPiece, place);
  pieces.written += bytes;
  if (bytes == rest.size()) out.pieces.pop_front();
  return true;
}

// Tells the other side of freed memory. True if it has been told of all.
bool ShmSender::WriteTakenBack() {
  while (const std::optional<std::uint32_t> file = exporter_.TakenBack()) {
    if (!HasRoom(kSmallRecordBytes)) return false;
    ShmPlace place{};
    place.file = *file;
    WriteSmallRecord(ShmRecordType::kTakenBack, place);
    exporter_.NoteTold(*file, tail_);
  }
  return true;
}

void ShmSender::WriteSmallRecord(ShmRecordType type, const ShmPlace& place) {
  std::byte* record = NextRecord(kSmallRecordBytes);
  const ShmRecordHead head{static_cast<std::uint32_t>(kSmallRecordBytes),
                           static_cast<std::uint32_t>(type), 1, 0};
  std::memcpy(record, &head, sizeof(head));
  std::memcpy(record + sizeof(head), &place, sizeof(place));
  Publish();
}

// ---- the ring ----

bool ShmSender::HasRoom(std::uint64_t record_bytes) {
  const std::uint64_t ring_bytes = link_->own->sizes().ring_bytes;
  const std::uint64_t to_end = ring_bytes - (tail_ & (ring_bytes - 1));
  const std::uint64_t needed = record_bytes <= to_end ? record_bytes : to_end + record_bytes;
  if (needed <= ring_bytes - (tail_ - head_)) return true;
  ReadHead();
  return status_.ok() && needed <= ring_bytes - (tail_ - head_);
}

void ShmSender::ReadHead() {
  const std::uint64_t head = link_->peer->control().head.load(std::memory_order_acquire);
  if (head < head_ || head > tail_) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "its shared memory is malformed: it claims to have read up to ", head, " of ", tail_));
    return;
  }
  head_ = head;
}

// Returns where the record is to be written; one that would cross the end of the ring begins at its
// start.
std::byte* ShmSender::NextRecord(std::uint64_t record_bytes) {
  const std::uint64_t ring_bytes = link_->own->sizes().ring_bytes;
  std::uint64_t position = tail_ & (ring_bytes - 1);
  const std::uint64_t to_end = ring_bytes - position;
  if (record_bytes > to_end) {
    const ShmRecordHead pad{static_cast<std::uint32_t>(to_end),
                            static_cast<std::uint32_t>(ShmRecordType::kPad), 0, 0};
    std::memcpy(link_->own->ring() + position, &pad, sizeof(pad));
    tail_ += to_end;
    position = 0;
  }
  tail_ += record_bytes;
  return link_->own->ring() + position;
}

void ShmSender::Publish() {
  link_->own->control().tail.store(tail_, std::memory_order_release);
  link_->WakeForMessage();
}

// ---- the arena ----

bool ShmSender::IsReleased(const ShmExtent& extent) const {
  return link_->peer->released(extent.unit) == extent.generation;
}

std::optional<ShmExtent> ShmSender::Allocate(std::uint64_t bytes) {
  const auto released = [this](const ShmExtent& extent) { return IsReleased(extent); };
  arena_.Reclaim(released, kLooksPerAllocation);
  std::optional<ShmExtent> extent = arena_.Allocate(bytes);
  if (extent.has_value()) return extent;
  arena_.Reclaim(released, arena_.out());
  return arena_.Allocate(bytes);
}

}  // namespace leeway::van
