// The Desk is what a scheduler's process does for programs written for ps-lite beyond Leeway's
// scheduler: barriers of any group of nodes, and messages between any two of them.
//
// Nodes reach it by commands to the scheduler (AdminService), which may be repeated: a barrier is
// answered when all have come, `receive` when there is a message. Lives on the scheduler's loop. A
// node that is dead or has left is not waited for: those whose requests it has are told. Limits:
// kMailBytesMax, kOpenRequestsMax.
#ifndef LEEWAY_COMPAT_CORE_DESK_H_
#define LEEWAY_COMPAT_CORE_DESK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "scheduler/admin/admin_service.h"

namespace leeway::compat {

// The names of the commands.
inline constexpr char kBarrierCommand[] = "ps-lite.barrier";  // node, group, "start" or ""
inline constexpr char kSendCommand[] = "ps-lite.send";        // to, then the message
inline constexpr char kReceiveCommand[] = "ps-lite.receive";  // node, messages taken so far
inline constexpr char kPingCommand[] = "ps-lite.ping";

// Of the messages that one node has not taken.
inline constexpr std::uint64_t kMailBytesMax = 64 << 20;
// Of the messages in one answer, unless one alone has more: nodes are guests of the scheduler's van
// (van::Limits::guest_bytes_max), and AdminService remembers answers.
inline constexpr std::uint64_t kMailAnswerBytesMax = 256 << 10;
// The requests to one node that it has not responded to; if it dies, nobody is told of others.
inline constexpr std::size_t kOpenRequestsMax = 65536;

// The parts of a message: to, from, a kind, application, customer, head, timestamp, whether it is
// the last of the message's pieces or there are more; then the body in any number of parts.
inline constexpr std::size_t kMessageBody = 8;
inline constexpr char kRequest[] = "q", kResponse[] = "r";
inline constexpr char kGone[] = "g";  // in place of a response: the node has died or left

class Desk {
 public:
  using Arguments = scheduler::AdminService::Arguments;
  using Answer = scheduler::AdminService::Answer;
  using Handler = scheduler::AdminService::Handler;

  Desk(std::uint32_t servers, std::uint32_t workers) : servers_(servers), workers_(workers) {}

  std::map<std::string, Handler> Commands();
  void OnMap(const proto::ClusterMap& map);
  // Nodes that are dead, by the newest map.
  std::vector<int> Dead() const { return {dead_.begin(), dead_.end()}; }

 private:
  struct Barrier {
    // By node. Several customers of a node may enter: they are one.
    std::map<int, std::vector<Answer>> entered;
  };
  struct Mailbox {
    std::uint64_t first = 0;  // number of the first message that is kept
    std::deque<Arguments> messages;
    std::uint64_t bytes = 0;
    Answer waiting;  // null: nobody waits
  };

  // A request, as a response to it names it.
  struct OpenRequest {
    int from = 0;
    std::string app, customer, timestamp;
    friend auto operator<=>(const OpenRequest&, const OpenRequest&) = default;
  };

  void Enter(const Arguments& arguments, const Answer& answer);
  void Send(const Arguments& arguments, const Answer& answer);
  void Receive(const Arguments& arguments, const Answer& answer);
  void FinishBarriers();
  void NoteRequest(int to, const Arguments& message);
  void TellOfTheGone();
  bool IsGone(int node) const { return dead_.contains(node) || left_.contains(node); }
  bool IsFull(int group, const Barrier& barrier) const;
  static void Deliver(Mailbox* mailbox);

  const std::uint32_t servers_, workers_;
  std::set<int> dead_, left_;
  bool started_ = false;                                // the first barrier of all nodes is over
  std::map<int, Barrier> barriers_;                     // by group
  std::map<int, Mailbox> mail_;                         // by node
  std::map<int, std::set<OpenRequest>> open_requests_;  // by the node that they were sent to
};

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_DESK_H_
