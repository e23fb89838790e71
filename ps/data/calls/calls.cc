#include "ps/data/calls/calls.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "node/call_frames.h"
#include "ps/data/calls/handlers.h"
#include "runtime/base/status_macros.h"

namespace leeway {
namespace ps {
namespace {

// The calls whose handler this thread is running.
thread_local const Calls* in_handler = nullptr;

CallFrames NoFrames() { return {CallFrame()}; }

}  // namespace

// The way of answers from any thread to the calls that they are for. Shared with responders, which
// may outlive the data thread.
class CallAnswers : public std::enable_shared_from_this<CallAnswers> {
 public:
  CallAnswers(Calls* calls, runtime::Loop* loop) : calls_(calls), loop_(loop) {}

  // Any thread. Within the handler of these calls the answer leaves at once.
  void Take(std::uint64_t number, absl::StatusOr<CallFrames> answer) {
    if (in_handler != nullptr && in_handler == calls_) {
      return calls_->Finish(number, std::move(answer));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->Post([self = shared_from_this(), number, answer = std::move(answer)]() mutable {
      // On the loop, where Close is called as well.
      if (self->loop_ != nullptr) self->calls_->Finish(number, std::move(answer));
    });
  }

  // Any thread.
  void Run(runtime::Task task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->Post([self = shared_from_this(), task = std::move(task)]() mutable {
      if (self->loop_ == nullptr) return;
      const Calls* const outer = std::exchange(in_handler, self->calls_);
      std::move(task)();
      in_handler = outer;
    });
  }

  // On the loop, or once it stands still: later answers go nowhere.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    loop_ = nullptr;
  }

 private:
  Calls* const calls_;
  std::mutex mutex_;
  runtime::Loop* loop_;  // null once closed; written under mutex_, on the loop
};

Calls::Calls(ThreadState* state)
    : state_(state), answers_(std::make_shared<CallAnswers>(this, state->loop)) {}

Calls::~Calls() { answers_->Close(); }

void Calls::OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
                   const Payload& payload) {
  ++state_->counters.calls;
  const absl::StatusOr<WorkerRecord*> worker = state_->workers.Find(sender, state_->cluster);
  if (absl::IsPermissionDenied(worker.status())) {
    return state_->connections.Violation(peer, worker.status());
  }
  absl::Status begun = worker.status();
  if (begun.ok() && call.handler == proto::kProbeHandler) {
    return Send({.peer = peer, .request = call.request}, NoFrames());
  }
  if (begun.ok()) begun = Begin((*worker)->entry, peer, call, payload);
  if (!begun.ok()) Send({.peer = peer, .request = call.request}, begun);
}

absl::Status Calls::CheckRoom(std::uint64_t bytes) const {
  if (open_.size() >= kOpenCallsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("thread ", state_->thread, " of server ", state_->server_rank, " has ",
                     kOpenCallsMax, " calls whose handlers have not answered them"));
  }
  if (!state_->replicas.shards().held.HasRoom(bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("calls that are not answered and pushes that wait take all of "
                     "LEEWAY_HELD_BYTES_MAX of server ",
                     state_->server_rank));
  }
  return absl::OkStatus();
}

absl::Status Calls::Begin(const proto::WorkerEntry& worker, van::PeerId peer,
                          const proto::Call& call, const Payload& payload) {
  LEEWAY_ASSIGN_OR_RETURN(const std::shared_ptr<const AsyncHandler> handler,
                          FindHandler(call.handler));
  std::uint64_t bytes = 0;
  for (const runtime::Buffer& frame : payload) bytes += frame.size();
  LEEWAY_RETURN_IF_ERROR(CheckRoom(bytes));
  const std::uint64_t number = next_++;
  open_[number] = {.peer = peer, .request = call.request, .handler = call.handler, .bytes = bytes};
  state_->replicas.shards().held.bytes += bytes;
  const HandlerContext context{
      .worker_rank = worker.rank, .server_rank = state_->server_rank, .thread = state_->thread};
  const Calls* const outer = std::exchange(in_handler, this);
  (*handler)(context, node::FramesOf(payload), Responder(answers_, number));
  in_handler = outer;
  return absl::OkStatus();
}

void Calls::Finish(std::uint64_t number, absl::StatusOr<CallFrames> answer) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  const Open call = std::move(found->second);
  open_.erase(found);
  state_->replicas.shards().held.bytes -= call.bytes;
  if (answer.ok()) {
    if (absl::Status frames = node::CheckFrames(*answer); !frames.ok()) answer = frames;
  }
  Send(call, std::move(answer));
}

void Calls::Send(const Open& call, absl::StatusOr<CallFrames> answer) {
  proto::CallReply reply{.request = call.request, .result = answer.status()};
  Payload payload = node::BuffersOf(answer.ok() ? *std::move(answer) : NoFrames());
  const absl::Status sent = state_->connections.Send(call.peer, reply, std::move(payload));
  if (sent.ok() || absl::IsFailedPrecondition(sent)) return;  // the worker has gone
  reply.result =
      absl::IsInvalidArgument(sent)
          ? absl::OutOfRangeError(absl::StrCat("the answer of handler ", call.handler,
                                               " is more than LEEWAY_MESSAGE_BYTES_MAX of server ",
                                               state_->server_rank, ": ", sent.message()))
          : sent;
  state_->connections.Send(call.peer, reply, {runtime::Buffer()}).IgnoreError();
}

TaskPoster DataThreadOfHandler() {
  return [answers = in_handler->answers_](runtime::Task task) { answers->Run(std::move(task)); };
}

}  // namespace ps

Responder::Responder(std::shared_ptr<ps::CallAnswers> answers, std::uint64_t call)
    : answers_(std::move(answers)), call_(call) {}

Responder& Responder::operator=(Responder&& other) noexcept {
  std::swap(answers_, other.answers_);
  std::swap(call_, other.call_);
  return *this;
}

Responder::~Responder() {
  if (answers_ == nullptr) return;
  Answer(absl::InternalError("the handler has dropped this call without an answer"));
}

void Responder::Answer(absl::StatusOr<CallFrames> answer) {
  const std::shared_ptr<ps::CallAnswers> answers = std::exchange(answers_, nullptr);
  if (answers != nullptr) answers->Take(call_, std::move(answer));
}

}  // namespace leeway
