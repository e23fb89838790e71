#include "scheduler/members/address_notice.h"

#include <utility>

#include "absl/status/statusor.h"
#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {

void MovedNotice::Forget(std::uint32_t node) {
  if (awaited_.erase(node) == 0) return;
  std::vector<van::PeerId> useless;
  for (const auto& [peer, other] : peers_) {
    if (other == node) useless.push_back(peer);
  }
  for (const van::PeerId peer : useless) van_->Disconnect(peer, absl::OkStatus());
}

void MovedNotice::ForgetAll() {
  while (!awaited_.empty()) Forget(awaited_.begin()->first);
}

void MovedNotice::Tell(absl::Duration patience) {
  std::set<std::uint32_t> dialled;
  for (const auto& [peer, node] : peers_) dialled.insert(node);
  for (const auto& [node, endpoint] : awaited_) {
    if (dialled.contains(node)) continue;
    const absl::StatusOr<van::PeerId> peer = van_->Connect(endpoint, patience);
    if (peer.ok()) {
      peers_[*peer] = node;
    } else {
      runtime::LogDebug("cannot tell a server at ", endpoint,
                        " where the scheduler is: ", peer.status().message());
    }
  }
}

bool MovedNotice::OnPeerUp(van::PeerId peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return false;
  van::Message raw;
  raw.header = proto::Encode(word_);
  (void)van_->Send(peer, std::move(raw));
  van_->Disconnect(peer, absl::OkStatus());  // after what was sent; dialled again if need be
  return true;
}

}  // namespace leeway::scheduler
