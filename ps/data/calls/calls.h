// The calls of users' request handlers on one data thread, from their arrival to their answers.
//
// Lives on the thread's loop. A handler may answer within its own call, or later from any thread
// (CallAnswers). What is not answered yet is limited: kOpenCallsMax calls, and by the budget of
// held pushes in bytes.
#ifndef LEEWAY_PS_DATA_CALLS_CALLS_H_
#define LEEWAY_PS_DATA_CALLS_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/call.h"
#include "leeway/server.h"
#include "proto/messages/messages.h"
#include "ps/data/state/thread_state.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::ps {

// Of one data thread.
inline constexpr std::size_t kOpenCallsMax = 65536;

// Runs a task later on a data thread, after those that were given before. Any thread. Answers that
// the task gives leave at once. Once the data thread has ended, the task is destroyed instead; it
// must not own a Responder.
using TaskPoster = absl::AnyInvocable<void(runtime::Task) const>;
// That of the data thread that runs this handler. Within a handler alone.
TaskPoster DataThreadOfHandler();

class Calls {
 public:
  // `state` outlives this.
  explicit Calls(ThreadState* state);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
              const Payload& payload);

  std::size_t open() const { return open_.size(); }

 private:
  friend class CallAnswers;
  friend TaskPoster DataThreadOfHandler();
  // A call whose handler has it.
  struct Open {
    van::PeerId peer = 0;
    std::uint64_t request = 0;
    std::string handler = {};
    std::uint64_t bytes = 0;  // charged
  };

  absl::Status Begin(const proto::WorkerEntry& worker, van::PeerId peer, const proto::Call& call,
                     const Payload& payload);
  absl::Status CheckRoom(std::uint64_t bytes) const;
  // The answer to an open call; to one that is not open, nothing happens.
  void Finish(std::uint64_t number, absl::StatusOr<CallFrames> answer);
  void Send(const Open& call, absl::StatusOr<CallFrames> answer);

  ThreadState* const state_;
  const std::shared_ptr<CallAnswers> answers_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Open> open_;  // by number
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_CALLS_CALLS_H_
