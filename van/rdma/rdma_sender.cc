#include "van/rdma/rdma_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/little_endian.h"
#include "van/rdma/rdma_receiver.h"

namespace leeway::van {
namespace {

constexpr std::uint64_t kSignalEvery = 16;
// After this many bytes a completion is requested, since other sends may be waiting for it.
constexpr std::uint64_t kSignalBytes = 1 << 20;
constexpr std::size_t kWritesMax = 32;  // writes of one message
// The largest write: less than the limit of any device.
constexpr std::uint64_t kWriteBytesMax = 4 << 20;
// A frame may take 1/kArenaShare of the arena; longer ones are sent in pieces.
constexpr std::uint32_t kArenaShare = 4;
constexpr std::uint64_t kPieceBytesMax = 1 << 20;
// Credits reserved for reports and control packets, so that the reports that return credit always
// have credit themselves.
constexpr std::uint32_t kControlCredits = 4;

std::uint32_t UnitsFor(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kRdmaUnitBytes - 1) / kRdmaUnitBytes);
}

}  // namespace

RdmaSender::RdmaSender(verbs::Connection* connection, RdmaPort* port, RdmaMemory slots,
                       const RdmaSizes& own, const RdmaGreeting& theirs, RdmaReceiver* receiver,
                       DoneList* done)
    : connection_(connection),
      port_(port),
      slots_(std::move(slots)),
      slot_bytes_(std::min(own.slot_bytes, theirs.slot_bytes)),
      slot_count_(own.packets),
      credits_(theirs.packets),
      signal_every_(std::min(kSignalEvery, std::uint64_t{own.packets} / 2)),
      send_depth_(connection->device()->info().send_depth),
      write_bytes_min_(own.write_bytes_min),
      receiver_(receiver),
      done_(done),
      slot_requests_(own.packets, 0) {}

void RdmaSender::Send(const Prefix& prefix, Message message, SendDone done) {
  Outgoing out;
  PutPrefix(prefix, out.prefix.data());
  out.receive_token = prefix.receive_token;
  out.message = std::move(message);
  out.done = std::move(done);
  const std::size_t places = (out.message.payload.size() + 1) * kRdmaPlaceBytes;
  if (!status_.ok() || places > RdmaBodyBytes(slot_bytes_) / 2) {
    done_->Add(
        std::move(out.done),
        status_.ok() ? absl::InvalidArgumentError("too many frames for one message") : status_);
    return;
  }
  queue_.push_back(std::move(out));
}

absl::Status RdmaSender::Flush() {
  while (status_.ok() && !queue_.empty()) {
    LEEWAY_ASSIGN_OR_RETURN(const bool all, Advance(queue_.front()));
    if (!all) return absl::OkStatus();
    Finish(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (!wants_end_ || !status_.ok()) return absl::OkStatus();
  LEEWAY_ASSIGN_OR_RETURN(const bool sent, SendSmall(RdmaPacketType::kEnd, {}));
  if (!sent) return absl::OkStatus();
  wants_end_ = false;
  return RequestCompletion();
}

void RdmaSender::Fail(const absl::Status& why) {
  if (status_.ok()) status_ = why;
  wants_end_ = false;
  for (Held& held : std::exchange(held_, {})) done_->Add(std::move(held.out.done), why);
  for (Outgoing& out : std::exchange(queue_, {})) done_->Add(std::move(out.done), why);
}

void RdmaSender::Finish(Outgoing out) {
  if (!out.holds) return done_->Add(std::move(out.done), absl::OkStatus());
  held_.push_back({posted_, std::move(out)});
}

// Sends as much as fits; true if the whole message has been posted.
absl::StatusOr<bool> RdmaSender::Advance(Outgoing& out) {
  if (!out.begun) {
    LEEWAY_ASSIGN_OR_RETURN(const bool begun, Begin(out));
    if (!begun) return false;
  }
  while (!out.pieces.empty()) {
    LEEWAY_ASSIGN_OR_RETURN(const bool sent, SendPiece(out));
    if (!sent) return false;
  }
  return true;
}

// ---- a message ----

std::span<const std::byte> RdmaSender::FrameOf(const Outgoing& out, std::size_t frame) {
  return frame == 0 ? out.long_head.bytes() : out.message.payload[frame - 1].bytes();
}

// Plans which frames are inline in the packet; true if there are others.
bool RdmaSender::PlanInline(Outgoing& out, PlaceList* places) const {
  const std::size_t frames = out.message.payload.size() + 1;
  std::size_t body = frames * kRdmaPlaceBytes;
  bool others = false;
  for (std::size_t i = 0; i < frames; ++i) {
    RdmaPlace place;
    place.bytes =
        i == 0 ? kPrefixBytes + out.message.header.size() : out.message.payload[i - 1].size();
    if (place.bytes <= RdmaBodyBytes(slot_bytes_) &&
        body + RdmaPadded(place.bytes) <= RdmaBodyBytes(slot_bytes_)) {
      body += RdmaPadded(place.bytes);
    } else {
      place.kind = RdmaPlaceKind::kPieces;
      others = true;
      if (i == 0 && out.long_head.empty()) {
        std::byte* head = nullptr;
        out.long_head = Buffer::Allocate(place.bytes, &head);
        std::memcpy(head, out.prefix.data(), kPrefixBytes);
        std::memcpy(head + kPrefixBytes, out.message.header.data(), out.message.header.size());
      }
    }
    places->push_back(place);
  }
  return others;
}

absl::StatusOr<bool> RdmaSender::Begin(Outgoing& out) {
  // Grants made before this message are reported before it.
  while (receiver_->grants().untold() > kRdmaGrantsMax) {
    LEEWAY_ASSIGN_OR_RETURN(const bool told, SendSmall(RdmaPacketType::kCredit, {}));
    if (!told) return false;
  }
  PlaceList places;
  WriteList writes;
  const bool others = PlanInline(out, &places);
  const std::size_t most = std::max(places.size(), GrantedWrites(out, places));
  if (!HasRoom(std::min(most, kWritesMax), /*control=*/false)) return false;
  PlanGranted(out, &places, &writes);
  for (std::size_t i = 1; others && i < places.size(); ++i) {
    RdmaPlace& place = places[i];
    if (place.kind != RdmaPlaceKind::kPieces || place.bytes < write_bytes_min_ ||
        writes.size() >= kWritesMax) {
      continue;
    }
    const absl::StatusOr<Room> room = PlanWrite(out, i, &place, &writes);
    if (!room.ok() || *room == Room::kWait) {
      Undo(writes);
      if (!room.ok()) return room.status();
      return false;
    }
  }
  LEEWAY_RETURN_IF_ERROR(SendMessage(out, places, writes));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].kind == RdmaPlaceKind::kPieces) out.pieces.push_back({i, 0});
  }
  out.holds = !writes.empty();
  out.begun = true;
  return true;
}

absl::StatusOr<RdmaSender::Room> RdmaSender::PlanWrite(Outgoing& out, std::size_t frame,
                                                       RdmaPlace* place, WriteList* writes) {
  LEEWAY_ASSIGN_OR_RETURN(Room room, AskForArena());
  if (room != Room::kYes ||
      place->bytes > std::uint64_t{units_->units() / kArenaShare} * kRdmaUnitBytes) {
    return room == Room::kWait ? Room::kWait : Room::kNo;
  }
  const verbs::MemoryRegion* const region = Register(out, frame);
  if (region == nullptr) return Room::kNo;
  std::uint32_t unit = 0;
  LEEWAY_ASSIGN_OR_RETURN(room, Allocate(place->bytes, &unit));
  if (room != Room::kYes) return room;
  place->kind = RdmaPlaceKind::kArena;
  place->unit = unit;
  writes->push_back(ArenaWrite(FrameOf(out, frame), *region, unit));
  return Room::kYes;
}

RdmaSender::Write RdmaSender::ArenaWrite(std::span<const std::byte> from,
                                         const verbs::MemoryRegion& region,
                                         std::uint32_t unit) const {
  return {{from.data(), static_cast<std::uint32_t>(from.size()), region.local_key()},
          arena_.address + std::uint64_t{unit} * kRdmaUnitBytes,
          arena_.key,
          unit};
}

// The number of writes for the payload, if it goes to a grant; 0: it does not.
std::size_t RdmaSender::GrantedWrites(const Outgoing& out, const PlaceList& places) const {
  if (out.receive_token == 0 || places.size() != 2 ||
      places.back().kind != RdmaPlaceKind::kPieces) {
    return 0;
  }
  const std::size_t writes = (places.back().bytes + kWriteBytesMax - 1) / kWriteBytesMax;
  return writes <= std::min<std::size_t>(kWritesMax, send_depth_ / 2) ? writes : 0;
}

// Plans to write an answer to its grant. The grant is used up even if it does not fit, as the other
// side assumes when the answer comes.
void RdmaSender::PlanGranted(Outgoing& out, PlaceList* places, WriteList* writes) {
  if (out.receive_token == 0 || places->size() != 2) return;
  RdmaPlace& place = places->back();
  const std::optional<RdmaGrant> grant = grants_.Use(out.receive_token, place.bytes);
  if (!grant.has_value() || GrantedWrites(out, *places) == 0) return;
  const verbs::MemoryRegion* const region = Register(out, 1);
  if (region == nullptr) return;
  place.kind = RdmaPlaceKind::kGranted;
  place.unit = grant->number;
  const std::span<const std::byte> frame = FrameOf(out, 1);
  for (std::uint64_t at = 0; at < frame.size(); at += kWriteBytesMax) {
    const std::uint64_t bytes = std::min(kWriteBytesMax, frame.size() - at);
    writes->push_back({{frame.data() + at, static_cast<std::uint32_t>(bytes), region->local_key()},
                       grant->address + at,
                       grant->key,
                       0});
  }
}

absl::Status RdmaSender::SendMessage(const Outgoing& out, const PlaceList& places,
                                     const WriteList& writes) {
  std::byte* at = BeginPacket(RdmaPacketType::kMessage, places.size());
  for (const RdmaPlace& place : places) {
    Put(place, at);
    at += kRdmaPlaceBytes;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].kind != RdmaPlaceKind::kInline) continue;
    const std::size_t bytes = places[i].bytes;
    if (i == 0) {
      std::memcpy(at, out.prefix.data(), kPrefixBytes);
      if (bytes > kPrefixBytes) {
        std::memcpy(at + kPrefixBytes, out.message.header.data(), bytes - kPrefixBytes);
      }
    } else if (bytes > 0) {
      std::memcpy(at, out.message.payload[i - 1].data(), bytes);
    }
    std::memset(at + bytes, 0, RdmaPadded(bytes) - bytes);
    at += RdmaPadded(bytes);
  }
  return Post(at, writes);
}

// ---- pieces ----

absl::StatusOr<bool> RdmaSender::SendPiece(Outgoing& out) {
  if (!HasRoom(1, /*control=*/false)) return false;
  Outgoing::Pieces& pieces = out.pieces.front();
  const std::span<const std::byte> rest = FrameOf(out, pieces.frame).subspan(pieces.sent);
  RdmaPlace place;
  WriteList writes;
  LEEWAY_ASSIGN_OR_RETURN(const Room room, PlanPiece(out, rest, &place, &writes));
  if (room == Room::kWait) return false;
  if (room == Room::kNo) {
    place.bytes =
        std::min<std::uint64_t>(rest.size(), RdmaBodyBytes(slot_bytes_) - kRdmaPlaceBytes - 8);
  } else {
    out.holds = true;
  }
  std::byte* at = BeginPacket(RdmaPacketType::kPiece, 0);
  Put(place, at);
  at += kRdmaPlaceBytes;
  if (room == Room::kNo) {
    std::memcpy(at, rest.data(), place.bytes);
    std::memset(at + place.bytes, 0, RdmaPadded(place.bytes) - place.bytes);
    at += RdmaPadded(place.bytes);
  }
  LEEWAY_RETURN_IF_ERROR(Post(at, writes));
  pieces.sent += place.bytes;
  if (place.bytes == rest.size()) out.pieces.pop_front();
  return true;
}

absl::StatusOr<RdmaSender::Room> RdmaSender::PlanPiece(Outgoing& out,
                                                       std::span<const std::byte> rest,
                                                       RdmaPlace* place, WriteList* writes) {
  const std::size_t frame = out.pieces.front().frame;
  if (frame == 0 || rest.size() < write_bytes_min_) return Room::kNo;
  LEEWAY_ASSIGN_OR_RETURN(Room room, AskForArena());
  if (room != Room::kYes) return room;
  const verbs::MemoryRegion* const region = Register(out, frame);
  if (region == nullptr) return Room::kNo;
  std::uint64_t bytes = std::min<std::uint64_t>(
      {rest.size(), kPieceBytesMax, std::uint64_t{units_->units() / kArenaShare} * kRdmaUnitBytes});
  std::uint32_t unit = 0;
  while (true) {
    LEEWAY_ASSIGN_OR_RETURN(room, Allocate(bytes, &unit));
    if (room != Room::kNo) break;
    if (bytes / 2 < write_bytes_min_) return Room::kNo;
    bytes /= 2;
  }
  if (room == Room::kWait) return room;
  place->kind = RdmaPlaceKind::kArena;
  place->bytes = bytes;
  place->unit = unit;
  writes->push_back(ArenaWrite(rest.first(bytes), *region, unit));
  return Room::kYes;
}

// ---- memory ----

verbs::MemoryRegion* RdmaSender::Register(Outgoing& out, std::size_t frame) {
  const auto [found, added] = out.regions.try_emplace(frame);
  if (added) found->second = port_->RegionOf(FrameOf(out, frame));
  return found->second.get();
}

// Whether there is an arena; asks for one if that was not done.
absl::StatusOr<RdmaSender::Room> RdmaSender::AskForArena() {
  if (arena_state_ == ArenaState::kNone) {
    LEEWAY_ASSIGN_OR_RETURN(const bool sent, SendSmall(RdmaPacketType::kArenaWanted, {}));
    if (sent) arena_state_ = ArenaState::kWanted;
  }
  if (arena_state_ == ArenaState::kGranted) return Room::kYes;
  return arena_state_ == ArenaState::kRefused ? Room::kNo : Room::kWait;
}

// If there is no room, the other side is asked to report releases. If there is none after its
// answer, the extents in use are held for long (kNo).
absl::StatusOr<RdmaSender::Room> RdmaSender::Allocate(std::uint64_t bytes, std::uint32_t* unit) {
  const std::uint32_t units = UnitsFor(bytes);
  if (const std::optional<std::uint32_t> found = units_->Allocate(units)) {
    *unit = *found;
    extents_[*found] = units;
    room_asked_ = 0;
    return Room::kYes;
  }
  if (room_asked_ != 0) return taken_ >= room_asked_ ? Room::kNo : Room::kWait;
  LEEWAY_ASSIGN_OR_RETURN(const bool sent, SendSmall(RdmaPacketType::kRoomWanted, {}));
  if (sent) room_asked_ = packets_;
  return Room::kWait;
}

// Frees the units of writes that were not posted.
void RdmaSender::Undo(const WriteList& writes) {
  for (const Write& write : writes) {
    const auto extent = extents_.find(write.unit);
    units_->Free(extent->first, extent->second);
    extents_.erase(extent);
  }
}

absl::StatusOr<bool> RdmaSender::GrantArena(const RdmaArena& arena) {
  std::array<std::byte, sizeof(arena)> body;
  Put(arena, body.data());
  return SendSmall(RdmaPacketType::kArena, body);
}

// ---- packets ----

bool RdmaSender::HasRoom(std::size_t writes, bool control) const {
  const std::uint64_t credits = control ? credits_ : credits_ - kControlCredits;
  return packets_ - taken_ < credits && packets_ - freed_slots_ < slot_count_ &&
         posted_ - completed_ + writes + 1 < send_depth_;
}

std::byte* RdmaSender::BeginPacket(RdmaPacketType type, std::size_t frames) {
  packet_ = slots_.data() + packets_ % slot_count_ * slot_bytes_;
  head_ = RdmaHead();
  head_.type = type;
  head_.frames = static_cast<std::uint16_t>(frames);
  std::array<std::uint32_t, kRdmaReleasesMax> units;
  std::array<RdmaGrant, kRdmaGrantsMax> grants;
  receiver_->Report(&head_, &units, &grants);
  std::byte* at = packet_ + kRdmaHeadBytes;
  std::memset(at, 0, RdmaReleaseBytes(head_.releases));
  for (std::size_t i = 0; i < head_.releases; ++i) Put(units[i], at + 4 * i);
  at += RdmaReleaseBytes(head_.releases);
  for (std::size_t i = 0; i < head_.grants; ++i, at += kRdmaGrantBytes) Put(grants[i], at);
  return at;
}

// Posts the writes and then the packet that was begun, which ends at `end`.
absl::Status RdmaSender::Post(const std::byte* end, const WriteList& writes) {
  head_.bytes = static_cast<std::uint32_t>(end - packet_);
  Put(head_, packet_);
  absl::InlinedVector<verbs::SendRequest, 3> requests;
  for (const Write& write : writes) {
    verbs::SendRequest request;
    request.id = ++posted_;
    request.opcode = verbs::Opcode::kWrite;
    request.segments = {&write.from, 1};
    request.remote_address = write.address;
    request.remote_key = write.key;
    requests.push_back(request);
    unsignalled_bytes_ += write.from.bytes;
  }
  const verbs::Segment packet =
      slots_.Part(static_cast<std::size_t>(packet_ - slots_.data()), head_.bytes);
  verbs::SendRequest request;
  request.id = ++posted_;
  request.segments = {&packet, 1};
  request.signalled = posted_ - signalled_ >= signal_every_ || unsignalled_bytes_ >= kSignalBytes;
  if (request.signalled) {
    signalled_ = posted_;
    unsignalled_bytes_ = 0;
  }
  requests.push_back(request);
  slot_requests_[packets_ % slot_count_] = posted_;
  ++packets_;
  return connection_->Post(requests);
}

// False: there is no room for it yet.
absl::StatusOr<bool> RdmaSender::SendSmall(RdmaPacketType type, std::span<const std::byte> body) {
  if (!status_.ok() || !HasRoom(0, /*control=*/true)) return false;
  std::byte* const at = BeginPacket(type, 0);
  std::copy(body.begin(), body.end(), at);
  LEEWAY_RETURN_IF_ERROR(Post(at + body.size(), {}));
  return true;
}

// ---- what is heard ----

// Posts an empty signalled write, whose completion implies that all requests before it are done.
absl::Status RdmaSender::RequestCompletion() {
  if (signalled_ == posted_ || !status_.ok() || posted_ - completed_ + 1 >= send_depth_) {
    return absl::OkStatus();
  }
  verbs::SendRequest request;
  request.id = ++posted_;
  request.opcode = verbs::Opcode::kWrite;
  request.remote_address = arena_.address;
  request.remote_key = arena_.key;
  request.signalled = true;
  signalled_ = posted_;
  unsignalled_bytes_ = 0;
  return connection_->Post({&request, 1});
}

void RdmaSender::OnCompleted(std::uint64_t id) {
  completed_ = std::max(completed_, std::min(id, posted_));
  while (freed_slots_ < packets_ && slot_requests_[freed_slots_ % slot_count_] <= completed_) {
    ++freed_slots_;
  }
  while (!held_.empty() && held_.front().last <= completed_) {
    done_->Add(std::move(held_.front().out.done), absl::OkStatus());
    held_.pop_front();
  }
}

absl::Status RdmaSender::OnTaken(std::uint32_t taken) {
  const std::uint64_t now = taken_ + (taken - static_cast<std::uint32_t>(taken_));
  if (now > packets_) {
    return absl::InvalidArgumentError(
        absl::StrCat("claims to have taken ", taken, " packets of ", packets_, " sent"));
  }
  taken_ = now;
  return absl::OkStatus();
}

absl::Status RdmaSender::OnReleased(std::uint32_t unit) {
  const auto extent = extents_.find(unit);
  if (extent == extents_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("releases unit ", unit, ", which it does not hold"));
  }
  units_->Free(extent->first, extent->second);
  extents_.erase(extent);
  return absl::OkStatus();
}

absl::Status RdmaSender::OnArena(const RdmaArena& arena) {
  if (arena_state_ != ArenaState::kWanted || arena.units > kRdmaUnitsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("grants ", arena.units, " units that were not asked for"));
  }
  arena_state_ = arena.units < kArenaShare ? ArenaState::kRefused : ArenaState::kGranted;
  if (arena_state_ == ArenaState::kRefused) return absl::OkStatus();
  arena_ = arena;
  units_ = std::make_unique<UnitMap>(arena.units);
  return absl::OkStatus();
}

}  // namespace leeway::van
