// ShmSender is the sending half of a connection: it writes messages as records into this side's
// ring, and large frames into its arena. Lives on the transport's loop.
#ifndef LEEWAY_VAN_SHM_SHM_SENDER_H_
#define LEEWAY_VAN_SHM_SHM_SENDER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "van/shm/memory/shm_arena.h"
#include "van/shm/shm_exporter.h"
#include "van/shm/shm_link.h"
#include "van/transport.h"

namespace leeway::van {

class ShmSender {
 public:
  // `done` gets the callbacks of sends that have ended.
  ShmSender(std::shared_ptr<ShmLink> link, DoneList* done);

  void Send(const Prefix& prefix, Message message, SendDone done);
  // Writes what waits for room, as far as there is some; true if anything was written.
  bool Flush();
  // For tests of what the other side does at these moments: Flush calls it whenever it has found
  // too little room, and whenever it has asked for some.
  void CallAfterSteps(std::function<void()> hook) { after_step_ = std::move(hook); }
  bool idle() const { return queue_.empty() && !memory_freed_; }
  // Ends the sends whose exports have been given back; true if there were any.
  bool Collect() { return exporter_.Collect(); }
  // Memory that may have been exported was freed: the other side has to unmap it.
  void OnMemoryFreed() { memory_freed_ = true; }
  // An error after the other side has claimed something impossible.
  const absl::Status& status() const { return status_; }
  // Ends all sends that are not complete with that error.
  void Fail(const absl::Status& why);

 private:
  struct Outgoing {
    std::array<std::byte, kPrefixBytes> prefix;
    Message message;
    SendDone done;
    Buffer long_head;  // prefix and header, if too long to be inline
    bool begun = false;
    struct Pieces {
      std::size_t frame;
      std::uint64_t written;
    };
    std::deque<Pieces> pieces;  // frames that are sent in pieces
    ShmExportList exports;      // frames that are exported
  };
  struct Plan {
    std::uint64_t record_bytes = 0;
    absl::InlinedVector<ShmPlace, 4> places;
    absl::InlinedVector<ShmExtent, 4> extents;
    ShmExportList exports;
  };

  // Writes as much as fits; true if the whole message has been written.
  bool Write(Outgoing& out);
  bool Begin(Outgoing& out);
  bool PlanFrames(Outgoing& out, Plan* plan);
  bool PlaceInArena(std::uint64_t size, Plan* plan, ShmPlace* place);
  bool WritePiece(Outgoing& out);
  bool WriteTakenBack();
  void WriteSmallRecord(ShmRecordType type, const ShmPlace& place);
  void Finish(Outgoing out);
  void WriteRecord(const Outgoing& out, const Plan& plan);
  static std::span<const std::byte> FrameOf(const Outgoing& out, std::size_t frame);

  bool HasRoom(std::uint64_t record_bytes);
  void ReadHead();
  std::byte* NextRecord(std::uint64_t record_bytes);
  void Publish();
  std::optional<ShmExtent> Allocate(std::uint64_t bytes);
  bool IsReleased(const ShmExtent& extent) const;

  const std::shared_ptr<ShmLink> link_;
  DoneList* const done_;
  ShmArena arena_;
  ShmExporter exporter_;
  bool memory_freed_ = false;
  std::deque<Outgoing> queue_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // the other side's head, as last read
  absl::Status status_;
  std::function<void()> after_step_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_SENDER_H_
