// The receiving half of an rdma connection: packets into messages, and the arena that the other
// side writes large frames into.
#ifndef LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_
#define LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/memory/sealed_memory.h"
#include "van/rdma/memory/rdma_format.h"
#include "van/rdma/memory/rdma_grants.h"
#include "van/rdma/memory/rdma_memory.h"
#include "van/rdma/rdma_sender.h"
#include "van/transport.h"

namespace leeway::van {

// What has been handed out of an arena, and what is to be reported as released. Kept alive by the
// connection and by every received frame; any thread, but for what is said to be the loop's.
class RdmaExports : public std::enable_shared_from_this<RdmaExports> {
 public:
  // `notify` is called, on any thread, when there is so much to report that it should not wait for
  // a packet that leaves anyway.
  RdmaExports(std::shared_ptr<runtime::MemoryMapping> memory, std::function<void()> notify)
      : memory_(std::move(memory)), notify_(std::move(notify)) {}

  // The frame where it lies; or a copy, when much is held already: whoever sends must find room
  // again without anybody's doing.
  Buffer Take(std::uint32_t unit, std::uint64_t bytes);
  void Release(std::uint32_t unit, std::uint64_t bytes);

  const std::byte* At(std::uint32_t unit) const {
    return memory_->data() + std::uint64_t{unit} * kRdmaUnitBytes;
  }

  // The loop's. How many of the releases are moved into `units`.
  std::size_t Report(std::span<std::uint32_t> units);
  bool report_due() const { return due_.load(std::memory_order_acquire); }
  // The other side waits for room: releases are reported at once until it has some.
  void WantRoom();
  // The connection has ended: nobody is to be notified any more.
  void Deafen();

 private:
  class Export;

  const std::shared_ptr<runtime::MemoryMapping> memory_;
  std::atomic<std::uint64_t> held_bytes_{0};
  std::atomic<bool> due_{false};
  std::mutex mutex_;
  std::function<void()> notify_;         // under the mutex, as are the rest
  std::vector<std::uint32_t> released_;  // not yet reported
  std::uint64_t released_bytes_ = 0;
  bool room_wanted_ = false;
};

class RdmaReceiver final : public RdmaPacketSource {
 public:
  struct Limits {
    std::uint64_t first_bytes_max;     // of a first frame
    std::uint64_t frame_bytes_max;     // of one that comes in pieces
    std::uint32_t payload_frames_max;  // those beyond are counted and thrown away
  };
  enum class Got { kPart, kMessage, kEnd };

  // Packets beyond `packets` that have not been reported as taken are an offence.
  RdmaReceiver(const Limits& limits, const RdmaSizes& sizes, std::function<void()> notify)
      : limits_(limits), sizes_(sizes), notify_(std::move(notify)) {}
  ~RdmaReceiver() override;

  // Of messages that begin from now on.
  void SetLimits(const Limits& limits) { limits_ = limits; }

  // A packet, whose bytes nobody changes meanwhile; what it reports goes to `sender`. kMessage:
  // with it a message is complete, see TakeArrival. An error: the other side does not keep to the
  // format.
  absl::StatusOr<Got> Take(std::span<const std::byte> packet, RdmaSender* sender);
  // Its head is valid until the next call of Take, and as long as the packet.
  Arrival TakeArrival();
  // Transport::ReceivedOfUnfinished, in packets.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return unfinished_.empty() ? std::nullopt : std::optional<std::uint64_t>(taken_);
  }

  // Makes an arena if one is asked for and may be had (`allowed`), and answers; false: there is no
  // room for the answer yet.
  bool arena_wanted() const { return arena_wanted_; }
  absl::StatusOr<bool> AnswerArena(verbs::Device* device, bool allowed, RdmaSender* sender);

  // Memory that answers may be written to.
  RdmaGrantsGiven& grants() { return grants_; }

  // Whether a packet of its own is to report what is due.
  bool report_due() const;
  void Report(RdmaHead* head, std::array<std::uint32_t, kRdmaReleasesMax>* units,
              std::array<RdmaGrant, kRdmaGrantsMax>* given) override;
  std::size_t grants_untold() const override { return grants_.untold(); }

 private:
  // A frame that comes in pieces.
  struct Unfinished {
    std::byte* to = nullptr;  // null: of a frame too many, thrown away
    std::uint64_t left = 0;
  };

  // A frame that was written to where its answer was posted.
  struct Granted {
    std::uint32_t number = 0;  // of the grant
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
  std::deque<Unfinished> unfinished_;
  std::optional<Granted> granted_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_RECEIVER_H_
