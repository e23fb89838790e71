// The sending half of an rdma connection: messages into packets and writes.
//
// What is small is copied into a slot of this side's slab and sent. Large frames are written from
// where they lie, if they can be registered: answers into the memory that was posted for them, all
// others into the arena that the other side has granted. A message's packet follows its writes on
// the same connection, so they have arrived when it has. A frame for which the arena has no room
// comes in pieces.
//
// Requests are numbered; the completion of one tells that all before it are done. One in
// kSignalEvery is signalled, and the last of those that hold a user's memory, soon (Settle).
#ifndef LEEWAY_VAN_RDMA_RDMA_SENDER_H_
#define LEEWAY_VAN_RDMA_RDMA_SENDER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "van/done_list.h"
#include "van/rdma/memory/rdma_format.h"
#include "van/rdma/memory/rdma_grants.h"
#include "van/rdma/memory/rdma_memory.h"
#include "van/rdma/memory/rdma_regions.h"
#include "van/rdma/verbs/verbs.h"
#include "van/transport.h"
#include "van/unit_map.h"

namespace leeway::van {

// What every packet says of what was received.
class RdmaPacketSource {
 public:
  virtual ~RdmaPacketSource() = default;
  // Fills in `taken`, `releases` and `grants`; the latter two into `units` and `given`. What is
  // filled in counts as said.
  virtual void Report(RdmaHead* head, std::array<std::uint32_t, kRdmaReleasesMax>* units,
                      std::array<RdmaGrant, kRdmaGrantsMax>* given) = 0;
  // Grants that are to be told before what is sent from now on.
  virtual std::size_t grants_untold() const = 0;
};

class RdmaSender {
 public:
  // `slots` is at least packets · slot bytes long. `done` gets the sends that have ended.
  RdmaSender(verbs::Connection* connection, RdmaRegions* regions, RdmaMemory slots,
             const RdmaSizes& own, const RdmaGreeting& theirs, RdmaPacketSource* reports,
             DoneList* done);

  void Send(const Prefix& prefix, Message message, SendDone done);
  // What waits, as far as there is room. Not OK: the connection is of no more use.
  absl::Status Flush();
  // A packet of its own for what is to be reported; false: there is no room for one yet.
  absl::StatusOr<bool> Report() { return SendSmall(RdmaPacketType::kCredit, {}); }
  // The answer to kArenaWanted; false: there is no room for it yet.
  absl::StatusOr<bool> GrantArena(std::uint64_t address, std::uint32_t key, std::uint32_t units);
  // Nothing follows what was sent so far.
  void End() { wants_end_ = true; }
  // Asks for a completion, if sends are under way whose memory is held and none has been asked for.
  absl::Status Settle();

  void OnCompleted(std::uint64_t id);
  absl::Status OnTaken(std::uint32_t taken);
  absl::Status OnReleased(std::uint32_t unit);
  absl::Status OnArena(std::uint64_t address, std::uint32_t key, std::uint32_t units);
  absl::Status OnGrant(const RdmaGrant& grant) { return grants_.OnGrant(grant); }

  bool idle() const { return queue_.empty() && !wants_end_; }
  // All that was sent has arrived.
  bool delivered() const { return idle() && completed_ == posted_; }
  bool unsettled() const { return !held_.empty() && held_.back().last > signalled_; }
  void Fail(const absl::Status& why);

 private:
  struct Outgoing {
    std::array<std::byte, kPrefixBytes> prefix;
    std::uint64_t receive_token = 0;
    Message message;
    SendDone done;
    Buffer long_head;  // prefix and header, when they are too long to be inline
    bool begun = false;
    bool holds = false;  // the device reads its frames where they lie
    struct Pieces {
      std::size_t frame;
      std::uint64_t sent;
    };
    std::deque<Pieces> pieces;
    // By frame, where it was tried; null: it cannot be registered.
    std::map<std::size_t, std::shared_ptr<verbs::MemoryRegion>> regions;
  };
  // A send whose memory is the device's until request `last` is done.
  struct Held {
    std::uint64_t last = 0;
    Outgoing out;
  };
  struct Write {
    verbs::Segment from;
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t unit = 0;  // in the arena, if that is where it goes
  };
  using WriteList = absl::InlinedVector<Write, 2>;
  using PlaceList = absl::InlinedVector<RdmaPlace, 4>;
  enum class Arena { kNone, kWanted, kGranted, kRefused };
  // Whether there is memory in the arena for a frame; kWait: more may be known later.
  enum class Room { kYes, kNo, kWait };

  static std::span<const std::byte> FrameOf(const Outgoing& out, std::size_t frame);
  absl::StatusOr<bool> Advance(Outgoing& out);
  absl::StatusOr<bool> Begin(Outgoing& out);
  bool PlanInline(Outgoing& out, PlaceList* places) const;
  absl::StatusOr<Room> PlanWrite(Outgoing& out, std::size_t frame, RdmaPlace* place,
                                 WriteList* writes);
  Write ArenaWrite(std::span<const std::byte> from, const verbs::MemoryRegion& region,
                   std::uint32_t unit) const;
  std::size_t GrantedWrites(const Outgoing& out, const PlaceList& places) const;
  void PlanGranted(Outgoing& out, PlaceList* places, WriteList* writes);
  absl::Status SendMessage(const Outgoing& out, const PlaceList& places, const WriteList& writes);
  absl::StatusOr<bool> SendPiece(Outgoing& out);
  absl::StatusOr<Room> PlanPiece(Outgoing& out, std::span<const std::byte> rest, RdmaPlace* place,
                                 WriteList* writes);
  verbs::MemoryRegion* Register(Outgoing& out, std::size_t frame);
  absl::StatusOr<Room> Allocate(std::uint64_t bytes, std::uint32_t* unit);
  void Undo(const WriteList& writes);
  absl::StatusOr<Room> ArenaState();
  absl::StatusOr<bool> SendSmall(RdmaPacketType type, std::span<const std::byte> body);
  void Finish(Outgoing out);

  bool HasRoom(std::size_t writes, bool control) const;
  std::byte* BeginPacket(RdmaPacketType type, std::size_t frames);
  absl::Status Post(const std::byte* end, const WriteList& writes);

  verbs::Connection* const connection_;
  RdmaRegions* const regions_;
  const RdmaMemory slots_;
  const std::uint32_t slot_bytes_;  // the smaller of both sides'
  const std::uint32_t slot_count_;
  const std::uint32_t credits_;
  const std::uint64_t signal_every_;  // requests; slots are free again before they run out
  const std::uint32_t send_depth_;
  const std::uint64_t write_bytes_min_;  // shorter frames go into packets
  RdmaPacketSource* const reports_;
  DoneList* const done_;

  std::deque<Outgoing> queue_;
  std::deque<Held> held_;
  bool wants_end_ = false;
  absl::Status status_;

  // Requests.
  std::uint64_t posted_ = 0, completed_ = 0, signalled_ = 0;
  std::uint64_t unsignalled_bytes_ = 0;
  // Packets: sent, known to have been taken, and whose slots are free again.
  std::uint64_t packets_ = 0, taken_ = 0, freed_slots_ = 0;
  std::vector<std::uint64_t> slot_requests_;  // the request that sends from each slot

  Arena arena_ = Arena::kNone;
  std::uint64_t arena_address_ = 0;
  std::uint32_t arena_key_ = 0;
  std::unique_ptr<UnitMap> units_;
  RdmaGrantsGot grants_;
  std::map<std::uint32_t, std::uint32_t> extents_;  // out: first unit, units
  std::uint64_t room_asked_ = 0;  // the packet that asked for room, counted from 1; 0: none

  // The packet that is being written.
  RdmaHead head_;
  std::byte* packet_ = nullptr;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_SENDER_H_
