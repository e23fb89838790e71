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

constexpr std::size_t kCopyBelowBytes = 4096;
constexpr std::size_t kChunkBytes = 32 << 10;
constexpr std::size_t kPiecesAtOnce = 64;
constexpr std::size_t kBytesPerTurn = 4 << 20;
static_assert(kCopyBelowBytes <= kChunkBytes);

}  // namespace

// ---- adding ----

// So much room that lies in one piece, and is a piece's from now on.
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
    pieces_.push_back({at, size, Buffer()});
  }
  return at;
}

void TcpSender::AddBytes(const std::byte* bytes, std::size_t size) {
  std::memcpy(Room(size), bytes, size);
}

void TcpSender::AddFrame(const Buffer& frame) {
  if (frame.empty()) return;
  if (frame.size() < kCopyBelowBytes) return AddBytes(frame.data(), frame.size());
  added_ += frame.size();
  pieces_.push_back({frame.data(), frame.size(), frame});
}

void TcpSender::Add(const Prefix& prefix, const Message& message, SendDone done) {
  std::byte* const head = Room(kTcpRecordBytes + kPrefixBytes);
  Put(static_cast<std::uint32_t>(kPrefixBytes + message.header.size()), head);
  Put(static_cast<std::uint32_t>(message.payload.size()), head + 4);
  PutPrefix(prefix, head + kTcpRecordBytes);
  AddFrame(message.header);
  for (const Buffer& frame : message.payload) {
    Put(std::uint64_t{frame.size()}, Room(kTcpLengthBytes));
    AddFrame(frame);
  }
  if (done) owed_.push_back({added_, std::move(done)});
}

// ---- writing ----

TcpSender::Wrote TcpSender::Write(int fd) {
  for (std::size_t turn = 0; first_piece_ < pieces_.size();) {
    if (turn >= kBytesPerTurn) return Wrote::kMuch;
    std::array<iovec, kPiecesAtOnce> places;
    std::size_t count = 0, bytes = 0;
    for (; count < places.size() && first_piece_ + count < pieces_.size(); ++count) {
      const Piece& piece = pieces_[first_piece_ + count];
      places[count] = {const_cast<std::byte*>(piece.data), piece.size};
      bytes += piece.size;
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
    // What it did not take now it would not take if it were asked at once.
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
