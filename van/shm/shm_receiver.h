// ShmReceiver is the receiving half of a connection: it makes messages of the records in the other
// side's ring. Lives on the transport's loop.
#ifndef LEEWAY_VAN_SHM_SHM_RECEIVER_H_
#define LEEWAY_VAN_SHM_SHM_RECEIVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "van/frames_in_pieces.h"
#include "van/shm/shm_imported.h"
#include "van/shm/shm_link.h"
#include "van/transport.h"

namespace leeway::van {

// ShmImports counts the frames of the other side's arena that are held here. Any thread.
class ShmImports : public std::enable_shared_from_this<ShmImports> {
 public:
  explicit ShmImports(std::shared_ptr<ShmLink> link) : link_(std::move(link)) {}

  // The frame, in place; or a copy if many bytes are held already, so that the sender finds room
  // again without waiting for the holders.
  Buffer Take(const ShmPlace& place);
  void Release(const ShmPlace& place);

 private:
  class Export;

  const std::shared_ptr<ShmLink> link_;
  std::atomic<std::uint64_t> held_bytes_{0};
};

class ShmReceiver {
 public:
  struct Limits {
    std::uint64_t first_bytes_max;  // of the first frame, which is copied; bytes
    std::uint64_t frame_bytes_max;  // of a frame that comes in pieces; bytes
    std::uint32_t payload_frames_max;
  };
  enum class Got { kNothing, kPart, kMessage };

  ShmReceiver(std::shared_ptr<ShmLink> link, const Limits& limits);

  // Reads the next record. kMessage: it completes a message (TakeArrival). INVALID_ARGUMENT: the
  // other side violates the layout.
  absl::StatusOr<Got> Next();
  // As ShmImported::ReadSocket.
  absl::Status ReadSocket() { return imported_.ReadSocket(); }
  // The complete message. Its head is valid until the next call of Next.
  Arrival TakeArrival();
  // Transport::ReceivedOfUnfinished, in bytes of records.
  std::optional<std::uint64_t> received_of_unfinished() const {
    return unfinished_.empty() ? std::nullopt : std::optional<std::uint64_t>(head_);
  }

 private:
  absl::Status ReadRecord(ShmRecordHead* head);
  absl::Status BeginMessage(const ShmRecordHead& head);
  absl::Status TakeFrame(const ShmPlace& place, std::uint64_t* cursor, std::uint64_t end);
  absl::Status TakeExported(const ShmPlace& place, bool kept);
  absl::Status TakePiece(const ShmRecordHead& head);
  absl::Status CheckArenaPlace(const ShmPlace& place) const;
  ShmPlace PlaceAt(std::uint64_t offset) const;
  const std::byte* ArenaAt(const ShmPlace& place) const;

  const std::shared_ptr<ShmLink> link_;
  const std::shared_ptr<ShmImports> exports_;
  ShmImported imported_;
  const Limits limits_;
  std::uint64_t head_ = 0;
  std::vector<std::byte> record_;  // a copy of the record that is being read
  std::vector<std::byte> first_;   // the first frame of the message
  absl::InlinedVector<Buffer, 3> payload_;
  std::uint64_t frames_ = 0;
  FramesInPieces unfinished_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_RECEIVER_H_
