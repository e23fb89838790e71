// The scheduler's way out: encodes messages and sends them to nodes.
//
// With LEEWAY_SCHEDULER_STATE everything but heartbeat acknowledgements and status waits until the
// state that it may rest on is on disk (HoldWith). Messages may be lost with their connection, as
// everything is resent; a message to a node without a connection is dropped. Lives on the
// scheduler's loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_NODE_SENDER_H_
#define LEEWAY_SCHEDULER_MEMBERS_NODE_SENDER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/buffer.h"
#include "scheduler/members/membership_table.h"
#include "van/van.h"

namespace leeway::scheduler {

class NodeSender {
 public:
  // Runs a send, now or once the present state is on disk.
  using Hold = std::function<void(runtime::Task send)>;

  explicit NodeSender(const MembershipTable* members) : members_(members) {}

  // To be called before anything is sent; `van` outlives its use.
  void Open(van::Van* van) { van_ = van; }
  void HoldWith(Hold hold) { hold_ = std::move(hold); }
  van::Van* van() const { return van_; }

  // `what` names the message in the log and lives as long as the program.
  void Send(van::PeerId peer, van::Message message, absl::string_view what);
  // Likewise, whatever is on disk.
  void SendNow(van::PeerId peer, van::Message message, absl::string_view what);

  void SendToPeer(van::PeerId peer, const proto::AnyMessage& message);
  void SendTo(const Node& node, const proto::AnyMessage& message);
  void SendToNode(std::uint32_t id, const proto::AnyMessage& message);  // a member or a reader
  // A map is encoded once for all nodes.
  void SendMap(const Node& node, const proto::ClusterMap& map);

 private:
  const MembershipTable* const members_;
  van::Van* van_ = nullptr;
  Hold hold_;  // null: nothing is held
  runtime::Buffer encoded_map_;
  std::uint64_t encoded_version_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_NODE_SENDER_H_
