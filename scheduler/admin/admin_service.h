// The commands that people, tools and workers give the scheduler (Admin): finds the handler of
// each, and carries its answer back.
//
// A command may be repeated, over another connection too: while it is under way nothing more
// happens, and afterwards the same answer is sent again. Limits: kAsksWaitingMax at a time,
// kAnswersRememberedMax answers. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_ADMIN_ADMIN_SERVICE_H_
#define LEEWAY_SCHEDULER_ADMIN_ADMIN_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/messages.h"
#include "van/van.h"

namespace leeway::scheduler {

inline constexpr std::size_t kAsksWaitingMax = 4096;
inline constexpr std::size_t kAnswersRememberedMax = 256;

class AdminService {
 public:
  using Arguments = std::vector<std::string>;
  // Takes the result of a command, JSON or an error. The first call counts. It may be called until
  // the service is destroyed.
  using Answer = std::function<void(const absl::StatusOr<std::string>& json)>;
  // Does a command: calls `answer` within, or later.
  using Handler = std::function<void(const Arguments& arguments, const Answer& answer)>;
  using Send = std::function<void(van::PeerId peer, const proto::AdminReply&, std::string json)>;

  explicit AdminService(Send send) : send_(std::move(send)) {}

  void Register(std::string command, Handler handler);
  void OnAdmin(van::PeerId peer, std::uint64_t incarnation, const proto::Admin& admin);

 private:
  // A command, and the process that gave it.
  struct Ask {
    std::uint64_t incarnation = 0;
    std::uint64_t request = 0;
    friend auto operator<=>(const Ask&, const Ask&) = default;
  };

  void Finish(const Ask& ask, const absl::StatusOr<std::string>& json);
  void Reply(van::PeerId peer, const Ask& ask, const absl::StatusOr<std::string>& json);

  const Send send_;
  std::map<std::string, Handler> handlers_;  // by command
  std::map<Ask, van::PeerId> waiting_;       // the connection it was given over last
  std::map<Ask, absl::StatusOr<std::string>> answered_;
  std::deque<Ask> answered_in_turn_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_ADMIN_ADMIN_SERVICE_H_
