// The sending half of a connection: messages into bytes.
//
// What is small is copied, one message behind the other, so that many leave in one piece; larger
// frames are sent from where they lie. The system is given many pieces at once.
//
// The checksum of what is copied is computed with the copy, that of a larger frame part by part,
// each just before the system reads it: the second of the two finds it in the processor's cache.
#ifndef LEEWAY_VAN_TCP_TCP_SENDER_H_
#define LEEWAY_VAN_TCP_TCP_SENDER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "van/checksum.h"
#include "van/done_list.h"
#include "van/transport.h"

namespace leeway::van {

class TcpSender {
 public:
  // `done` gets the sends that have ended.
  explicit TcpSender(DoneList* done) : done_(done) {}

  // From the next message on.
  void SendChecksums() { checksums_ = true; }

  void AddBytes(const std::byte* bytes, std::size_t size);
  void Add(const Prefix& prefix, const Message& message, SendDone done);

  enum class Wrote { kAll, kMuch, kFull, kBroken };
  // To a socket that does not block, up to some fair share (kMuch: there would be room for more).
  Wrote Write(int fd);
  std::uint64_t waiting_bytes() const { return added_ - written_; }
  // Ends what still waits.
  void Fail(const absl::Status& why);

 private:
  // Memory for small things; used again once all in it has been written.
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t used = 0;
    std::uint64_t until = 0;  // what is in it ends here, counted as `added_`
  };
  struct Piece {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    Buffer keeps = {};  // its memory, if it is not a chunk's
    // Where the checksum of this frame goes, in a chunk behind it; null: there is none, or it has
    // been put there.
    std::byte* checksum_to = nullptr;
    Checksum checksum = {};
    std::size_t summed = 0;  // bytes of this piece that are in it, from `data` on
  };
  struct Owed {
    std::uint64_t at = 0;  // done when so much has been written
    SendDone done;
  };

  std::byte* Room(std::size_t size);
  void PutChecksum(const std::byte* of, std::size_t size, std::byte* to) const;
  void AddFrame(const Buffer& frame);
  void AddPayload(const Buffer& frame);
  bool SumUp(Piece* piece);
  void OnWritten(std::size_t size);

  DoneList* const done_;
  bool checksums_ = false;
  std::uint64_t added_ = 0, written_ = 0;
  std::deque<Chunk> chunks_;  // the last is being filled
  Chunk spare_;
  std::vector<Piece> pieces_;
  std::size_t first_piece_ = 0;  // those before it are written
  std::deque<Owed> owed_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_SENDER_H_
