// Posted receives: memory of the van's owner that the answer to a message is received straight
// into, rather than copied there. One mechanism for all transports: the owner posts the memory when
// it sends the request (Van::PostReceive) and revokes it when the request ends.
//
// Everything here lives on the van's loop, so that memory whose receive has been revoked is not
// written to any more: a transport that has begun to receive into it puts the rest elsewhere, or
// ends the connection.
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

// A connection of a van, never reused within its life. 0 is none.
using PeerId = std::uint64_t;

// The transport's view of one. A transport holds it for as long as it receives into it.
class PostedReceive {
 public:
  explicit PostedReceive(std::span<std::byte> into) : to_(into.data()), bytes_(into.size()) {}
  // Null once it is revoked.
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

// The owner's side; one that is empty stands for nothing. Revokes when it goes.
class ReceiveHandle {
 public:
  ReceiveHandle() = default;
  ~ReceiveHandle() { Revoke(); }
  ReceiveHandle(ReceiveHandle&& other) noexcept { *this = std::move(other); }
  ReceiveHandle& operator=(ReceiveHandle&& other) noexcept;

  // A transport has begun to receive into the memory and has not finished. An answer that is then
  // revoked arrives with a part of it missing.
  bool busy() const { return receive_.use_count() > 1; }
  bool empty() const { return receive_ == nullptr; }
  // It stands at this peer, and no answer has come.
  bool awaits(PeerId peer) const {
    return receive_ != nullptr && peer_ == peer && !receive_->answered_;
  }
  // From here on nothing is written to the memory. The van may be gone.
  void Revoke();

 private:
  friend class PostedReceives;
  std::shared_ptr<PostedReceive> receive_;
  std::weak_ptr<PostedReceives> posted_;
  PeerId peer_ = 0;
  std::uint64_t token_ = 0;
};

// Those of one van, by peer and token.
class PostedReceives : public std::enable_shared_from_this<PostedReceives> {
 public:
  // `on_revoked` is told of each that was revoked before its answer came; it may be null.
  using OnRevoked = std::function<void(PeerId peer, std::uint64_t token)>;
  static std::shared_ptr<PostedReceives> New(OnRevoked on_revoked) {
    return std::shared_ptr<PostedReceives>(new PostedReceives(std::move(on_revoked)));
  }

  // In the place of one with the same token, which is thereby forgotten.
  ReceiveHandle Post(PeerId peer, std::uint64_t token, std::span<std::byte> into);
  // What a frame of so many bytes is to be received into; null: there is no such receive, it is of
  // another length, or it is in use already.
  std::shared_ptr<const PostedReceive> Find(PeerId peer, std::uint64_t token,
                                            std::uint64_t bytes) const;
  // Its answer has come: where it was to lie, null if nothing was posted.
  const std::byte* Answered(PeerId peer, std::uint64_t token);
  // The peer has gone, and its receives with it. Nobody is told.
  void DropPeer(PeerId peer) { by_peer_.erase(peer); }
  // The van goes: nobody is told of anything any more.
  void Close() { on_revoked_ = nullptr; }

 private:
  friend class ReceiveHandle;
  explicit PostedReceives(OnRevoked on_revoked) : on_revoked_(std::move(on_revoked)) {}
  void Revoked(PeerId peer, std::uint64_t token, const PostedReceive* receive);

  OnRevoked on_revoked_;
  // Alive as long as their handles, which take them out.
  using ByToken = absl::flat_hash_map<std::uint64_t, std::weak_ptr<PostedReceive>>;
  absl::flat_hash_map<PeerId, ByToken> by_peer_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_POSTED_RECEIVE_H_
