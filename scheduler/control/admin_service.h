// What people, tools and workers ask of the scheduler (Admin): finds who does it, and carries the
// answer back. A question may be asked again, over another connection too: while it waits nothing
// happens, and afterwards the same answer is given.
#ifndef LEEWAY_SCHEDULER_CONTROL_ADMIN_SERVICE_H_
#define LEEWAY_SCHEDULER_CONTROL_ADMIN_SERVICE_H_

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

inline constexpr std::size_t kAsksWaitingMax = 1024;
inline constexpr std::size_t kAnswersRememberedMax = 256;

class AdminService {
 public:
  // A question, and whose it is.
  struct Ask {
    std::uint64_t incarnation = 0;
    std::uint64_t request = 0;
    friend auto operator<=>(const Ask&, const Ask&) = default;
  };
  using Arguments = std::vector<std::string>;
  // Answers, now or later.
  using Handler = std::function<void(const Ask& ask, const Arguments& arguments)>;
  using Send = std::function<void(van::PeerId peer, const proto::AdminReply&, std::string json)>;

  explicit AdminService(Send send) : send_(std::move(send)) {}

  void Register(std::string command, Handler handler);
  void OnAdmin(van::PeerId peer, std::uint64_t incarnation, const proto::Admin& admin);
  // JSON, or why not.
  void Answer(const Ask& ask, const absl::StatusOr<std::string>& json);

 private:
  void Say(van::PeerId peer, const Ask& ask, const absl::StatusOr<std::string>& json);

  const Send send_;
  std::map<std::string, Handler> handlers_;  // by command
  std::map<Ask, van::PeerId> waiting_;       // over which connection it was asked last
  std::map<Ask, absl::StatusOr<std::string>> answered_;
  std::deque<Ask> answered_in_turn_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_ADMIN_SERVICE_H_
