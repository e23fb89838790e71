#include "van/posted_receive.h"

namespace leeway::van {

ReceiveHandle& ReceiveHandle::operator=(ReceiveHandle&& other) noexcept {
  if (this == &other) return *this;
  Revoke();
  receive_ = std::move(other.receive_);
  posted_ = std::move(other.posted_);
  peer_ = other.peer_;
  token_ = other.token_;
  return *this;
}

void ReceiveHandle::Revoke() {
  if (receive_ == nullptr) return;
  const std::shared_ptr<PostedReceive> receive = std::exchange(receive_, nullptr);
  receive->to_ = nullptr;
  if (const auto posted = posted_.lock()) posted->Revoked(peer_, token_, receive.get());
}

ReceiveHandle PostedReceives::Post(PeerId peer, std::uint64_t token, std::span<std::byte> into) {
  ReceiveHandle handle;
  handle.receive_ = std::make_shared<PostedReceive>(into);
  handle.posted_ = weak_from_this();
  handle.peer_ = peer;
  handle.token_ = token;
  by_peer_[peer][token] = handle.receive_;
  return handle;
}

std::shared_ptr<const PostedReceive> PostedReceives::Find(PeerId peer, std::uint64_t token,
                                                          std::uint64_t bytes) const {
  const auto of_peer = by_peer_.find(peer);
  if (of_peer == by_peer_.end()) return nullptr;
  const auto found = of_peer->second.find(token);
  if (found == of_peer->second.end() || found->second.use_count() != 1) {
    return nullptr;
  }
  std::shared_ptr<PostedReceive> receive = found->second.lock();
  return receive->bytes() == bytes && receive->to() != nullptr ? receive : nullptr;
}

const std::byte* PostedReceives::Answered(PeerId peer, std::uint64_t token) {
  const auto of_peer = by_peer_.find(peer);
  if (of_peer == by_peer_.end()) return nullptr;
  const auto found = of_peer->second.find(token);
  if (found == of_peer->second.end()) return nullptr;
  const std::shared_ptr<PostedReceive> receive = found->second.lock();
  of_peer->second.erase(found);
  receive->answered_ = true;
  return receive->to();
}

void PostedReceives::Revoked(PeerId peer, std::uint64_t token, const PostedReceive* receive) {
  const auto of_peer = by_peer_.find(peer);
  if (of_peer == by_peer_.end()) return;
  const auto found = of_peer->second.find(token);
  // Another one with the same token may have been posted since.
  if (found == of_peer->second.end() || found->second.lock().get() != receive) {
    return;
  }
  of_peer->second.erase(found);
  if (on_revoked_) on_revoked_(peer, token);
}

}  // namespace leeway::van
