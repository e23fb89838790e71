// The members and readers of the cluster: takes them in, hears their heartbeats, and lets them go,
// with everything that follows from it for the other services. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CONTROL_MEMBER_SERVICE_H_
#define LEEWAY_SCHEDULER_CONTROL_MEMBER_SERVICE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/timer.h"
#include "scheduler/control/services.h"

namespace leeway::scheduler {

class MemberService {
 public:
  explicit MemberService(const Services* services);

  // The member or reader that a connection is of; null: it has not joined.
  Node* NodeOf(const van::Identity& identity);

  void OnJoin(const Sender& sender, const proto::Join& join);
  void OnHeartbeat(const Sender& sender, const proto::Heartbeat& beat);
  void OnLeave(const Sender& sender, const proto::Leave& leave);
  // The connection, which is of `node` or of a process that has not joined (null), has broken.
  void OnPeerDown(van::PeerId peer, Node* node, const absl::Status& why);

  // Refuses a Join for good, and counts it among the protocol errors.
  void Refuse(const Sender& sender, absl::Status why);
  // The member has left or is dead: the other nodes are told, and all services drop it.
  void Retire(Node* node, Node::State state, const std::string& why);
  // A server that joined late, or that is to load a checkpoint, has all tables.
  void ServerPrepared(std::uint32_t server);
  // A reader does not answer any more.
  void OnReaderSilent(const Node& reader);

  // "1 of 2 servers and 3 of 4 workers have joined; missing server 1 and worker 2".
  std::string Missing() const;
  void LogMissing() const;
  // If the cluster is not complete, it ends when no member joins for Config::connect_timeout.
  void PutOffNobodyCame();
  // The cluster is complete.
  void StopWaiting() { nobody_timer_.Clear(); }

 private:
  void Joined(Node* node);
  void JoinAgain(Node* node, const Sender& sender, const proto::Join& join);
  bool MayBecomeFree(const Sender& sender, const proto::Join& join);
  void NotYet(const Sender& sender, absl::Status why);  // why: UNAVAILABLE
  void Welcome(const Node& node);
  void ReaderJoins(const Sender& sender, const proto::Join& join);
  void ForgetReader(const Node& reader, const std::string& why);
  void NobodyCame();

  const Services* const s_;
  // By connection: when a Join was first refused that is to be asked again.
  std::map<van::PeerId, absl::Time> turned_away_;
  runtime::Timer nobody_timer_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_MEMBER_SERVICE_H_
