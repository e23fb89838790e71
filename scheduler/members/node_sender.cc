#include "scheduler/members/node_sender.h"

#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {

void NodeSender::Send(van::PeerId peer, van::Message message, absl::string_view what) {
  if (hold_ == nullptr) return SendNow(peer, std::move(message), what);
  hold_([this, peer, what, message = std::move(message)]() mutable {
    SendNow(peer, std::move(message), what);
  });
}

void NodeSender::SendNow(van::PeerId peer, van::Message message, absl::string_view what) {
  if (absl::Status sent = van_->Send(peer, std::move(message)); !sent.ok()) {
    runtime::LogDebug(what, " not sent: ", sent.message());
  }
}

void NodeSender::SendToPeer(van::PeerId peer, const proto::AnyMessage& message) {
  van::Message raw;
  raw.header = proto::Encode(message);
  Send(peer, std::move(raw), proto::NameOf(message));
}

void NodeSender::SendTo(const Node& node, const proto::AnyMessage& message) {
  if (node.peer != 0) SendToPeer(node.peer, message);
}

void NodeSender::SendToNode(std::uint32_t id, const proto::AnyMessage& message) {
  if (const Node* const node = members_->Find(id)) SendTo(*node, message);
}

void NodeSender::SendMap(const Node& node, const proto::ClusterMap& map) {
  if (node.peer == 0) return;
  if (encoded_version_ != map.version) {
    encoded_map_ = proto::Encode(map);
    encoded_version_ = map.version;
  }
  van::Message raw;
  raw.header = encoded_map_;
  Send(node.peer, std::move(raw), "ClusterMap");
}

}  // namespace leeway::scheduler
