// The notice to servers where the scheduler is, after a restart: dials their data threads until
// they have connected to it. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_MEMBERS_ADDRESS_NOTICE_H_
#define LEEWAY_SCHEDULER_MEMBERS_ADDRESS_NOTICE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::scheduler {

class MovedNotice {
 public:
  MovedNotice(van::Van* van, proto::SchedulerMoved word) : van_(van), word_(std::move(word)) {}

  // The server has not connected yet; `endpoint` is the address of one of its data threads.
  void Await(std::uint32_t node, std::string endpoint) { awaited_[node] = std::move(endpoint); }
  // The server has connected.
  void Forget(std::uint32_t node);
  void ForgetAll();
  // Dials the servers that have not connected; to be called now and then. `patience`: the time
  // until the next call.
  void Tell(absl::Duration patience);

  // True if the connection was made here.
  bool OnPeerUp(van::PeerId peer);
  bool OnPeerDown(van::PeerId peer) { return peers_.erase(peer) > 0; }

 private:
  van::Van* const van_;
  const proto::SchedulerMoved word_;
  std::map<std::uint32_t, std::string> awaited_;  // node → endpoint
  std::map<van::PeerId, std::uint32_t> peers_;    // → node
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MEMBERS_ADDRESS_NOTICE_H_
