// RdmaSender is the sending half of an rdma connection: it makes packets and writes of messages.
// Lives on the transport's loop.
//
// Small parts are copied into a slot of this side's slab and sent. Large frames are written from
// where they are, if they can be registered: answers into the memory that was posted for them, all
// others into the arena that the other side has granted. A message's packet follows its writes on
// the same connection, so when it arrives the writes have arrived. A frame for which the arena has
// no room is sent in pieces.
//
// Requests are numbered; the completion of one implies that all before it are done. One in
// kSignalEvery is signalled, and also, soon, the last one that holds a user's memory
// (RequestCompletion).
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
#include "van/rdma/rdma_format.h"
#include "van/rdma/rdma_grants.h"
#include "van/rdma/rdma_port.h"
#include "van/rdma/verbs/verbs.h"
#include "van/transport.h"
#include "van/unit_map.h"

namespace leeway::van {

class RdmaReceiver;

class RdmaSender {
 public:
  // `slots` is at least packets times slot bytes long. Every packet has a report of what `receiver`
  // has taken. `done` gets the callbacks of sends that have ended.
  RdmaSender(verbs::Connection* connection, RdmaPort* port, RdmaMemory slots, const RdmaSizes& own,
             const RdmaGreeting& theirs, RdmaReceiver* receiver, DoneList* done);

  void Send(const Prefix& prefix, Message message, SendDone done);
  // Sends what waits, as far as there is room. Not OK: the connection cannot be used any more.
  absl::Status Flush();
  // Sends a packet for what is to be reported; false: there is no room for one yet.
  absl::StatusOr<bool> Report() { return SendSmall(RdmaPacketType::kCredit, {}); }
  // Answers kArenaWanted; false: there is no room for the answer yet.
  absl::StatusOr<bool> GrantArena(const RdmaArena& arena);
  // Nothing follows the messages sent so far: a kEnd packet is sent after them.
  void End() { wants_end_ = true; }
  // Requests a completion, if sends are under way whose memory is held and none has been requested.
  absl::Status RequestCompletion();

  void OnCompleted(std::uint64_t id);
  absl::Status OnTaken(std::uint32_t taken);
  absl::Status OnReleased(std::uint32_t unit);
  absl::Status OnArena(const RdmaArena& arena);
  absl::Status OnGrant(const RdmaGrant& grant) { return grants_.OnGrant(grant); }

  bool idle() const { return queue_.empty() && !wants_end_; }
  // True if everything that was sent has arrived.
  bool delivered() const { return idle() && completed_ == posted_; }
  bool unsignalled() const { return !held_.empty() && held_.back().last > signalled_; }
  void Fail(const absl::Status& why);

 private:
  struct Outgoing {
    std::array<std::byte, kPrefixBytes> prefix;
    std::uint64_t receive_token = 0;
    Message message;
    SendDone done;
    Buffer long_head;  // prefix and header, if too long to be inline
    bool begun = false;
    bool holds = false;  // the device reads its frames in place
    struct Pieces {
      std::size_t frame;
      std::uint64_t sent;
    };
    std::deque<Pieces> pieces;
    // By frame; null: it could not be registered. Missing: not tried.
    std::map<std::size_t, std::shared_ptr<verbs::MemoryRegion>> regions;
  };
  // A send whose memory the device may read until request `last` is done.
  struct Held {
    std::uint64_t last = 0;
    Outgoing out;
  };
  struct Write {
    verbs::Segment from;
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t unit = 0;  // its unit, if it goes to the arena
  };
  using WriteList = absl::InlinedVector<Write, 2>;
  using PlaceList = absl::InlinedVector<RdmaPlace, 4>;
  enum class ArenaState { kNone, kWanted, kGranted, kRefused };
  // Whether the arena has memory for a frame; kWait: that may be known later.
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
  absl::StatusOr<Room> AskForArena();
  absl::StatusOr<bool> SendSmall(RdmaPacketType type, std::span<const std::byte> body);
  void Finish(Outgoing out);

  bool HasRoom(std::size_t writes, bool control) const;
  std::byte* BeginPacket(RdmaPacketType type, std::size_t frames);
  absl::Status Post(const std::byte* end, const WriteList& writes);

  verbs::Connection* const connection_;
  RdmaPort* const port_;
  const RdmaMemory slots_;
  const std::uint32_t slot_bytes_;  // the smaller one of both sides
  const std::uint32_t slot_count_;
  const std::uint32_t credits_;
  const std::uint64_t signal_every_;  // in requests; slots are free again before they run out
  const std::uint32_t send_depth_;
  const std::uint64_t write_bytes_min_;  // shorter frames are copied into packets
  RdmaReceiver* const receiver_;
  DoneList* const done_;

  std::deque<Outgoing> queue_;
  std::deque<Held> held_;
  bool wants_end_ = false;
  absl::Status status_;

  // Numbers of requests.
  std::uint64_t posted_ = 0, completed_ = 0, signalled_ = 0;
  std::uint64_t unsignalled_bytes_ = 0;
  // Numbers of packets: sent, known to have been taken, and with slots that are free again.
  std::uint64_t packets_ = 0, taken_ = 0, freed_slots_ = 0;
  std::vector<std::uint64_t> slot_requests_;  // the request that sends from each slot

  ArenaState arena_state_ = ArenaState::kNone;
  RdmaArena arena_;
  std::unique_ptr<UnitMap> units_;
  RdmaGrantsGot grants_;
  std::map<std::uint32_t, std::uint32_t> extents_;  // extents in use: first unit → units
  std::uint64_t room_asked_ = 0;  // number, from 1, of the packet that asked for room; 0: none

  // The packet that is being written.
  RdmaHead head_;
  std::byte* packet_ = nullptr;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_SENDER_H_
