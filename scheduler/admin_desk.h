// What people and tools ask of the scheduler (Admin): finds who does it, and carries the answer
// back. A question may be asked again while it waits, and is answered once; whoever hangs up is
// forgotten.
#ifndef LEEWAY_SCHEDULER_ADMIN_DESK_H_
#define LEEWAY_SCHEDULER_ADMIN_DESK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages.h"
#include "van/van.h"

namespace leeway::scheduler {

inline constexpr std::size_t kAsksWaitingMax = 1024;

class AdminDesk {
 public:
  // Somebody who waits for an answer.
  struct Ask {
    van::PeerId peer = 0;
    std::uint64_t request = 0;
    friend auto operator<=>(const Ask&, const Ask&) = default;
  };
  using Arguments = std::vector<std::string>;
  // Answers, now or later.
  using Handler = std::function<void(const Ask& ask, const Arguments& arguments)>;
  using Send = std::function<void(van::PeerId peer, const proto::AdminReply&, std::string json)>;

  explicit AdminDesk(Send send) : send_(std::move(send)) {}

  void Register(std::string command, Handler handler);
  void OnAdmin(van::PeerId peer, const proto::Admin& admin);
  void OnPeerDown(van::PeerId peer);
  // JSON, or why not. Nothing happens if nobody waits for it any more.
  void Answer(const Ask& ask, const absl::StatusOr<std::string>& json);

 private:
  const Send send_;
  std::map<std::string, Handler> handlers_;  // by command
  std::set<Ask> waiting_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_ADMIN_DESK_H_
