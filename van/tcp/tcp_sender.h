// TcpSender is the sending half of a connection: it makes bytes of messages. One thread.
//
// Small parts are copied, one message after the other, so that many leave in one piece; larger
// frames are sent from where they are. Many pieces are given to one system call.
//
// The checksum of copied bytes is computed together with the copy. That of a larger frame is
// computed part by part, each just before the system reads it, so that the system finds the part in
// the processor's cache.
#ifndef LEEWAY_VAN_TCP_TCP_SENDER_H_
#define LEEWAY_VAN_TCP_TCP_SENDER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "van/checksum.h"
#include "van/transport.h"

namespace leeway::van {

class TcpSender {
 public:
  // `done` gets the callbacks of sends that have ended.
  explicit TcpSender(DoneList* done) : done_(done) {}

  // Adds checksums from the next message on.
  void SendChecksums() { checksums_ = true; }

  void AddBytes(const std::byte* bytes, std::size_t size);
  void Add(const Prefix& prefix, const Message& message, SendDone done);

  enum class Wrote { kAll, kMuch, kFull, kBroken };
  // Writes to a non-blocking socket, up to a fair share (kMuch: the socket may have room for more).
  Wrote Write(int fd);
  std::uint64_t waiting_bytes() const { return added_ - written_; }
  // Ends all sends that are not complete with that error.
  void Fail(const absl::Status& why);

 private:
  // Memory for small parts, used again when all of it has been written.
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t used = 0;
    std::uint64_t until = 0;  // value of `added_` at its end
  };
  struct Piece {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    Buffer keeps = {};  // owns its memory, if that is not a chunk
    // Where the checksum of this frame goes, in a chunk behind it. Null: the frame has none, or it
    // is written already.
    std::byte* checksum_to = nullptr;
    Checksum checksum = {};
    std::size_t summed = 0;  // bytes of this piece, from `data` on, that `checksum` includes
  };
  struct Owed {
    std::uint64_t at = 0;  // done when `written_` reaches this
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
  std::deque<Chunk> chunks_;  // the last one is being filled
  Chunk spare_;
  std::vector<Piece> pieces_;
  std::size_t first_piece_ = 0;  // pieces before it have been written
  std::deque<Owed> owed_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_SENDER_H_
