#include "van/tcp/tcp_sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "van/tcp/tcp_format.h"

namespace leeway::van {
namespace {

constexpr std::size_t kChunkBelowBytes = 4096;
constexpr std::size_t kChunkBytes = 32 << 10;
constexpr std::size_t kPiecesAtOnce = 64;
constexpr std::size_t kBytesWrittenPerTurn = 4 << 20;
// The part of a frame that is checksummed at a time: as much as a core's own cache holds.
constexpr std::size_t kSummedAtOnce = 512 << 10;
static_assert(kChunkBelowBytes <= kChunkBytes);

}  // namespace

// ---- adding ----

// Returns `size` contiguous bytes of a chunk, and makes them a part of the last piece.
std::byte* TcpSender::Room(std::size_t size) {
  if (chunks_.empty() || kChunkBytes - chunks_.back().used < size) {
    chunks_.push_back(std::exchange(spare_, {}));
    Chunk& chunk = chunks_.back();
    chunk.used = 0;
    if (chunk.memory == nullptr) {
      chunk.memory = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
    }
  }
  Chunk& chunk = chunks_.back();
  std::byte* const at = chunk.memory.get() + chunk.used;
  chunk.used += size;
  added_ += size;
  chunk.until = added_;
  Piece* const last = first_piece_ < pieces_.size() ? &pieces_.back() : nullptr;
  if (last != nullptr && last->data + last->size == at) {
    last->size += size;
  } else {
    pieces_.push_back({.data = at, .size = size});
  }
  return at;
}

void TcpSender::AddBytes(const std::byte* bytes, std::size_t size) {
  std::memcpy(Room(size), bytes, size);
}

void TcpSender::AddFrame(const Buffer& frame) {
  if (frame.empty()) return;
  if (frame.size() < kChunkBelowBytes) return AddBytes(frame.data(), frame.size());
  added_ += frame.size();
  pieces_.push_back({.data = frame.data(), .size = frame.size(), .keeps = frame});
}

void TcpSender::PutChecksum(const std::byte* of, std::size_t size, std::byte* to) const {
  Put(checksums_ ? ChecksumOf(of, size) : kNoChecksum, to);
}

void TcpSender::AddPayload(const Buffer& frame) {
  std::byte* const length = Room(kTcpLengthBytes);
  Put(std::uint64_t{frame.size()}, length);
  PutChecksum(length, sizeof(std::uint64_t), length + sizeof(std::uint64_t));
  AddFrame(frame);
  const bool later = checksums_ && frame.size() >= kChunkBelowBytes;
  const std::size_t at = pieces_.size() - 1;
  std::byte* const checksum = Room(kTcpChecksumBytes);
  if (later) {
    pieces_[at].checksum_to = checksum;
  } else {
    PutChecksum(frame.data(), frame.size(), checksum);
  }
}

void TcpSender::Add(const Prefix& prefix, const Message& message, SendDone done) {
  std::byte* const record = Room(kTcpRecordBytes + kPrefixBytes);
  std::byte* const head = record + kTcpRecordBytes;
  Put(static_cast<std::uint32_t>(kPrefixBytes + message.header.size()), record);
  Put(static_cast<std::uint32_t>(message.payload.size()), record + 4);
  PutChecksum(record, 8, record + 8);
  PutPrefix(prefix, head);
  Checksum checksum;
  if (checksums_) {
    checksum.Add(head, kPrefixBytes);
    checksum.Add(message.header.data(), message.header.size());
  }
  AddFrame(message.header);
  Put(checksums_ ? checksum.value() : kNoChecksum, Room(kTcpChecksumBytes));
  for (const Buffer& frame : message.payload) AddPayload(frame);
  if (done) owed_.push_back({added_, std::move(done)});
}

// ---- writing ----

// Adds the next part of the piece to its checksum, as much as may leave at once. True if the
// checksum includes the whole piece.
bool TcpSender::SumUp(Piece* piece) {
  const std::size_t most = std::min(piece->size, kSummedAtOnce);
  const std::size_t part = most - std::min(most, piece->summed);
  piece->checksum.Add(piece->data + piece->summed, part);
  piece->summed += part;
  if (piece->summed < piece->size) return false;
  Put(piece->checksum.value(), std::exchange(piece->checksum_to, nullptr));
  return true;
}

TcpSender::Wrote TcpSender::Write(int fd) {
  for (std::size_t turn = 0; first_piece_ < pieces_.size();) {
    if (turn >= kBytesWrittenPerTurn) return Wrote::kMuch;
    std::array<iovec, kPiecesAtOnce> places;
    std::size_t count = 0, bytes = 0;
    for (bool whole = true; whole && count < places.size() && first_piece_ + count < pieces_.size();
         ++count) {
      Piece& piece = pieces_[first_piece_ + count];
      if (piece.checksum_to != nullptr) {
        if (bytes >= kSummedAtOnce) break;
        whole = SumUp(&piece);
      }
      const std::size_t ready = whole ? piece.size : piece.summed;
      places[count] = {const_cast<std::byte*>(piece.data), ready};
      bytes += ready;
    }
    msghdr message{};
    message.msg_iov = places.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK ? Wrote::kFull : Wrote::kBroken;
    }
    OnWritten(static_cast<std::size_t>(sent));
    // A short write means that the socket is full, so another call would take nothing.
    if (static_cast<std::size_t>(sent) < bytes) return Wrote::kFull;
    turn += bytes;
  }
  return Wrote::kAll;
}

void TcpSender::OnWritten(std::size_t size) {
  written_ += size;
  while (size > 0) {
    Piece& piece = pieces_[first_piece_];
    const std::size_t part = std::min(size, piece.size);
    piece.data += part;
    piece.size -= part;
    piece.summed -= std::min(piece.summed, part);
    size -= part;
    if (piece.size > 0) break;
    piece.keeps = Buffer();
    ++first_piece_;
  }
  if (first_piece_ == pieces_.size()) {
    pieces_.clear();
    first_piece_ = 0;
  } else if (first_piece_ >= pieces_.size() / 2 && first_piece_ >= kPiecesAtOnce) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_piece_));
    first_piece_ = 0;
  }
  while (!chunks_.empty() && chunks_.front().until <= written_) {
    spare_ = std::move(chunks_.front());
    chunks_.pop_front();
  }
  while (!owed_.empty() && owed_.front().at <= written_) {
    done_->Add(std::move(owed_.front().done), absl::OkStatus());
    owed_.pop_front();
  }
}

void TcpSender::Fail(const absl::Status& why) {
  written_ = added_;
  pieces_.clear();
  first_piece_ = 0;
  chunks_.clear();
  for (Owed& owed : std::exchange(owed_, {})) done_->Add(std::move(owed.done), why);
}

}  // namespace leeway::van
