// A PostedReceive is memory of the van's owner that the answer to a message is received directly
// into, without a copy. It is one mechanism for all transports: the owner posts the memory when it
// sends the request (Van::PostReceive) and revokes it when the request ends.
//
// Everything here lives on the van's loop. So nothing is written to memory after its receive has
// been revoked: a transport that has begun to receive into it puts the rest elsewhere, or ends the
// connection.
#ifndef LEEWAY_VAN_POSTED_RECEIVE_H_
#define LEEWAY_VAN_POSTED_RECEIVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace leeway::van {

// Identifies a connection of a van; never reused within the van's life. 0 is none.
using PeerId = std::uint64_t;

// The transport's view of a posted receive. A transport holds it for as long as it receives into
// the memory.
class PostedReceive {
 public:
  explicit PostedReceive(std::span<std::byte> into) : to_(into.data()), bytes_(into.size()) {}
  // The memory; null once the receive has been revoked.
  std::byte* to() const { return to_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  friend class ReceiveHandle;
  friend class PostedReceives;
  std::byte* to_;
  bool answered_ = false;
  const std::uint64_t bytes_;
};

class PostedReceives;

// ReceiveHandle is the owner's side of a posted receive. Its destructor revokes the receive. An
// empty handle refers to none. Movable.
class ReceiveHandle {
 public:
  ReceiveHandle() = default;
  ~ReceiveHandle() { Revoke(); }
  ReceiveHandle(ReceiveHandle&& other) noexcept { *this = std::move(other); }
  ReceiveHandle& operator=(ReceiveHandle&& other) noexcept;

  // True if a transport has begun to receive into the memory and has not finished. If it is revoked
  // then, the answer arrives with a part missing.
  bool busy() const { return receive_.use_count() > 1; }
  bool empty() const { return receive_ == nullptr; }
  // True if it was posted for this peer and no answer has come.
  bool awaits(PeerId peer) const {
    return receive_ != nullptr && peer_ == peer && !receive_->answered_;
  }
  // Nothing is written to the memory after this call. May be called when the van is gone.
  void Revoke();

 private:
  friend class PostedReceives;
  std::shared_ptr<PostedReceive> receive_;
  std::weak_ptr<PostedReceives> posted_;
  PeerId peer_ = 0;
  std::uint64_t token_ = 0;
};

// All posted receives of one van, by peer and token.
class PostedReceives : public std::enable_shared_from_this<PostedReceives> {
 public:
  // `on_revoked` is called for each receive that was revoked before its answer came; it may be
  // null.
  using OnRevoked = std::function<void(PeerId peer, std::uint64_t token)>;
  static std::shared_ptr<PostedReceives> New(OnRevoked on_revoked) {
    return std::shared_ptr<PostedReceives>(new PostedReceives(std::move(on_revoked)));
  }

  // Posts a receive. An earlier one with the same token is forgotten.
  ReceiveHandle Post(PeerId peer, std::uint64_t token, std::span<std::byte> into);
  // The receive for a frame of `bytes` bytes. Null: none was posted, it has another length, or it
  // is in use already.
  std::shared_ptr<const PostedReceive> Find(PeerId peer, std::uint64_t token,
                                            std::uint64_t bytes) const;
  // Ends the receive, because its answer has come. Returns the memory that was posted, or null if
  // none was.
  const std::byte* Answered(PeerId peer, std::uint64_t token);
  // Drops the receives of a peer that is gone, without calling on_revoked.
  void DropPeer(PeerId peer) { by_peer_.erase(peer); }
  // The van is being destroyed: on_revoked is not called any more.
  void Close() { on_revoked_ = nullptr; }

 private:
  friend class ReceiveHandle;
  explicit PostedReceives(OnRevoked on_revoked) : on_revoked_(std::move(on_revoked)) {}
  void Revoked(PeerId peer, std::uint64_t token, const PostedReceive* receive);

  OnRevoked on_revoked_;
  // A receive lives as long as its handle, which removes it.
  using ByToken = absl::flat_hash_map<std::uint64_t, std::weak_ptr<PostedReceive>>;
  absl::flat_hash_map<PeerId, ByToken> by_peer_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_POSTED_RECEIVE_H_
