// RdmaReceiver is the receiving half of an rdma connection: it makes messages of packets, and owns
// the arena that the other side writes large frames into. Lives on the transport's loop.
#ifndef LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_
#define LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/memory/sealed_memory.h"
#include "van/frames_in_pieces.h"
#include "van/rdma/rdma_format.h"
#include "van/rdma/rdma_grants.h"
#include "van/rdma/rdma_port.h"
#include "van/rdma/rdma_sender.h"
#include "van/transport.h"

namespace leeway::van {

// RdmaExports counts the frames of an arena that are held here, and collects the releases to
// report. Shared by the connection and all received frames. Any thread, except functions marked as
// the loop's.
class RdmaExports : public std::enable_shared_from_this<RdmaExports> {
 public:
  // `notify` is called, on any thread, when there is so much to report that it should not wait for
  // the next packet.
  RdmaExports(std::shared_ptr<runtime::MemoryMapping> memory, std::function<void()> notify)
      : memory_(std::move(memory)), notify_(std::move(notify)) {}

  // The frame, in place; or a copy if many bytes are held already, so that the sender finds room
  // again without waiting for the holders.
  Buffer Take(std::uint32_t unit, std::uint64_t bytes);
  void Release(std::uint32_t unit, std::uint64_t bytes);

  const std::byte* At(std::uint32_t unit) const {
    return memory_->data() + std::uint64_t{unit} * kRdmaUnitBytes;
  }

  // The loop's. Moves releases into `units`, and returns how many.
  std::size_t Report(std::span<std::uint32_t> units);
  bool report_due() const { return due_.load(std::memory_order_acquire); }
  // The other side waits for room: releases are reported at once until it has some.
  void WantRoom();
  // The connection has ended: `notify` is not called any more.
  void Deafen();

 private:
  class Export;

  const std::shared_ptr<runtime::MemoryMapping> memory_;
  std::atomic<std::uint64_t> held_bytes_{0};
  std::atomic<bool> due_{false};
  std::mutex mutex_;
  std::function<void()> notify_;         // guarded by mutex_, as are the members below
  std::vector<std::uint32_t> released_;  // not reported yet
  std::uint64_t released_bytes_ = 0;
  bool room_wanted_ = false;
};

class RdmaReceiver {
 public:
  struct Limits {
    std::uint64_t first_bytes_max;     // of a first frame, in bytes
    std::uint64_t frame_bytes_max;     // of a frame that comes in pieces, in bytes
    std::uint32_t payload_frames_max;  // further frames are counted and discarded
  };
  enum class Got { kPart, kMessage, kEnd };

  // A peer that sends more than `packets` packets which have not been reported as taken violates
  // the protocol.
  RdmaReceiver(const Limits& limits, const RdmaSizes& sizes, std::function<void()> notify)
      : limits_(limits), sizes_(sizes), notify_(std::move(notify)) {}
  ~RdmaReceiver();

  // Applies to messages that begin from now on.
  void SetLimits(const Limits& limits) { limits_ = limits; }

  // Handles a packet, whose bytes do not change meanwhile; its reports go to `sender`. kMessage: it
  // completes a message (TakeArrival). kEnd: nothing follows. INVALID_ARGUMENT: the other side
  // violates the format. UNAVAILABLE: an answer was written to a grant that has ended.
  absl::StatusOr<Got> Take(std::span<const std::byte> packet, RdmaSender* sender);
  // The complete message. Its head is valid until the next call of Take, and as long as the packet.
  Arrival TakeArrival();
  // Transport::ReceivedOfUnfinished, in packets.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return unfinished_.empty() ? std::nullopt : std::optional<std::uint64_t>(taken_);
  }

  // If the other side has asked for an arena: makes one if that is `allowed` and possible, and
  // answers. False: there is no room for the answer yet.
  bool arena_wanted() const { return arena_wanted_; }
  absl::StatusOr<bool> AnswerArena(verbs::Device* device, bool allowed, RdmaSender* sender);

  // The grants for answers.
  RdmaGrantsGiven& grants() { return grants_; }

  // True if a packet has to be sent for what is to be reported.
  bool report_due() const;
  // Fills in `taken`, `releases` and `grants` of the head; the released units go into `units`, the
  // grants into `given`. Everything filled in counts as reported.
  void Report(RdmaHead* head, std::array<std::uint32_t, kRdmaReleasesMax>* units,
              std::array<RdmaGrant, kRdmaGrantsMax>* given);

 private:
  // A frame that was written to a grant.
  struct Granted {
    std::uint32_t number = 0;  // number of the grant
    std::uint64_t bytes = 0;
  };

  absl::StatusOr<Got> TakeMessage(const RdmaHead& head, std::span<const std::byte> body);
  absl::Status TakeFrame(const RdmaPlace& place, std::span<const std::byte>* rest);
  absl::Status BeginPieces(const RdmaPlace& place, bool kept);
  absl::StatusOr<Got> TakePiece(std::span<const std::byte> body);
  absl::Status CheckArenaPlace(const RdmaPlace& place) const;
  absl::StatusOr<Got> Complete();

  Limits limits_;
  const RdmaSizes sizes_;
  const std::function<void()> notify_;
  std::uint32_t taken_ = 0, reported_ = 0;
  bool report_now_ = false;
  bool arena_wanted_ = false;
  std::optional<RdmaMemory> arena_;
  bool arena_refused_ = false;
  std::shared_ptr<RdmaExports> exports_;
  RdmaGrantsGiven grants_;

  // The message so far.
  std::span<const std::byte> head_;
  std::vector<std::byte> long_head_;
  absl::InlinedVector<Buffer, 3> payload_;
  std::uint64_t frames_ = 0;
  FramesInPieces unfinished_;
  std::optional<Granted> granted_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_
