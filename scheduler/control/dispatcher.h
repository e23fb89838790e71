// The receiver of the scheduler's messages: decodes each, checks that its sender may say it, and
// calls the service that it is for.
//
// A peer that sends what cannot be decoded, or what is never sent to a scheduler, is dropped; what
// is only out of turn is counted and ignored. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CONTROL_DISPATCHER_H_
#define LEEWAY_SCHEDULER_CONTROL_DISPATCHER_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/messages/messages.h"
#include "scheduler/control/services.h"
#include "van/van.h"

namespace leeway::scheduler {

class Dispatcher final : public van::Handler {
 public:
  // `status` makes what StatusRequest is answered with.
  Dispatcher(const Services* services, std::function<std::string()> status)
      : s_(services), status_(std::move(status)) {}

  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message raw) override;
  std::string NameOf(van::PeerId peer, const van::Identity& identity) const override;

 private:
  void Handle(const Sender& sender, const proto::AnyMessage& message);
  void OnMapAck(const Sender& sender, const proto::MapAck& ack);
  void Answer(const Sender& sender, const proto::StatusRequest& request);
  void Forbidden(const Sender& sender, absl::string_view message);  // is never sent to a scheduler

  // The sender is a living member of that role; false, and noted, if not.
  bool IsMember(const Sender& sender, Role role);
  // `node` (may be null) lives and is what the hello says.
  bool IsOf(const van::Identity& identity, const Node* node) const;
  void Receive(van::PeerId peer, const Node& node);
  void OutOfTurn(const Sender& sender, absl::string_view what);

  const Services* const s_;
  const std::function<std::string()> status_;
  std::map<van::PeerId, van::Identity> peers_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_DISPATCHER_H_
